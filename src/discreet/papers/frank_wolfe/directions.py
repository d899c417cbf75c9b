"""Share the steps of the low-rank methods: center ratings, split the budget, size a noisy direction.

Ratings are in units in which the scale runs from -1 to 1. Everything here is either a user's own computation
on their own row, given released numbers, or it uses released numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.progress import Progress
from discreet.data.facts import PublicFacts
from discreet.models.biases import release_biases
from discreet.models.released_items import ItemView
from discreet.models.scorers.factors import RatingScorer
from discreet.privacy.session import Session
from discreet.solvers.empirical_bayes import shrink
from discreet.solvers.spectrum import outstanding
from discreet.statistics.counts import UserCount
from discreet.statistics.scaled_rows import Scaling
from discreet.statistics.typical import COUNT_PART, TYPICAL_RESIDUAL, USER_RIDGE

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
    """Released item biases, from which every user's row is centered."""

    look: ItemView
    offsets: Floats

    def scaling(self, factors: Floats, row_bound: float | None = None, clamp: float = math.inf) -> Scaling:
        """Return how a user's residual row is scaled to length at most 1: the contribution to one release.

        Residuals are ratings minus the offsets, the user's own mean and the user's own factors.
        """
        ridge = np.append(USER_RIDGE, np.full(factors.shape[1], FACTOR_RIDGE))
        return Scaling(
            middle=self.look.middle,
            half=self.look.half,
            offsets=self.offsets,
            factors=factors,
            ridge=ridge,
            part=COUNT_PART,
            clamp=clamp,
            least_length=0.0 if row_bound is None else row_bound / self.look.half,
        )

    def scorer(self, factors: Floats, facts: PublicFacts, decisions: dict[str, int]) -> RatingScorer:
        """Return the scorer with these item factors."""
        half = self.look.half
        return RatingScorer(
            mean=self.look.middle + half * self.look.mean,
            item_bias=half * (self.offsets - self.look.mean),
            item_factors=half * factors,
            ridge=np.append(USER_RIDGE, np.full(factors.shape[1], half**2 * FACTOR_RIDGE)),
            low=facts.low,
            high=facts.high,
            decisions=decisions,
            **self.look.listing(),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMeansOnly:
    """Ratings from which only users' own means are subtracted, as the poster does; `people` is released."""

    middle: float
    half: float
    n_items: int
    people: float

    @property
    def offsets(self) -> Floats:
        """Return zeros: items have no biases."""
        return np.zeros(self.n_items)


def own_means_only(session: Session) -> tuple[OwnMeansOnly, Session]:
    """Release the number of users for a small share, and return the rest of the session."""
    counting, rest = session.split(_COUNTING, 1 - _COUNTING)
    people, noise = counting.release(UserCount(), Fraction(1))
    facts = session.facts
    # On a scale of one value every row is zero, in any unit.
    middle, half = (facts.low + facts.high) / 2, (facts.high - facts.low) / 2 or 1.0
    known = max(float(people[0]), 2 * noise, 1.0)
    return OwnMeansOnly(middle=middle, half=half, n_items=facts.n_items, people=known), rest


def usual_length(facts: PublicFacts) -> int:
    """Return the assumed number of ratings per user: the declared cap, or a usual number."""
    return facts.max_per_user or _USUAL_LENGTH


def centered(session: Session, progress: Progress) -> Centered:
    """Release the biases, from which all ratings are centered, for all of the session."""
    look, effects = release_biases(session, progress)
    return Centered(look=look, offsets=look.mean + effects.mean)


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
