"""Draw ratings for synthetic histories from the released effects and latent factors."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.data.facts import PublicFacts
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.released_histories import ReleasedHistories
from discreet.statistics.typical import TYPICAL_RESIDUAL


def draw_ratings(
    scorer: RatingScorer, lengths: Indices, items: Indices, random: np.random.Generator
) -> Floats:
    """Return a rating for every interaction, not yet on the scale.

    A user's bias and factors are normal, with the variances that the scorer's ridge implies. A rating
    deviates from its expectation as ratings usually do.
    """
    deviation = TYPICAL_RESIDUAL * (scorer.high - scorer.low) / 2
    spread = deviation / np.sqrt(np.maximum(scorer.ridge, 1e-12))
    own = random.standard_normal((lengths.size, spread.size)) * np.minimum(spread, scorer.high - scorer.low)
    users = np.repeat(np.arange(lengths.size), lengths)
    ratings = scorer.mean + scorer.item_bias[items] + own[users, 0]
    for factor in range(scorer.item_factors.shape[1]):
        ratings += own[users, 1 + factor] * scorer.item_factors[items, factor]
    noisy: Floats = ratings + deviation * random.standard_normal(items.size)
    return noisy


def on_scale(
    ratings: Floats, lengths: Indices, facts: PublicFacts, released: ReleasedHistories | None
) -> Floats:
    """Return ratings on the scale.

    With a step and released levels, the drawn ratings are cut where their order gives each level its released
    share; as in the release, all users count alike. Otherwise they are rounded to the step and clipped.
    """
    if facts.step is None:
        return np.clip(ratings, facts.low, facts.high)
    steps = round((facts.high - facts.low) / facts.step)
    if released is None or released.levels.size != steps + 1:
        return facts.low + facts.step * np.clip(np.rint((ratings - facts.low) / facts.step), 0, steps)
    order = np.argsort(ratings, kind="stable")
    weight = np.repeat(1.0 / np.maximum(lengths, 1), lengths)[order]
    place = np.cumsum(weight) / weight.sum()
    level = np.searchsorted(np.cumsum(released.levels)[:-1], place, side="left")
    values = np.empty(ratings.size)
    values[order] = facts.low + facts.step * level
    return np.clip(values, facts.low, facts.high)
