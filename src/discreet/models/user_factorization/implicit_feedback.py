"""Learn item embeddings from implicit feedback: co-occurrence directions, and each item's embedding in them.

A user's contribution is a function of their items, the order of these, and earlier releases, scaled to length
at most 1. The proofs are in proofs/user_factorization.md and proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.core.progress import Progress
from discreet.core.randomness import PrivacyRandom
from discreet.models.recency import may_have_times
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.scorers.next_items import NextItems
from discreet.models.user_factorization import constants as tuned
from discreet.models.user_factorization.budget_split import BudgetSplit, ReleaseWeights, users_per_noise
from discreet.models.user_factorization.latent_factors import feature_prior
from discreet.models.user_factorization.order_in_time import Informs, order_informs
from discreet.models.user_factorization.public_features import learn_content
from discreet.models.user_factorization.recent import RecentBudget
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.solvers.empirical_bayes import VoteEstimate, shrink_coordinates
from discreet.solvers.item_regression import regression_weights, strongest
from discreet.solvers.pair_shrinkage import denoised_pairs
from discreet.solvers.spectrum import clearest_part, edge_of_noise
from discreet.statistics.co_occurrence import BACK_PARTS, CoOccurrence
from discreet.statistics.counts import ItemVotes, UserCount
from discreet.statistics.data_source import DataSource
from discreet.statistics.item_context import ItemContext
from discreet.statistics.statistic import Statistic


def learn_implicit(
    data: DataSource,
    table: Floats | None,
    multiplier: float,
    random: PrivacyRandom,
    progress: Progress,
    words: Floats | None = None,
    recent: RecentBudget | None = None,
) -> InteractionScorer:
    """Release votes and, where it pays, item embeddings; all cost one Gaussian of this multiplier.

    With `recent`, which has a multiplier of its own, items are as popular as they are of late.
    """
    public = np.zeros((data.n_items, 0)) if table is None else table
    budget = BudgetSplit(multiplier)
    people = max(float(_noisy(data, UserCount(), budget.take(tuned.IMPLICIT_USERS_SHARE), random)[0]), 1.0)
    votes, noise = ItemVotes(n_items=data.n_items, norm="l2"), budget.take(tuned.IMPLICIT_VOTES_SHARE)
    tally = VoteEstimate.of(_noisy(data, votes, noise, random), noise)
    content = None
    if words is not None:
        content = learn_content(data, words, tally.likely, budget.take(tuned.CONTENT_SHARE), random)
    progress("user-factorization", 1, 3)
    vectors = np.zeros((data.n_items, 0))
    ratio = users_per_noise(people, multiplier)
    pays = may_show(people, data.n_items, multiplier / np.sqrt(tuned.IMPLICIT_CO_OCCURRENCE_SHARE))
    decisions: dict[str, Any] = {
        "people per noise": round(ratio, 1) if multiplier else "inf",
        "a second moment can show taste": pays,
    }
    found, paired = None, None
    if pays:
        shares, weights = (tuned.IMPLICIT_CO_OCCURRENCE_SHARE, None), ReleaseWeights.of("lists")
        paired = pairs_in_order(data, tally, people, budget, shares, random, weights, detailed=True)
        found = co_occurrence_directions(paired.pairs, tally, people)
        decisions["order informs"] = paired.informs
    progress("user-factorization", 2, 3)
    decisions["directions kept"] = found.kept if found else 0
    if paired and found and found.kept:
        given = (data, tally, found, people, budget.take_rest(), public, random)
        vectors, tally = item_embeddings(*given, paired.weights)
        vectors = even_lengths(vectors, tally.likely)
    else:
        noise = budget.take_rest()
        tally = tally.with_again(_noisy(data, votes, noise, random), noise)
    progress("user-factorization", 3, 3)
    if content is not None:
        decisions["weight of similar words"] = round(content.weight, 3)
        vectors = content.beside(vectors, tuned.LIST_RIDGE)
    following = next_items(paired, tally, people) if paired else NextItems.none()
    decisions |= {"items paired": following.items.size, "blend of pairs": round(following.blend, 3)}
    popularity = tally.likely if recent is None else recent.votes(data, random).likely
    return InteractionScorer.of(
        popularity, vectors, decisions, following, ordered=paired is None or paired.weights.ordered
    )


def _noisy(source: DataSource, statistic: Statistic, multiplier: float, random: PrivacyRandom) -> Floats:
    return Gaussian(sigma=multiplier, l2_sensitivity=1.0).release(source.total(statistic).steps(), random)


class ReleasedPairs(NamedTuple):
    """Hold the released sum of `asked`, the co-occurrences of `items`: (i, j) is mostly that j follows i.

    `noise` is the deviation of the noise on each entry.
    """

    asked: CoOccurrence
    pairs: Floats
    noise: float

    @property
    def items(self) -> Indices:
        """Return the items that take part."""
        return self.asked.top

    @property
    def weight(self) -> Floats:
        """Return their weights."""
        return self.asked.weight

    @property
    def back(self) -> float:
        """Return the weight of the direction back."""
        return self.asked.back / BACK_PARTS


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


def _co_occurrence_size(
    people: float, n_items: int, multiplier: float, weights: ReleaseWeights, detail: float = 0.0
) -> int:
    most = tuned.MOST_CO_OCCURRENCE_ITEMS if detail else tuned.MOST_DIRECTION_ITEMS
    wanted = weights.items_per_root * math.sqrt(people / multiplier) * (1 + detail) if multiplier else most
    return min(max(int(min(wanted, most)), tuned.FEWEST_CO_OCCURRENCE_ITEMS), n_items)


def _detail(people: float, multiplier: float) -> float:
    """Return how much detail co-occurrences may have: 0 where noise rules, 1 without noise."""
    ratio = users_per_noise(people, multiplier)
    return ratio / (ratio + tuned.DETAIL_USERS_PER_NOISE) if multiplier else 1.0


def _between(coarse: float, fine: float, detail: float) -> float:
    return coarse + (fine - coarse) * detail


def released_pairs(
    data: DataSource,
    tally: VoteEstimate,
    people: float,
    multiplier: float,
    random: PrivacyRandom,
    weights: ReleaseWeights,
    *,
    detailed: bool,
) -> ReleasedPairs:
    """Release the weighted co-occurrences of the most popular items.

    If they are `detailed` they have as many items and as much order as the noise allows.
    """
    detail = _detail(people, multiplier) if detailed else 0.0
    # Without order the weights by it are 1, in fine detail as well.
    fine = detail if weights.ordered else 0.0
    size = _co_occurrence_size(people, data.n_items, multiplier, weights, detail)
    top = np.sort(np.argsort(-tally.votes, kind="stable")[:size])
    power = _between(tuned.CO_OCCURRENCE_POWER, tuned.FINE_CO_OCCURRENCE_POWER, detail)
    weight = tally.raised[top] ** power
    statistic = CoOccurrence(
        n_items=data.n_items,
        top=top,
        weight=weight,
        near=_between(weights.pair_near, tuned.FINE_CO_OCCURRENCE_NEAR, fine),
        apart=_between(weights.pair_apart, tuned.FINE_CO_OCCURRENCE_APART, fine),
        back=round(BACK_PARTS * _between(1.0, tuned.FINE_CO_OCCURRENCE_BACK, fine)),
    )
    noise = Gaussian(sigma=multiplier, l2_sensitivity=1.0)
    pairs = noise.release(data.total(statistic).steps(), random)
    return ReleasedPairs(statistic, pairs, multiplier)


class PairsInOrder(NamedTuple):
    """Hold released co-occurrences, whether order in time informs, and the weights of what follows.

    `embeddings` is what is left of the budget's share for item embeddings.
    """

    pairs: ReleasedPairs
    informs: Informs
    weights: ReleaseWeights
    embeddings: float


def pairs_in_order(
    data: DataSource,
    tally: VoteEstimate,
    people: float,
    budget: BudgetSplit,
    shares: tuple[float, float | None],
    random: PrivacyRandom,
    weights: ReleaseWeights,
    *,
    detailed: bool,
) -> PairsInOrder:
    """Release co-occurrences by order, whether order informs, and, if it does not, them without order.

    `shares` are those of co-occurrences and of embeddings, which may be all that is left. Whatever follows
    the first release is paid from the latter.
    """
    pairs = released_pairs(data, tally, people, budget.take(shares[0]), random, weights, detailed=detailed)
    embeddings = budget.left if shares[1] is None else shares[1]
    if not (weights.ordered and may_have_times(data)):
        return PairsInOrder(pairs, "not asked", weights, embeddings)
    noise = budget.take(tuned.ORDER_SHARE)
    informs = order_informs(data, pairs.asked, pairs.pairs, tally, noise, random)
    embeddings -= tuned.ORDER_SHARE
    if informs == "no":
        again, weights = tuned.UNORDERED_PART * embeddings, weights.without_order()
        pairs = released_pairs(data, tally, people, budget.take(again), random, weights, detailed=detailed)
        embeddings -= again
    return PairsInOrder(pairs, informs, weights, embeddings)


def co_occurrence_directions(
    pairs: ReleasedPairs, tally: VoteEstimate, people: float
) -> CoOccurrenceDirections:
    """Return the directions of released co-occurrences that are above the noise."""
    top, weight, multiplier = pairs.items, pairs.weight, pairs.noise
    # Directions need the most popular items only; noise in either half has half of the variance.
    best = np.argsort(-tally.votes[top], kind="stable")[: tuned.MOST_DIRECTION_ITEMS]
    inside = np.sort(best)
    top, weight = top[inside], weight[inside]
    square = pairs.pairs[np.ix_(inside, inside)]
    # The first direction is popularity, which the votes already hold.
    part, found = clearest_part(
        (square + square.T) / 2,
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
    vectors = np.zeros((tally.votes.size, strengths.size))
    vectors[top] = basis * weight[:, None] / spread
    squares = np.zeros(tally.votes.size)
    squares[top] = weight**2
    guess = np.zeros_like(vectors)
    variance = np.full(size, multiplier**2 / 2 + people / size**2)
    guess[top] = shrink_coordinates(basis * strengths, tally.raised[top] * weight, variance) / spread
    return CoOccurrenceDirections(vectors, squares, guess)


def next_items(paired: PairsInOrder, tally: VoteEstimate, people: float) -> NextItems:
    """Return how much each paired item speaks for each other one, from released numbers alone.

    The less noise there is, the more of a list follows these weights. Without pairs, none of it does.
    """
    pairs = paired.pairs
    votes = tally.raised[pairs.items]
    clean = denoised_pairs(
        pairs.pairs, pairs.noise, people, votes * pairs.weight, most=tuned.MOST_PAIR_DIRECTIONS
    )
    weights = regression_weights(
        clean,
        pairs.back,
        votes,
        pairs.weight,
        by_votes=tuned.PAIR_RIDGE,
        ridge=tuned.PAIR_RIDGE_VOTES,
    )
    if weights is None:
        return NextItems.none()
    neighbors = strongest(weights, tuned.MOST_NEIGHBORS)
    return NextItems(
        items=pairs.items,
        neighbors=neighbors.items,
        weights=neighbors.weights,
        blend=_blend(people, pairs.noise),
        fading=tuned.PAIR_FADING if paired.weights.ordered else 0.0,
    )


def _blend(people: float, noise: float) -> float:
    """Return the part of a list's probability that follows pairs, by users per unit of noise in them.

    Pairs of few users are chance, so the part is smaller there even without noise.
    """
    largest = tuned.PAIR_BLEND * people / (people + tuned.PAIR_BLEND_USERS)
    if not noise:
        return largest
    ratio = users_per_noise(people, noise)
    some = ratio / (ratio + tuned.SOME_BLEND_USERS)
    most = ratio / (ratio + tuned.MOST_BLEND_USERS)
    return min(_between(tuned.SOME_BLEND * some, tuned.PAIR_BLEND, most), largest)


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


def even_lengths(vectors: Floats, popularity: Floats) -> Floats:
    """Return embeddings around their mean, whose lengths differ the less, the more directions there are.

    In one direction the length says how far an item is from the others. In many it says mostly how clearly
    the item is seen, and products with long vectors would decide every list.
    """
    share = popularity / popularity.sum()
    centered: Floats = vectors - share @ vectors
    squares = (centered**2).sum(axis=1)
    usual = max(float(share @ squares), 1e-150)
    square = vectors.shape[1] ** 2
    even = square / (square + tuned.EVEN_DIRECTIONS**2)
    centered *= ((squares + tuned.SHORT_EMBEDDING**2 * usual) ** (-even / 2))[:, None]
    return centered


def _slopes(guess: Floats, centered: Floats, counts: Floats, variance: Floats) -> Floats:
    """Return, for each direction, the regression slope of the embeddings on the co-occurrences' estimate."""
    weight = (counts / variance)[:, None]
    agreed = (weight * guess * centered).sum(axis=0)
    slopes: Floats = agreed / np.maximum((weight * counts[:, None] * guess**2).sum(axis=0), 1e-300)
    return np.maximum(slopes, 0.0)


def _sampling_variance(counts: Floats, item_weights: Floats, people: float, length: float) -> Floats:
    """Return the sampling variance of the sums, where embeddings have variance 1 in each direction."""
    return counts * item_weights * people / (length * max(float(counts @ (1 / item_weights)), 1.0))
