"""Record the mechanism calls of a fit, and replay their outputs to a fit on a neighboring dataset.

If the second fit, given the same outputs, publishes the same file, then the file reveals no more than the
mechanism calls, whose privacy cost is exact (`costs`). If it does not, something reached the file without
noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.audit.errors import DrawsDiffer, UnknownDraw
from discreet.privacy.mechanisms.cells import CellMechanism

#: Draws whose outcome does not depend on data once their (public) parameters are fixed: coins.
COINS = ("bytes", "geometric", "uniform_below", "bernoulli")
# Far below every threshold, in fixed-point units.
_NOT_CHOSEN = -(2**60)


class EnoughError(Exception):
    """The end of a fit after its last draw. The rest is post-processing."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAdditive:
    """An additive mechanism call: whole numbers, and noise of scale `width` in the same units."""

    gaussian: bool
    width: float
    given: npt.NDArray[np.int64]
    output: npt.NDArray[np.int64]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return the parameters that must not depend on data."""
        return self.gaussian, self.width, self.given.shape


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTable:
    """Draws from a table of counts of 2^64 words: the row and the outcome of each draw."""

    starts: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    output: npt.NDArray[np.int64]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return the parameters that must not depend on data."""
        return self.rows.shape, self.starts.shape[1]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCells:
    """The answers for all entries of the rating matrix: which were rated and how, and the reports."""

    mechanism: CellMechanism
    count: int
    rated: npt.NDArray[np.int64]
    ratings: npt.NDArray[np.float64]
    output: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return the parameters that must not depend on data."""
        return self.mechanism, self.count


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCoins:
    """Draws that do not use data; they reveal nothing about any user."""

    public: tuple[Any, ...]
    output: npt.NDArray[Any]


MechanismCall = RecordedAdditive | RecordedTable | RecordedCells | RecordedCoins


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScale:
    """A factor on the drawn noise, to try rare outcomes, which must not cost more either.

    A fit takes other branches when the first release reports very many users, or when later ones exceed the
    noise. The noise of the first draw is made positive.
    """

    first: float = 1.0
    later: float = 1.0

    def __call__(self, call: MechanismCall, index: int) -> MechanismCall:
        """Return the call as if its noise had been larger."""
        if not isinstance(call, RecordedAdditive):
            return call
        noise = (call.output - call.given).astype(np.float64)
        scaled = self.later * noise if index else self.first * np.abs(noise)
        limit = 2.0**62 - np.abs(call.given).max(initial=0)
        output = call.given + np.rint(np.clip(scaled, -limit, limit)).astype(np.int64)
        return replace(call, output=output)


@final
class Recorder:
    """A recorder of every draw, which ends the fit after `most` draws."""

    def __init__(self, most: int | None = None, noise_scale: NoiseScale | None = None) -> None:
        self.calls: list[MechanismCall] = []
        self.statistics: list[npt.NDArray[np.float64]] = []
        #: The index of the first draw of the last release; inputs of its draws do not depend on each other.
        self.last_release = 0
        self._most, self._noise_scale = most, noise_scale

    def passing(self, draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Draw, and record input and output."""
        given = _given(draw, arguments)
        output = draw(**arguments)
        call = given(_copied(arguments["target"] if output is None else output))
        if self._noise_scale is not None and output is None:
            call = self._noise_scale(call, len(self.calls))
            arguments["target"][...] = call.output
        self.calls.append(call)
        if len(self.calls) == self._most:
            raise EnoughError
        return output

    def exact(self, mechanism: object, values: npt.NDArray[Any]) -> None:
        """Record the exact statistic, before the noise."""
        self.statistics.append(np.array(values, dtype=np.float64))
        self.last_release = len(self.calls)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A draw over names that come from the data, and the names in both datasets.

    Each name has its own noise. The recorded output has none for the names that only the other dataset has;
    on replay they count as not selected, which fails with probability at most the delta of the selection
    (proofs/private_catalog.md).
    """

    index: int
    recorded: tuple[str, ...]
    replayed: tuple[str, ...]

    def output_there(self, call: MechanismCall) -> MechanismCall:
        """Return a recorded draw, mapped to the names of the other dataset."""
        assert isinstance(call, RecordedAdditive)
        known = dict(zip(self.recorded, call.output.tolist(), strict=True))
        output = np.array([known.get(name, _NOT_CHOSEN) for name in self.replayed], dtype=np.int64)
        return replace(call, given=np.zeros_like(output), output=output)

    def shared(
        self, recorded: Sequence[MechanismCall], replayed: Sequence[MechanismCall]
    ) -> tuple[list[MechanismCall], list[MechanismCall]]:
        """Return both lists of draws, restricted to the names that both datasets hold."""
        there = {name: index for index, name in enumerate(self.replayed)}
        pairs = [(index, there[name]) for index, name in enumerate(self.recorded) if name in there]
        found = []
        for side, calls in enumerate((recorded, replayed)):
            draw, both = calls[self.index], [pair[side] for pair in pairs]
            assert isinstance(draw, RecordedAdditive)
            kept = replace(draw, given=draw.given[both], output=draw.output[both])
            found.append([*calls[: self.index], kept, *calls[self.index + 1 :]])
        return found[0], found[1]


@final
class Player:
    """Replay recorded outputs to another fit, and record the inputs it would have given."""

    def __init__(
        self, recorded: Sequence[MechanismCall], *, to_the_end: bool = True, named: Named | None = None
    ) -> None:
        self.calls: list[MechanismCall] = []
        self.statistics: list[npt.NDArray[np.float64]] = []
        self._recorded, self._to_the_end, self._named = recorded, to_the_end, named

    def passing(self, draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Return the recorded outcome of this draw."""
        index = len(self.calls)
        if index == len(self._recorded):
            raise DrawsDiffer(draw=index + 1)
        then = self._recorded[index]
        if self._named is not None and self._named.index == index:
            then = self._named.output_there(then)
        now = _given(draw, arguments)(then.output)
        if type(now) is not type(then) or now.public != then.public:
            raise DrawsDiffer(draw=index + 1)
        self.calls.append(now)
        if index + 1 == len(self._recorded) and not self._to_the_end:
            raise EnoughError
        if "target" in arguments:
            arguments["target"][...] = then.output
            return None
        return _copied(then.output)

    def exact(self, mechanism: object, values: npt.NDArray[Any]) -> None:
        """Record the exact statistic, before the noise."""
        self.statistics.append(np.array(values, dtype=np.float64))

    def finish(self) -> None:
        """Raise for a fit that made fewer draws than were recorded."""
        if len(self.calls) < len(self._recorded):
            raise DrawsDiffer(draw=len(self.calls) + 1)


