"""Learn how good each item is, and nothing else: the model every private factorization has to beat.

Budget and constants were settled on a validation part of one public data set and hold for all; they are
public. A person's whole contribution is scaled to length 1, so nothing is dropped and nothing is clipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from discreet.arrays import Floats
from discreet.checks import ParameterError
from discreet.contributions.crowd import Crowd
from discreet.contributions.item_sums import ItemResiduals
from discreet.contributions.people import MEAN_LENGTH, PersonMeans
from discreet.contributions.typical import COUNT_PART, TYPICAL_RESIDUAL, USER_RIDGE
from discreet.data.facts import PublicFacts
from discreet.models.estimator import Estimator, check_budget, joint_promise
from discreet.models.progress import Progress
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.accounting.gaussian import gaussian_multiplier, split_gaussian
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.randomness import PrivacyRandom
from discreet.solvers.shrinkage import Shrunken, shrink

# How the budget is shared: overall mean, a first look at the items, the final item effects.
SHARES = (0.02, 0.20, 0.78)
# Well-known items need less weight: a power of the (noisy) count.
_POPULARITY_POWER = -0.5
# How far the overall mean may lie from the middle of the scale, a priori.
_MEAN_SPREAD = 0.5
_LEAST_COUNT = 0.1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLook:
    """Hold what the first two releases told; ratings are in units where the scale is [-1, 1].

    `counts` are the items' noisy weighted counts, raised to at least their noise; `features` are a constant
    and the centered logarithm of `counts`, on which an item's quality may depend.
    """

    middle: float
    half: float
    mean: float
    people: float
    counts: Floats
    raw_counts: Floats
    features: Floats
    effects: Floats

    @property
    def typical_length(self) -> float:
        """Return about how many ratings a person has, from the counts and the number of people."""
        root = max(float(self.raw_counts.sum()), 0.0) * math.hypot(TYPICAL_RESIDUAL, COUNT_PART) / self.people
        return root**2

    def unit(self, ratings: Floats) -> Floats:
        """Return ratings in units where the scale is [-1, 1]."""
        return (ratings - self.middle) / self.half


def release_biases(
    data: Crowd, multiplier: float, random: PrivacyRandom, progress: Progress
) -> tuple[FirstLook, Shrunken]:
    """Release the overall mean and every item's effect; together one Gaussian with this multiplier.

    `multiplier=0` adds no noise. The proof is in proofs/biases.md.
    """
    mean, look, final = [0.0] * 3 if multiplier == 0 else split_gaussian(multiplier, SHARES)
    seen = first_look(data, mean, look, random)
    progress("biases", 1, 2)
    effects = final_effects(data, seen, final, random)
    progress("biases", 2, 2)
    return seen, effects


def first_look(data: Crowd, mean_multiplier: float, multiplier: float, random: PrivacyRandom) -> FirstLook:
    """Release the overall mean, and a first estimate of every item's effect and count."""
    low, high = data.facts.low, data.facts.high
    if low >= high:
        raise ParameterError(
            f"The rating scale from {low:g} to {high:g} leaves nothing to learn. Declare the scale."
        )
    middle, half = (low + high) / 2, (high - low) / 2
    mean, people = _release_mean(data, middle, half, mean_multiplier, random)
    even = np.ones(data.n_items)
    plain = ItemResiduals(middle=middle, half=half, mean=mean, effects=np.zeros(data.n_items), pull=even)
    sums, raw = _release_residuals(data, plain, multiplier, random)
    counts = raise_counts(raw, multiplier)
    logarithm = np.log(counts)
    features = np.stack([even, logarithm - np.average(logarithm, weights=counts)], axis=1)
    variance = sum_variance(counts, even, people, multiplier)
    return FirstLook(
        middle=middle,
        half=half,
        mean=mean,
        people=people,
        counts=counts,
        raw_counts=raw,
        features=features,
        effects=shrink(sums, counts, variance, features).mean,
    )


def final_effects(data: Crowd, seen: FirstLook, multiplier: float, random: PrivacyRandom) -> Shrunken:
    """Release every item's effect again, now with residuals and weights that the first look allows."""
    return shrink_effects(seen, release_effects(data, seen, multiplier, random))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSums:
    """Hold items' released sums of residuals and of weights, and the multiplier of their noise."""

    sums: Floats
    raw_counts: Floats
    multiplier: float

    def with_more(self, other: EffectSums) -> EffectSums:
        """Return what two releases of the same sums say together, each by its precision."""
        if not (self.multiplier and other.multiplier):
            return other
        first, second = self.multiplier**-2, other.multiplier**-2
        return EffectSums(
            sums=(first * self.sums + second * other.sums) / (first + second),
            raw_counts=(first * self.raw_counts + second * other.raw_counts) / (first + second),
            multiplier=(first + second) ** -0.5,
        )


