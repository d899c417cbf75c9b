"""Learn item embeddings from implicit feedback: co-occurrence directions, and each item's embedding in them.

A user's contribution is a function of their items, the order of these, and earlier releases, scaled to length
at most 1. The proofs are in proofs/user_factorization.md and proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.progress import Progress
from discreet.core.randomness import PrivacyRandom
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.user_factorization import constants as tuned
from discreet.models.user_factorization.budget_split import BudgetSplit, ReleaseWeights, users_per_noise
from discreet.models.user_factorization.latent_factors import feature_prior
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.solvers.empirical_bayes import VoteEstimate, shrink_coordinates
from discreet.solvers.spectrum import clearest_part, edge_of_noise
from discreet.statistics.co_occurrence import CoOccurrence
from discreet.statistics.counts import ItemVotes, UserCount
from discreet.statistics.data_source import DataSource
from discreet.statistics.item_context import ItemContext
from discreet.statistics.statistic import Statistic


def learn_implicit(
    data: DataSource, table: Floats | None, multiplier: float, random: PrivacyRandom, progress: Progress
) -> InteractionScorer:
    """Release votes and, where it pays, item embeddings; all cost one Gaussian of this multiplier."""
    public = np.zeros((data.n_items, 0)) if table is None else table
    budget = BudgetSplit(multiplier)
    people = max(float(_noisy(data, UserCount(), budget.take(tuned.IMPLICIT_USERS_SHARE), random)[0]), 1.0)
    votes, noise = ItemVotes(n_items=data.n_items, norm="l2"), budget.take(tuned.IMPLICIT_VOTES_SHARE)
    tally = VoteEstimate.of(_noisy(data, votes, noise, random), noise)
    progress("user-factorization", 1, 3)
    vectors = np.zeros((data.n_items, 0))
    ratio = users_per_noise(people, multiplier)
    pays = may_show(people, data.n_items, multiplier / np.sqrt(tuned.IMPLICIT_CO_OCCURRENCE_SHARE))
    decisions: dict[str, Any] = {
        "people per noise": round(ratio, 1) if multiplier else "inf",
        "a second moment can show taste": pays,
    }
    found = (
        co_occurrence_directions(data, tally, people, budget.take(tuned.IMPLICIT_CO_OCCURRENCE_SHARE), random)
        if pays
        else None
    )
    progress("user-factorization", 2, 3)
    decisions["directions kept"] = found.kept if found else 0
    if found and found.kept:
        vectors, tally = item_embeddings(data, tally, found, people, budget.take_rest(), public, random)
    else:
        noise = budget.take_rest()
        tally = tally.with_more(_noisy(data, votes, noise, random), noise, np.ones(data.n_items))
    progress("user-factorization", 3, 3)
    return InteractionScorer.of(tally.likely, vectors, decisions)


def _noisy(source: DataSource, statistic: Statistic, multiplier: float, random: PrivacyRandom) -> Floats:
    return Gaussian(sigma=multiplier, l2_sensitivity=1.0).release(source.total(statistic).steps(), random)


class CoOccurrenceDirections(NamedTuple):
    """Hold the co-occurrence directions above the noise: item coordinates and their squared weights.

    `guess` is a first estimate of the item embeddings, up to one factor per direction.
    """

    vectors: Floats
    squares: Floats
    guess: Floats

    @property
    def kept(self) -> int:
        """Return the number of directions."""
        return int(self.vectors.shape[1])


class ItemEmbeddings(NamedTuple):
    """Hold the item embeddings, and the votes combined with the counts of the same release."""

    vectors: Floats
    tally: VoteEstimate


def may_show(people: float, n_items: int, multiplier: float, weights: ReleaseWeights | None = None) -> bool:
    """Return whether co-occurrences with this noise can show more than popularity."""
    size = _co_occurrence_size(people, n_items, multiplier, weights or ReleaseWeights.of("lists"))
    return people >= tuned.USERS_PER_EDGE * edge_of_noise(size, multiplier, 0.0)


def _co_occurrence_size(people: float, n_items: int, multiplier: float, weights: ReleaseWeights) -> int:
    wanted = (
        weights.items_per_root * math.sqrt(people / multiplier)
        if multiplier
        else tuned.MOST_CO_OCCURRENCE_ITEMS
    )
    return min(
        max(int(min(wanted, tuned.MOST_CO_OCCURRENCE_ITEMS)), tuned.FEWEST_CO_OCCURRENCE_ITEMS), n_items
    )


def co_occurrence_directions(
    data: DataSource,
    tally: VoteEstimate,
    people: float,
    multiplier: float,
    random: PrivacyRandom,
    weights: ReleaseWeights | None = None,
) -> CoOccurrenceDirections:
    """Release weighted co-occurrences of the most popular items, and keep directions above the noise."""
    weights = weights or ReleaseWeights.of("lists")
    size = _co_occurrence_size(people, data.n_items, multiplier, weights)
    top = np.sort(np.argsort(-tally.votes, kind="stable")[:size])
    weight = tally.raised[top] ** tuned.CO_OCCURRENCE_POWER
    sums = data.total(
        CoOccurrence(
            n_items=data.n_items,
            top=top,
            weight=weight,
            near=weights.pair_near,
            apart=weights.pair_apart,
        )
    )
    pairs = Gaussian(sigma=multiplier, l2_sensitivity=1.0).release_symmetric(sums.steps(), random)
    # The first direction is popularity, which the votes already hold.
    part, found = clearest_part(
        pairs,
        np.argsort(-tally.votes[top], kind="stable"),
        multiplier,
        people,
        fewest=tuned.FEWEST_CO_OCCURRENCE_ITEMS,
        most=tuned.MOST_EMBEDDING_FACTORS + 1,
        above_edge=tuned.CO_OCCURRENCE_ABOVE_EDGE,
        beyond=1,
    )
    top, weight, size = top[part], weight[part], part.size
    strengths, basis = found.strengths[1:], found.vectors[:, 1:]
    spread = np.sqrt(strengths / people + 1 / size)
    vectors = np.zeros((data.n_items, strengths.size))
    vectors[top] = basis * weight[:, None] / spread
    squares = np.zeros(data.n_items)
    squares[top] = weight**2
    guess = np.zeros_like(vectors)
    variance = np.full(size, multiplier**2 / 2 + people / size**2)
    guess[top] = shrink_coordinates(basis * strengths, tally.raised[top] * weight, variance) / spread
    return CoOccurrenceDirections(vectors, squares, guess)


def item_embeddings(
    data: DataSource,
    tally: VoteEstimate,
    found: CoOccurrenceDirections,
    people: float,
    multiplier: float,
    table: Floats,
    random: PrivacyRandom,
    weights: ReleaseWeights | None = None,
) -> ItemEmbeddings:
    """Release the mean embedding of each item's users, computed without that item, and shrink by the noise.

    A user's other interactions are weighted by how close in time they are. Embeddings are shrunk toward what
    the public `table` predicts, if it has columns.
    """
    weights = weights or ReleaseWeights.of("lists")
    item_weights = tally.raised**weights.embedding_power
    part = weights.embedding_count_part * math.sqrt(found.kept)
    context = ItemContext(
        vectors=found.vectors,
        squares=found.squares,
        longest=math.sqrt(found.kept + 2),
        item_weights=item_weights,
        count_part=part,
        near=weights.near,
    )
    noise = Gaussian(sigma=multiplier, l2_sensitivity=1.0)
    sums, counted = context.split(noise.release(data.total(context).steps(), random))
    counted = counted / part
    tally = tally.with_more(counted, multiplier / part, item_weights)
    counts = tally.expected(counted, item_weights)
    middle = sums.sum(axis=0) / max(float(counted.sum()), multiplier / part, 1e-9)
    variance = multiplier**2 + _sampling_variance(counts, item_weights, people, found.kept + part**2)
    centered = sums - counts[:, None] * middle
    expected = found.guess * _slopes(found.guess, centered, counts, variance)
    vectors = expected + shrink_coordinates(centered - counts[:, None] * expected, counts, variance)
    if table.shape[1]:
        expected = expected + feature_prior(table, vectors - expected, counts**2 / variance)
        vectors = expected + shrink_coordinates(centered - counts[:, None] * expected, counts, variance)
    return ItemEmbeddings(vectors, tally)


def _slopes(guess: Floats, centered: Floats, counts: Floats, variance: Floats) -> Floats:
    """Return, for each direction, the regression slope of the embeddings on the co-occurrences' estimate."""
    weight = (counts / variance)[:, None]
    agreed = (weight * guess * centered).sum(axis=0)
    slopes: Floats = agreed / np.maximum((weight * counts[:, None] * guess**2).sum(axis=0), 1e-300)
    return np.maximum(slopes, 0.0)


def _sampling_variance(counts: Floats, item_weights: Floats, people: float, length: float) -> Floats:
    """Return the sampling variance of the sums, where embeddings have variance 1 in each direction."""
    return counts * item_weights * people / (length * max(float(counts @ (1 / item_weights)), 1.0))
