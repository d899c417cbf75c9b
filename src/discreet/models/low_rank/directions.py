"""Share what the low-rank methods do between releases: center, split the budget, size a noisy direction.

Ratings are in units in which the scale runs from -1 to 1. Everything here is either one person's own
computation on their own row, given released numbers, or it works on released numbers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.progress import Progress
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.models.biases import release_biases
from discreet.models.released_items import ItemView
from discreet.models.scorers.factors import RatingScorer
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.solvers.empirical_bayes import shrink
from discreet.solvers.spectrum import outstanding
from discreet.statistics.counts import COUNT_PART, TYPICAL_RESIDUAL, USER_RIDGE
from discreet.statistics.data_source import DataSource
from discreet.statistics.scaled_rows import ScaledMoment, Scaling

# A person's coefficients have variance 1 beforehand; ratings deviate from predictions by this much.
FACTOR_RIDGE = TYPICAL_RESIDUAL**2
# Rows are weighed by their own length, which makes the mean of the squared weights larger than the square of
# the mean weight by about this factor.
_WEIGHT_SPREAD = 1.3
# An eigenvalue counts from this much above the edge of the noise.
_ABOVE_EDGE = 1.03


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Centered:
    """Hold what `biases` released about the items; each person keeps their own row."""

    look: ItemView
    offsets: Floats

    def told(self, factors: Floats, row_bound: float | None = None, clamp: float = math.inf) -> Scaling:
        """Return how a person's left-over row gets a length of at most 1: what one release hears of them.

        A person takes the offsets, the own mean and the own places on the factors off their ratings.
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
        """Return the model that these item factors give."""
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


def centered(data: DataSource, multiplier: float, random: PrivacyRandom, progress: Progress) -> Centered:
    """Release the biases: what every rating is measured from."""
    look, effects = release_biases(data, multiplier, random, progress)
    return Centered(look=look, offsets=look.mean + effects.mean)


class Found(NamedTuple):
    """Hold a direction as released: the moment's noisy product with it, its size, and the noise on each item.

    `value` is 0 when the noise alone could have made the direction.
    """

    product: Floats
    value: float
    noise: float


def release_moment(source: DataSource, told: Scaling, multiplier: float, random: PrivacyRandom) -> Floats:
    """Release the second moment of people's rows; each moves it by at most 1 in the Frobenius norm."""
    sums = source.total(ScaledMoment(scaling=told))
    return Gaussian(sigma=multiplier, l2_sensitivity=1.0).release_symmetric(sums.steps(), random)


def leading(moment: Floats, multiplier: float, people: float, most: int) -> list[Found]:
    """Return the directions, at most so many, whose eigenvalues stand out of noise and chance."""
    values, strengths, vectors, edge = outstanding(
        moment, multiplier, people, most=most, above_edge=_ABOVE_EDGE
    )
    noise = edge / (2 * math.sqrt(len(moment)))
    # Noise lengthens an eigenvalue; the mean with what is left of it undoes that for a rank-one signal.
    return [
        Found(value * vector, (value + strength) / 2, noise)
        for value, strength, vector in zip(values, strengths, vectors.T, strict=True)
    ]


def item_factor(found: Found, look: ItemView, row_bound: float | None = None) -> Floats:
    """Return the items' coordinates on a direction along which people vary with a variance of about 1.

    An item that few people rated enters the moment weakly; its coordinate is scaled up by the released
    counts, and shrunk by the known noise.
    """
    if found.value <= 0:
        return np.zeros_like(found.product)
    # The counts weigh people by their rows' lengths; a row bound weighs short rows less.
    shortened = 1.0
    if row_bound is not None:
        typical = math.hypot(TYPICAL_RESIDUAL, COUNT_PART) * math.sqrt(look.typical_length)
        shortened = min(1.0, typical * look.half / row_bound)
    counted = look.counts * shortened * math.sqrt(_WEIGHT_SPREAD / look.people)
    sums = found.product / math.sqrt(found.value)
    variance = found.noise**2 / found.value
    return shrink(sums, counted, variance, np.zeros((sums.size, 0))).mean
