"""What is fixed and public before a continual release begins, and what it guarantees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Self, final

from discreet.core.checks import integer, positive_finite, require
from discreet.data.facts import PublicFacts
from discreet.follow.errors import BadPeriodSettings
from discreet.follow.factorization import FACTOR_BITS, MOST_RELEASES, Factorization
from discreet.follow.pace import WEIGHT_BITS, Pace
from discreet.models.estimator import check_budget
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.continual import continual_width
from discreet.privacy.guarantee import (
    Assumption,
    Basis,
    Fact,
    Guarantee,
    Kind,
    Neighbors,
    Trust,
    Unit,
    assumptions_of,
)
from discreet.privacy.mechanisms.additive import gaussian_event
from discreet.report.guarantee_wording import SEVERAL_YEARS, many_releases

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
