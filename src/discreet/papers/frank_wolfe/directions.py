"""Share the steps of the low-rank methods: center ratings, split the budget, size a noisy direction.

Ratings are in units in which the scale runs from -1 to 1. Everything here is either a user's own computation
on their own row, given released numbers, or it uses released numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np

from discreet.core import Floats, Progress
from discreet.data import PublicFacts
from discreet.models import ItemView, RatingScorer, release_biases
from discreet.privacy import Session
from discreet.solvers import outstanding, shrink
from discreet.statistics import TYPICAL_RESIDUAL, USER_RIDGE, Scaling, UserCount
from discreet.statistics.typical import COUNT_PART

# A user's coefficients have prior variance 1; this is the variance of ratings around predictions.
FACTOR_RIDGE = TYPICAL_RESIDUAL**2
# Rows are weighted by their own length, so the mean squared weight exceeds the squared mean weight by about
# this factor.
_WEIGHT_SPREAD = 1.3
# An eigenvalue is kept from this much above the edge of the noise.
_ABOVE_EDGE = 1.03
# The share of the number of users, where no biases are released.
_COUNTING = Fraction(1, 50)
# The assumed number of ratings per row without a declared cap.
_USUAL_LENGTH = 100


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Centered:
    """From what every user's row is centered: released item biases, or zeros as the poster does.

    `middle` and `half` are of the scale. `listing` has what orders lists, where item biases were released.
    """

    middle: float
    half: float
    offsets: Floats
    people: float
    mean: float = 0.0
    listing: Mapping[str, Any] = field(default_factory=dict)

    def scaling(
        self,
        factors: Floats | None = None,
        row_bound: float | None = None,
        *,
        clamp: float = math.inf,
        part: float = COUNT_PART,
    ) -> Scaling:
        """Return how a user's residual row is scaled to length at most 1: the contribution to one release.

        Residuals are ratings minus the offsets, the user's own mean and the user's own factors.
        """
        factors = np.zeros((self.offsets.size, 0)) if factors is None else factors
        return Scaling(
            middle=self.middle,
            half=self.half,
            offsets=self.offsets,
            factors=factors,
            ridge=np.append(USER_RIDGE, np.full(factors.shape[1], FACTOR_RIDGE)),
            part=part,
            clamp=clamp,
            least_length=0.0 if row_bound is None else row_bound / self.half,
        )

    def base(self, facts: PublicFacts) -> dict[str, Any]:
        """Return the fields of a scorer that don't depend on factors."""
        return {
            "mean": self.middle + self.half * self.mean,
            "item_bias": self.half * (self.offsets - self.mean),
            "low": facts.low,
            "high": facts.high,
            **self.listing,
        }

    def scorer(self, factors: Floats, facts: PublicFacts, **decisions: int) -> RatingScorer:
        """Return the scorer with these item factors, which are in units of half the scale."""
        return RatingScorer(
            item_factors=self.half * factors,
            ridge=np.append(USER_RIDGE, np.full(factors.shape[1], self.half**2 * FACTOR_RIDGE)),
            decisions=decisions,
            **self.base(facts),
        )


def own_means_only(session: Session) -> tuple[Centered, Session]:
    """Release the number of users for a small share, and return the rest of the session.

    Only users' own means are subtracted then, as the poster does.
    """
    counting, rest = session.split(_COUNTING, 1 - _COUNTING)
    people, noise = counting.release(UserCount(), Fraction(1))
    facts = session.facts
    # On a scale of one value every row is zero, in any unit.
    middle, half = (facts.low + facts.high) / 2, (facts.high - facts.low) / 2 or 1.0
    known = max(float(people[0]), 2 * noise, 1.0)
    return Centered(middle=middle, half=half, offsets=np.zeros(facts.n_items), people=known), rest


def usual_length(facts: PublicFacts) -> int:
    """Return the assumed number of ratings per user: the declared cap, or a usual number."""
    return facts.max_per_user or _USUAL_LENGTH


def centered(session: Session, progress: Progress) -> tuple[Centered, ItemView]:
    """Release the biases, from which all ratings are centered, for all of the session."""
    look, effects = release_biases(session, progress)
    view = Centered(
        middle=look.middle,
        half=look.half,
        offsets=look.mean + effects.mean,
        people=look.people,
        mean=look.mean,
        listing=look.listing(),
    )
    return view, look


class FoundDirection(NamedTuple):
    """A released direction: the moment's noisy product with it, its eigenvalue, and the noise per item.

    `value` is 0 for a direction that is not above the noise.
    """

    product: Floats
    value: float
    noise: float


def leading(moment: Floats, multiplier: float, people: float, most: int) -> list[FoundDirection]:
    """Return at most `most` directions whose eigenvalues are above the noise and the sampling error."""
    values, strengths, vectors, edge = outstanding(
        moment, multiplier, people, most=most, above_edge=_ABOVE_EDGE
    )
    noise = edge / (2 * math.sqrt(len(moment)))
    # Noise enlarges an eigenvalue; averaging it with the corrected strength undoes that for a rank-one
    # signal.
    return [
        FoundDirection(value * vector, (value + strength) / 2, noise)
        for value, strength, vector in zip(values, strengths, vectors.T, strict=True)
    ]


def item_factor(found: FoundDirection, look: ItemView, row_bound: float | None = None) -> Floats:
    """Return the items' coordinates on a direction along which users have a variance of about 1.

    An item with few ratings has small entries in the moment; its coordinate is scaled up by the released
    counts, and shrunk by the known noise.
    """
    if found.value <= 0:
        return np.zeros_like(found.product)
    # The counts weight users by their rows' lengths; a row bound reduces the weight of short rows.
    shortened = 1.0
    if row_bound is not None:
        typical = math.hypot(TYPICAL_RESIDUAL, COUNT_PART) * math.sqrt(look.typical_length)
        shortened = min(1.0, typical * look.half / row_bound)
    counted = look.counts * shortened * math.sqrt(_WEIGHT_SPREAD / look.people)
    sums = found.product / math.sqrt(found.value)
    variance = found.noise**2 / found.value
    return shrink(sums, counted, variance, np.zeros((sums.size, 0))).mean
