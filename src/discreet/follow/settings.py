"""What is fixed and public before a continual release begins: what it guarantees, and what a rating weighs.

A user who rates all year must not be used up by spring, and one who comes once should count fully. So the
squared weight that may be used grows with the year: a part `start` at once, the rest evenly. It can also grow
with the user's own ratings: of what is allowed by then, someone with j of them may use j / (j + `reserve`).
Of what is open at a release, new ratings share the part `share`; none gets more than 1 / `ratings`. All
numbers here are whole: a weight is a multiple of 2^-12, a squared one of 2^-24 (proofs/follow.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import integer, positive_finite, probability, require, within
from discreet.data import PublicFacts
from discreet.follow.errors import BadPeriodSettings
from discreet.follow.factorization import FACTOR_BITS, MOST_RELEASES, Factorization
from discreet.models import check_budget
from discreet.privacy import (
    Assumption,
    Basis,
    Fact,
    Guarantee,
    Kind,
    Neighbors,
    Trust,
    Unit,
    assumptions_of,
    continual_width,
    gaussian_multiplier,
)
from discreet.privacy.mechanisms.additive import gaussian_event
from discreet.report import SEVERAL_YEARS, many_releases

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

PROOF = "proofs/follow.md"
#: A contribution's count and value are whole multiples of 2^-PART_BITS of its weight.
PART_BITS = 10
#: What is released is in whole multiples of 2^-RELEASE_BITS; a user's year has length at most 1 there.
RELEASE_BITS = WEIGHT_BITS + PART_BITS + FACTOR_BITS
#: Ratings enter as what they are above this place on the scale from -1 to 1, where ratings usually lie:
#: sums then hold what items differ in, not the mean that all share.
USUAL = 0.4
#: A rating's count enters next to its value with this weight, before both are scaled to the user's length.
COUNT_PART = 0.4
#: A user's first mean enters once, next to half a count or so: 409^2 + 921^2 <= 1024^2.
LEVEL_COUNT, LEVEL_VALUE = 409, 921


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much each new rating of a user counts, so that a whole year of one user has length at most 1.

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


@lru_cache(maxsize=8)
def _planned(releases: int, half_life: float | None) -> Factorization:
    return Factorization(releases=releases, half_life=half_life)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FollowSettings:
    """How many releases a year has, what they cost together, and how fast interactions lose weight.

    Guarantee
        `epsilon` and `delta` are those of the whole year, for everything that one user does in it.

    `days` is how long the year lasts; `half_life`, in days, after which time a choice counts half (None:
    nothing fades). Lists count with a longer one while the noise would hide them otherwise. Item effects (how
    well an item is rated) do not fade.

    Example:
        >>> year = FollowSettings(releases=52, half_life=7.0, epsilon=2.0)
        >>> round(year.half_life_in_releases, 2)
        1.0

    Stability
        Provisional: names may still change in 0.x.
    """

    releases: int
    epsilon: float
    delta: float = 1e-6
    half_life: float | None = None
    days: float = 365.0
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        integer("releases", self.releases, least=1, most=MOST_RELEASES)
        check_budget(self.epsilon, self.delta, gaussian=True)
        require(math.isfinite(self.epsilon), "epsilon", self.epsilon, must="be finite to follow a year")
        positive_finite("days", self.days)
        if self.half_life is not None:
            positive_finite("half_life", self.half_life)

    @property
    def half_life_in_releases(self) -> float | None:
        """Return the half-life in units of the time between two releases."""
        return None if self.half_life is None else self.half_life * self.releases / self.days

    def in_days(self, half_life: float | None) -> float | None:
        """Return in days what is given in units of the time between two releases."""
        return None if half_life is None else half_life * self.days / self.releases

    def counts(self, *, rated: bool) -> Factorization:
        """Return how counts are released: best for sums that fade, or next to ratings for all so far.

        How well an item is rated does not fade, so what its values are divided by must not, either.
        """
        return _planned(self.releases, None if rated else self.half_life_in_releases)

    @property
    def values(self) -> Factorization:
        """Return how rating values are released: best for sums of everything so far."""
        return _planned(self.releases, None)

    @property
    def multiplier(self) -> float:
        """Return the noise on every released number, in units of what one user's whole year can be."""
        return gaussian_multiplier(self.epsilon, self.delta)

    @property
    def width(self) -> float:
        """Return the noise in whole multiples of 2^-RELEASE_BITS: nothing is rounded, so nothing is added."""
        return self.share_width(1)

    def share_width(self, shares: int) -> float:
        """Return the noise that each of so many parties adds, so that all of them together add enough."""
        return continual_width(self.multiplier, bits=RELEASE_BITS, shares=shares)

    def events(self) -> Sequence[Any]:
        """Return the one Gaussian that all releases together are."""
        return [gaussian_event(self.epsilon, self.delta)]

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return what all releases of the year guarantee together."""
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            unit=Unit.USER,
            neighbors=Neighbors.ADD_OR_REMOVE,
            trust=Trust.JOINT,
            assumes=(
                *assumptions_of(facts),
                Assumption.of(Kind.DECLARED, Fact.RELEASE_TIMES),
                Assumption.of(Kind.USE, Fact.ONE_ID),
                Assumption.of(Kind.BACKUP, Fact.STATE),
            ),
            basis=Basis.PROVED,
            proof=PROOF,
            notes=(
                many_releases(self.releases, self.days),
                SEVERAL_YEARS,
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """Read what `to_json` wrote; anything else is rejected with one sentence."""
        try:
            return cls(**{**record, "pace": Pace.from_json(record["pace"])})
        except (KeyError, TypeError) as error:
            raise BadPeriodSettings() from error
