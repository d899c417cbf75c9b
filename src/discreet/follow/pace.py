"""Compute how much each new rating of a user counts, so that a whole year of one user has length at most 1.

A user who rates all year must not be used up by spring, and one who comes once should count fully. So the
squared weight that may be used grows with the year: a part `start` at once, the rest evenly. It can also grow
with the user's own ratings: of what is allowed by then, someone with j of them may use j / (j + `reserve`).
Of what is open at a release, new ratings share the part `share`; none gets more than 1 / `ratings`. All
numbers here are whole: a weight is a multiple of 2^-12, a squared one of 2^-24 (proofs/follow.md).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core.checks import integer, probability, within
from discreet.follow.errors import BadPeriodSettings

#: A weight of 1 is 2^WEIGHT_BITS.
WEIGHT_BITS = 12
#: Squared weights of one user add up to at most this.
WHOLE = 1 << (2 * WEIGHT_BITS)
# Settings are read as fractions of this, so that products fit 64 bits.
_PARTS = 10_000
_MOST_RATINGS = 1_000_000
# What is allowed to users with more ratings than this grows no more; products fit 64 bits up to here.
_MOST_OWN = 1_000_000
_MOST_RESERVE = 1_000.0
# A user's own mean gets at most this part of the squared length: users are many, and it is one number.
_LEVEL = 50

Whole = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The public settings.

    With the usual ones a first rating may use two thirds of what is allowed by then, and no one is ever
    used up. `start=1.0` (`ONCE`) wastes nothing where users come once, or where nothing fades.

    Example:
        >>> pace = Pace()
        >>> weights = pace.weights(np.array([0]), np.array([4]), release=0, releases=52)
        >>> int(4 * weights[0] ** 2) <= pace.allowed(0, 52) * 4 / 4.5
        True
    """

    start: float = 0.3
    share: float = 1.0
    ratings: int = 1
    reserve: float = 0.5

    def __post_init__(self) -> None:
        probability("start", self.start)
        within("share", self.share, least=1 / _PARTS, most=1)
        integer("ratings", self.ratings, least=1, most=_MOST_RATINGS)
        within("reserve", self.reserve, least=0, most=_MOST_RESERVE)

    def allowed(self, release: int, releases: int) -> int:
        """Return how much squared weight a user may have used by a release, counted from 0."""
        start = _parts(self.start)
        return WHOLE * (start * releases + (_PARTS - start) * release) // (_PARTS * releases)

    def weights(
        self, used: Whole, new: Whole, *, release: int, releases: int, own: Whole | None = None
    ) -> Whole:
        """Return the weight of each of a user's `new` ratings at a release, given what the user has `used`.

        `own` counts a user's ratings, the new ones included; without it there were none before. `used` plus
        `new` times the squared weight is never above what is allowed, which never exceeds 1.
        """
        still_open = self._open(used, new if own is None else own, release, releases)
        shared = _parts(self.share) * still_open // (_PARTS * np.maximum(new, 1))
        return _root(np.minimum(shared, WHOLE // self.ratings))

    def level_weights(self, used: Whole, *, release: int, releases: int, own: Whole) -> Whole:
        """Return the weight of a user's own mean, which enters once, given what the user has `used`."""
        still_open = self._open(used, own, release, releases)
        return _root(np.minimum(_parts(self.share) * still_open // _PARTS, WHOLE // _LEVEL))

    def _open(self, used: Whole, own: Whole, release: int, releases: int) -> Whole:
        """Return what may still be used by users who have so many ratings of their own."""
        count = _PARTS * np.clip(own, 1, _MOST_OWN)
        allowed = self.allowed(release, releases) * count // (count + _parts(self.reserve))
        still_open: Whole = np.maximum(allowed - used, 0)
        return still_open

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        try:
            # Years that began before there was a reserve keep none.
            reserve = record.get("reserve", 0.0)
            settings = {name: record[name] for name in ("start", "share", "ratings")}
            return cls(**settings, reserve=reserve)
        except (KeyError, TypeError) as error:
            raise BadPeriodSettings() from error


#: Where users come once, or where nothing fades: all of the year's squared weight is allowed at once.
ONCE = Pace(start=1.0)


def _parts(setting: float) -> int:
    """Return a setting as a whole number of ten-thousandths, cut down."""
    return int(Fraction(str(setting)) * _PARTS)


def _root(squares: Whole) -> Whole:
    """Return the whole part of square roots of numbers up to 2^24: floats are exact there."""
    return np.sqrt(squares.astype(np.float64)).astype(np.int64)