def _given(draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Callable[[Any], MechanismCall]:
    """Return a function from output to recorded call; inputs are copied before they can change."""
    name = getattr(draw, "__name__", "")
    public = {key: value for key, value in arguments.items() if key != "random"}
    match name:
        case "add_discrete_laplace" | "add_discrete_gaussian":
            width = arguments.get("scale", arguments.get("sigma"))
            given = np.array(arguments["target"])
            return lambda output: RecordedAdditive(
                gaussian=name.endswith("gaussian"), width=float(width or 0.0), given=given, output=output
            )
        case "draw_from_table":
            starts, rows = np.array(arguments["starts"]), np.array(arguments["row_index"], dtype=np.int64)
            return lambda output: RecordedTable(starts=starts, rows=rows, output=output)
        case "answer_cells":
            rated, ratings = np.array(arguments["rated"]), np.array(arguments["ratings"], dtype=np.float64)
            return lambda output: RecordedCells(
                mechanism=public["mechanism"],
                count=public["cells"],
                rated=rated.astype(np.int64),
                ratings=ratings,
                output=output,
            )
        case _ if name in COINS:
            return lambda output: RecordedCoins(public=(name, *public.values()), output=output)
    raise UnknownDraw(draw=name)


def _copied(output: Any) -> Any:
    return tuple(map(np.array, output)) if isinstance(output, tuple) else np.array(output)
