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

from discreet.checks import DiscreetError
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
class Additive:
    """Whole numbers that noise of a width, in the same steps, is added to."""

    gaussian: bool
    width: float
    given: npt.NDArray[np.int64]
    told: npt.NDArray[np.int64]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return what must not depend on data."""
        return self.gaussian, self.width, self.given.shape


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of counts of 2^64 words, one row for each outcome that was drawn."""

    starts: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    told: npt.NDArray[np.int64]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return what must not depend on data."""
        return self.rows.shape, self.starts.shape[1]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Answers for all cells, most of them empty: which were rated and how, and what was reported."""

    mechanism: CellMechanism
    count: int
    rated: npt.NDArray[np.int64]
    ratings: npt.NDArray[np.float64]
    told: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

    @property
    def public(self) -> tuple[Any, ...]:
        """Return what must not depend on data."""
        return self.mechanism, self.count


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Coins:
    """Draws that are given no data; whoever knows them learns nothing about anybody."""

    public: tuple[Any, ...]
    told: npt.NDArray[Any]


Passage = Additive | Table | Cells | Coins


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loudness:
    """Make added noise louder than chance would: such outcomes are rare, but they must not cost more either.

    A fit asks other questions when the first draw says that very many people are there, or later ones that
    something stands out of the noise. The first draw is turned up, and never down.
    """

    first: float = 1.0
    later: float = 1.0

    def __call__(self, passage: Passage, place: int) -> Passage:
        """Return the passage as if its noise had come out louder."""
        if not isinstance(passage, Additive):
            return passage
        noise = (passage.told - passage.given).astype(np.float64)
        louder = self.later * noise if place else self.first * np.abs(noise)
        limit = 2.0**62 - np.abs(passage.given).max(initial=0)
        told = passage.given + np.rint(np.clip(louder, -limit, limit)).astype(np.int64)
        return replace(passage, told=told)


@final
class Recorder:
    """Let every draw through and keep it; after `most` draws the fit is ended."""

    def __init__(self, most: int | None = None, loudness: Loudness | None = None) -> None:
        self.passages: list[Passage] = []
        self.statistics: list[npt.NDArray[np.float64]] = []
        #: Where the draws of the last release begin: what they are given does not depend on one another.
        self.last_release = 0
        self._most, self._loudness = most, loudness

    def passing(self, draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Draw, and keep what was given and told."""
        given = _given(draw, arguments)
        told = draw(**arguments)
        passage = given(_copied(arguments["target"] if told is None else told))
        if self._loudness is not None and told is None:
            passage = self._loudness(passage, len(self.passages))
            arguments["target"][...] = passage.told
        self.passages.append(passage)
        if len(self.passages) == self._most:
            raise EnoughError
        return told

    def exact(self, mechanism: object, values: npt.NDArray[Any]) -> None:
        """Keep the numbers before the noise."""
        self.statistics.append(np.array(values, dtype=np.float64))
        self.last_release = len(self.passages)


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

    def told_there(self, passage: Passage) -> Passage:
        """Return a recorded draw as it is for the names of the other data."""
        assert isinstance(passage, Additive)
        known = dict(zip(self.recorded, passage.told.tolist(), strict=True))
        told = np.array([known.get(name, _NOT_CHOSEN) for name in self.replayed], dtype=np.int64)
        return replace(passage, given=np.zeros_like(told), told=told)

    def shared(
        self, recorded: Sequence[Passage], replayed: Sequence[Passage]
    ) -> tuple[list[Passage], list[Passage]]:
        """Return both lists of draws with only the names in it that both data sets hold, to be priced."""
        there = {name: place for place, name in enumerate(self.replayed)}
        pairs = [(place, there[name]) for place, name in enumerate(self.recorded) if name in there]
        found = []
        for side, passages in enumerate((recorded, replayed)):
            draw, places = passages[self.place], [pair[side] for pair in pairs]
            assert isinstance(draw, Additive)
            kept = replace(draw, given=draw.given[places], told=draw.told[places])
            found.append([*passages[: self.place], kept, *passages[self.place + 1 :]])
        return found[0], found[1]


@final
class Player:
    """Tell a fit what another one was told, and keep what it would have given for that."""

    def __init__(
        self, recorded: Sequence[Passage], *, to_the_end: bool = True, named: Named | None = None
    ) -> None:
        self.passages: list[Passage] = []
        self.statistics: list[npt.NDArray[np.float64]] = []
        self._recorded, self._to_the_end, self._named = recorded, to_the_end, named

    def passing(self, draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Return the recorded outcome of this draw."""
        place = len(self.passages)
        if place == len(self._recorded):
            raise StrayError("The fit on the other data asked for more draws.")
        then = self._recorded[place]
        if self._named is not None and self._named.place == place:
            then = self._named.told_there(then)
        now = _given(draw, arguments)(then.told)
        if type(now) is not type(then) or now.public != then.public:
            raise StrayError(f"Draw {place + 1} has another size or width on the other data.")
        self.passages.append(now)
        if place + 1 == len(self._recorded) and not self._to_the_end:
            raise EnoughError
        if "target" in arguments:
            arguments["target"][...] = then.told
            return None
        return _copied(then.told)

    def exact(self, mechanism: object, values: npt.NDArray[Any]) -> None:
        """Keep the numbers before the noise."""
        self.statistics.append(np.array(values, dtype=np.float64))

    def finish(self) -> None:
        """Refuse a fit that did not ask for all that was told."""
        if len(self.passages) < len(self._recorded):
            raise StrayError("The fit on the other data asked for fewer draws.")


def _given(draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Callable[[Any], Passage]:
    """Return what makes a passage of an outcome; the inputs are copied before they can change."""
    name = getattr(draw, "__name__", "")
    public = {key: value for key, value in arguments.items() if key != "random"}
    match name:
        case "add_discrete_laplace" | "add_discrete_gaussian":
            width = arguments.get("scale", arguments.get("sigma"))
            given = np.array(arguments["target"])
            return lambda told: Additive(
                gaussian=name.endswith("gaussian"), width=float(width or 0.0), given=given, told=told
            )
        case "draw_from_table":
            starts, rows = np.array(arguments["starts"]), np.array(arguments["row_index"], dtype=np.int64)
            return lambda told: Table(starts=starts, rows=rows, told=told)
        case "answer_cells":
            rated, ratings = np.array(arguments["rated"]), np.array(arguments["ratings"], dtype=np.float64)
            return lambda told: Cells(
                mechanism=public["mechanism"],
                count=public["cells"],
                rated=rated.astype(np.int64),
                ratings=ratings,
                told=told,
            )
        case _ if name in COINS:
            return lambda told: Coins(public=(name, *public.values()), told=told)
    raise StrayError(f"An audit does not know the price of a draw called {name!r}.")


def _copied(told: Any) -> Any:
    return tuple(map(np.array, told)) if isinstance(told, tuple) else np.array(told)
