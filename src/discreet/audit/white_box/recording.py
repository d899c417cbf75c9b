"""Record what enters and leaves every draw of a fit, and play the same outcomes to a fit on other data.

If the second fit, told the same, publishes the same file, then all that the file can tell apart is what the
two inputs of each draw differ by, and that has an exact price (`prices`). If it does not, something reached
the file without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from discreet.core.checks import DiscreetError
from discreet.privacy.mechanisms.cells import CellMechanism

#: Draws whose outcome does not depend on data once their (public) parameters are fixed: coins.
COINS = ("bytes", "geometric", "uniform_below", "bernoulli")
# Far below every threshold, in steps.
_NOT_CHOSEN = -(2**60)


class StrayError(DiscreetError):
    """Say that a replayed fit asked for other draws than the recorded one."""


class EnoughError(Exception):
    """End a fit whose last draw has passed; what follows is arithmetic on what was told."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAdditive:
    """Whole numbers that noise of a width, in the same steps, is added to."""

    gaussian: bool
    width: float
    given: npt.NDArray[np.int64]
    output: npt.NDArray[np.int64]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return what must not depend on data."""
        return self.gaussian, self.width, self.given.shape


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTable:
    """Rows of counts of 2^64 words, one row for each outcome that was drawn."""

    starts: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    output: npt.NDArray[np.int64]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return what must not depend on data."""
        return self.rows.shape, self.starts.shape[1]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCells:
    """Answers for all cells, most of them empty: which were rated and how, and what was reported."""

    mechanism: CellMechanism
    count: int
    rated: npt.NDArray[np.int64]
    ratings: npt.NDArray[np.float64]
    output: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return what must not depend on data."""
        return self.mechanism, self.count


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCoins:
    """Draws that are given no data; whoever knows them learns nothing about anybody."""

    public: tuple[Any, ...]
    output: npt.NDArray[Any]


MechanismCall = RecordedAdditive | RecordedTable | RecordedCells | RecordedCoins


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseScale:
    """Make added noise louder than chance would: such outcomes are rare, but they must not cost more either.

    A fit asks other questions when the first draw says that very many people are there, or later ones that
    something stands out of the noise. The first draw is turned up, and never down.
    """

    first: float = 1.0
    later: float = 1.0

    def __call__(self, call: MechanismCall, place: int) -> MechanismCall:
        """Return the passage as if its noise had come out louder."""
        if not isinstance(call, RecordedAdditive):
            return call
        noise = (call.output - call.given).astype(np.float64)
        louder = self.later * noise if place else self.first * np.abs(noise)
        limit = 2.0**62 - np.abs(call.given).max(initial=0)
        output = call.given + np.rint(np.clip(louder, -limit, limit)).astype(np.int64)
        return replace(call, output=output)


@final
class Recorder:
    """Let every draw through and keep it; after `most` draws the fit is ended."""

    def __init__(self, most: int | None = None, noise_scale: NoiseScale | None = None) -> None:
        self.calls: list[MechanismCall] = []
        self.statistics: list[npt.NDArray[np.float64]] = []
        #: Where the draws of the last release begin: what they are given does not depend on one another.
        self.last_release = 0
        self._most, self._noise_scale = most, noise_scale

    def passing(self, draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Draw, and keep what was given and told."""
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
        """Keep the numbers before the noise."""
        self.statistics.append(np.array(values, dtype=np.float64))
        self.last_release = len(self.calls)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Say which draw is about names that data bring themselves, and which names there are in both data sets.

    Names that only one of them holds have noise of their own. The recorded outcome says nothing of those that
    the other data add; they are told as not chosen, which happens but for the delta of the choice
    (proofs/private_catalog.md).
    """

    place: int
    recorded: tuple[str, ...]
    replayed: tuple[str, ...]

    def output_there(self, call: MechanismCall) -> MechanismCall:
        """Return a recorded draw as it is for the names of the other data."""
        assert isinstance(call, RecordedAdditive)
        known = dict(zip(self.recorded, call.output.tolist(), strict=True))
        output = np.array([known.get(name, _NOT_CHOSEN) for name in self.replayed], dtype=np.int64)
        return replace(call, given=np.zeros_like(output), output=output)

    def shared(
        self, recorded: Sequence[MechanismCall], replayed: Sequence[MechanismCall]
    ) -> tuple[list[MechanismCall], list[MechanismCall]]:
        """Return both lists of draws with only the names in it that both data sets hold, to be priced."""
        there = {name: place for place, name in enumerate(self.replayed)}
        pairs = [(place, there[name]) for place, name in enumerate(self.recorded) if name in there]
        found = []
        for side, calls in enumerate((recorded, replayed)):
            draw, places = calls[self.place], [pair[side] for pair in pairs]
            assert isinstance(draw, RecordedAdditive)
            kept = replace(draw, given=draw.given[places], output=draw.output[places])
            found.append([*calls[: self.place], kept, *calls[self.place + 1 :]])
        return found[0], found[1]


@final
class Player:
    """Tell a fit what another one was told, and keep what it would have given for that."""

    def __init__(
        self, recorded: Sequence[MechanismCall], *, to_the_end: bool = True, named: Named | None = None
    ) -> None:
        self.calls: list[MechanismCall] = []
        self.statistics: list[npt.NDArray[np.float64]] = []
        self._recorded, self._to_the_end, self._named = recorded, to_the_end, named

    def passing(self, draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Return the recorded outcome of this draw."""
        place = len(self.calls)
        if place == len(self._recorded):
            raise StrayError("The fit on the other data asked for more draws.")
        then = self._recorded[place]
        if self._named is not None and self._named.place == place:
            then = self._named.output_there(then)
        now = _given(draw, arguments)(then.output)
        if type(now) is not type(then) or now.public != then.public:
            raise StrayError(f"Draw {place + 1} has another size or width on the other data.")
        self.calls.append(now)
        if place + 1 == len(self._recorded) and not self._to_the_end:
            raise EnoughError
        if "target" in arguments:
            arguments["target"][...] = then.output
            return None
        return _copied(then.output)

    def exact(self, mechanism: object, values: npt.NDArray[Any]) -> None:
        """Keep the numbers before the noise."""
        self.statistics.append(np.array(values, dtype=np.float64))

    def finish(self) -> None:
        """Refuse a fit that did not ask for all that was told."""
        if len(self.calls) < len(self._recorded):
            raise StrayError("The fit on the other data asked for fewer draws.")


def _given(draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Callable[[Any], MechanismCall]:
    """Return what makes a passage of an outcome; the inputs are copied before they can change."""
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
    raise StrayError(f"An audit does not know the price of a draw called {name!r}.")


def _copied(output: Any) -> Any:
    return tuple(map(np.array, output)) if isinstance(output, tuple) else np.array(output)