def release_effects(data: Crowd, seen: FirstLook, multiplier: float, random: PrivacyRandom) -> EffectSums:
    """Release what ratings leave of the first look's effects, by item; one person's vector has length 1."""
    told = ItemResiduals(
        middle=seen.middle,
        half=seen.half,
        mean=seen.mean,
        effects=seen.effects,
        pull=seen.counts**_POPULARITY_POWER,
    )
    sums, raw = _release_residuals(data, told, multiplier, random)
    return EffectSums(sums=sums, raw_counts=raw, multiplier=multiplier)


def shrink_effects(seen: FirstLook, released: EffectSums) -> Shrunken:
    """Return items' effects from released sums, shrunk by the known noise."""
    counts = raise_counts(released.raw_counts, released.multiplier)
    variance = sum_variance(counts, seen.counts**_POPULARITY_POWER, seen.people, released.multiplier)
    return shrink(released.sums + counts * seen.effects, counts, variance, seen.features)


def _release_mean(
    crowd: Crowd, middle: float, half: float, multiplier: float, random: PrivacyRandom
) -> tuple[float, float]:
    """Release the mean of people's means and how many people there are; shrink the mean by its noise."""
    sigma = multiplier * MEAN_LENGTH
    told = Gaussian(sigma=sigma, l2_sensitivity=MEAN_LENGTH).release(
        crowd.total(PersonMeans(middle=middle, half=half)).steps(), random
    )
    people = max(2 * told[1], 2 * sigma, 1.0)
    mean = people * told[0] / (people**2 + (sigma / _MEAN_SPREAD) ** 2)
    return float(np.clip(mean, -1, 1)), float(people)


def _release_residuals(
    crowd: Crowd, residuals: ItemResiduals, multiplier: float, random: PrivacyRandom
) -> tuple[Floats, Floats]:
    """Release each item's weighted sum of residuals and of weights; one person's vector has length 1."""
    noise = Gaussian(sigma=multiplier, l2_sensitivity=1.0)
    sums, counts = noise.release(crowd.total(residuals).steps(), random)
    return sums, counts / COUNT_PART


def raise_counts(raw: Floats, multiplier: float) -> Floats:
    """Return noisy counts, none below its own noise."""
    return np.maximum(raw, max(multiplier / COUNT_PART, _LEAST_COUNT))


def sum_variance(counts: Floats, pull: Floats, people: float, multiplier: float) -> Floats:
    """Return the variance of the items' sums: the known noise, and what chance puts into few ratings.

    A person with n ratings weighs each by about 1/sqrt(n (typical^2 + part^2)), so the released counts and
    the number of people tell the typical weight of one rating.
    """
    spread = TYPICAL_RESIDUAL**2
    person = people / ((spread + COUNT_PART**2) * max(float(counts @ (1 / pull)), 1.0))
    return multiplier**2 + spread * person * pull * counts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Biases(Estimator):
    """Predict each rating from the item's (noisy) quality and the person's own generosity.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person,
        against everyone else (proofs/biases.md). Three releases share the budget.

    Noise
        A person's vector in every sum has length at most 1, so release j adds N(0, (M / sqrt(s_j))^2) to each
        entry, with M the multiplier of one Gaussian release that is (`epsilon`, `delta`)-private and shares s
        = (0.02, 0.20, 0.78).

    Example:
        >>> from discreet import Biases, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Biases(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/biases.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3
    """

    name: ClassVar[str] = "biases"
    source: ClassVar[str] = "ours, after McSherry and Mironov 2009"

    epsilon: float
    delta: float = 1e-6

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise; it depends on epsilon and delta alone."""
        return joint_promise(self, facts, "proofs/biases.md")

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the three Gaussian releases."""
        if math.isinf(self.epsilon):
            return ()
        multipliers = split_gaussian(gaussian_multiplier(self.epsilon, self.delta), SHARES)
        return [Gaussian(sigma=multiplier, l2_sensitivity=1.0).event() for multiplier in multipliers]

    def rows_needed(self) -> str | None:
        """Ask for no rows: sums over people are enough."""
        return None

    def _train(self, data: Crowd, random: PrivacyRandom, progress: Progress) -> Scorer:
        multiplier = 0.0 if math.isinf(self.epsilon) else gaussian_multiplier(self.epsilon, self.delta)
        seen, effects = release_biases(data, multiplier, random, progress)
        return RatingScorer(
            mean=seen.middle + seen.half * seen.mean,
            item_bias=seen.half * effects.mean,
            item_factors=np.zeros((data.n_items, 0)),
            ridge=np.array([USER_RIDGE]),
            low=data.facts.low,
            high=data.facts.high,
        )
