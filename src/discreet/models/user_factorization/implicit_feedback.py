"""Learn item embeddings from implicit feedback: co-occurrence directions, and each item's embedding in them.

A user's contribution is a function of their items, the order of these, and earlier releases, scaled to length
at most 1. The proofs are in proofs/user_factorization.md and proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.core.progress import Progress
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.scorers.next_items import NextItems
from discreet.models.user_factorization import constants as tuned
from discreet.models.user_factorization.budget_split import ReleaseWeights, users_per_noise
from discreet.models.user_factorization.latent_factors import feature_prior
from discreet.models.user_factorization.order_in_time import Informs, order_informs
from discreet.models.user_factorization.public_features import learn_content
from discreet.models.user_factorization.recent import RecentReleases
from discreet.privacy.session import Session, share
from discreet.solvers.empirical_bayes import VoteEstimate, shrink_coordinates
from discreet.solvers.item_regression import regression_weights, strongest
from discreet.solvers.pair_shrinkage import denoised_pairs
from discreet.solvers.spectrum import clearest_part, edge_of_noise
from discreet.statistics.co_occurrence import BACK_PARTS, CoOccurrence
from discreet.statistics.counts import ItemVotes, UserCount
from discreet.statistics.item_context import ItemContext


def learn_implicit(
    session: Session,
    table: Floats | None,
    progress: Progress,
    words: Floats | None = None,
    recent: RecentReleases | None = None,
) -> InteractionScorer:
    """Release votes and, where it pays, item embeddings, for all of the session.

    With `recent`, which has a session of its own, items are as popular as they are now.
    """
    n_items, multiplier = session.n_items, session.multiplier
    public = np.zeros((n_items, 0)) if table is None else table
    counted = session.release(UserCount(), share(tuned.IMPLICIT_USERS_SHARE)).values
    people = max(float(counted[0]), 1.0)
    votes = ItemVotes(n_items=n_items, norm="l2")
    tally = VoteEstimate.of(*session.release(votes, share(tuned.IMPLICIT_VOTES_SHARE)))
    content = None
    if words is not None:
        content = learn_content(session, share(tuned.CONTENT_SHARE), words, tally.likely)
    progress("user-factorization", 1, 3)
    vectors = np.zeros((n_items, 0))
    ratio = users_per_noise(people, multiplier)
    pays = may_show(people, n_items, multiplier / np.sqrt(tuned.IMPLICIT_CO_OCCURRENCE_SHARE))
    decisions: dict[str, Any] = {
        "people per noise": round(ratio, 1) if multiplier else "inf",
        "a second moment can show taste": pays,
    }
    found, paired = None, None
    if pays:
        shares, weights = (share(tuned.IMPLICIT_CO_OCCURRENCE_SHARE), None), ReleaseWeights.of("lists")
        paired = pairs_in_order(session, tally, people, shares, weights, detailed=True)
        found = co_occurrence_directions(paired.pairs, tally, people)
        decisions["order informs"] = paired.informs
    progress("user-factorization", 2, 3)
    decisions["directions kept"] = found.kept if found else 0
    if paired and found and found.kept:
        vectors, tally = item_embeddings(session, session.left, tally, found, people, public, paired.weights)
        vectors = even_lengths(vectors, tally.likely)
    else:
        tally = tally.with_again(*session.release(votes, session.left))
    progress("user-factorization", 3, 3)
    if content is not None:
        decisions["weight of similar words"] = round(content.weight, 3)
        vectors = content.beside(vectors, tuned.LIST_RIDGE)
    following = next_items(paired, tally, people) if paired else NextItems.none()
    decisions |= {"items paired": following.items.size, "blend of pairs": round(following.blend, 3)}
    popularity = tally.likely if recent is None else recent.votes().likely
    return InteractionScorer.of(
        popularity, vectors, decisions, following, ordered=paired is None or paired.weights.ordered
    )


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
    session: Session,
    part: Fraction,
    tally: VoteEstimate,
    people: float,
    weights: ReleaseWeights,
    *,
    detailed: bool,
) -> ReleasedPairs:
    """Release the weighted co-occurrences of the most popular items, for this part of the budget.

    If they are `detailed` they have as many items and as much order as the noise allows.
    """
    multiplier = session.multiplier_of(part)
    detail = _detail(people, multiplier) if detailed else 0.0
    # Without order the weights by it are 1, in fine detail as well.
    fine = detail if weights.ordered else 0.0
    size = _co_occurrence_size(people, session.n_items, multiplier, weights, detail)
    top = np.sort(np.argsort(-tally.votes, kind="stable")[:size])
    power = _between(tuned.CO_OCCURRENCE_POWER, tuned.FINE_CO_OCCURRENCE_POWER, detail)
    weight = tally.raised[top] ** power
    statistic = CoOccurrence(
        n_items=session.n_items,
        top=top,
        weight=weight,
        near=_between(weights.pair_near, tuned.FINE_CO_OCCURRENCE_NEAR, fine),
        apart=_between(weights.pair_apart, tuned.FINE_CO_OCCURRENCE_APART, fine),
        back=round(BACK_PARTS * _between(1.0, tuned.FINE_CO_OCCURRENCE_BACK, fine)),
    )
    return ReleasedPairs(statistic, *session.release(statistic, part))


class PairsInOrder(NamedTuple):
    """Hold released co-occurrences, whether order in time informs, and the weights of what follows.

    `embeddings` is what is left of the budget's share for item embeddings.
    """

    pairs: ReleasedPairs
    informs: Informs
    weights: ReleaseWeights
    embeddings: Fraction


def pairs_in_order(
    session: Session,
    tally: VoteEstimate,
    people: float,
    shares: tuple[Fraction, Fraction | None],
    weights: ReleaseWeights,
    *,
    detailed: bool,
) -> PairsInOrder:
    """Release co-occurrences by order, whether order informs, and, if it does not, them without order.

    `shares` are those of co-occurrences and of embeddings, which may be all that is left. Whatever follows
    the first release is paid from the latter.
    """
    pairs = released_pairs(session, shares[0], tally, people, weights, detailed=detailed)
    embeddings = session.left if shares[1] is None else shares[1]
    if not (weights.ordered and session.has_times):
        return PairsInOrder(pairs, "not asked", weights, embeddings)
    order = share(tuned.ORDER_SHARE)
    informs = order_informs(session, order, pairs.asked, pairs.pairs, tally)
    embeddings -= order
    if informs == "no":
        again, weights = share(tuned.UNORDERED_PART) * embeddings, weights.without_order()
        pairs = released_pairs(session, again, tally, people, weights, detailed=detailed)
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
    session: Session,
    part: Fraction,
    tally: VoteEstimate,
    found: CoOccurrenceDirections,
    people: float,
    table: Floats,
    weights: ReleaseWeights | None = None,
) -> ItemEmbeddings:
    """Release the mean embedding of each item's users, computed without that item, and shrink by the noise.

    A user's other interactions are weighted by how close in time they are. Embeddings are shrunk toward what
    the public `table` predicts, if it has columns.
    """
    weights = weights or ReleaseWeights.of("lists")
    item_weights = tally.raised**weights.embedding_power
    counting = weights.embedding_count_part * math.sqrt(found.kept)
    context = ItemContext(
        vectors=found.vectors,
        squares=found.squares,
        longest=math.sqrt(found.kept + 2),
        item_weights=item_weights,
        count_part=counting,
        near=weights.near,
    )
    released, multiplier = session.release(context, part)
    sums, counted = context.split(released)
    counted = counted / counting
    tally = tally.with_more(counted, multiplier / counting, item_weights)
    counts = tally.expected(counted, item_weights)
    middle = sums.sum(axis=0) / max(float(counted.sum()), multiplier / counting, 1e-9)
    variance = multiplier**2 + _sampling_variance(counts, item_weights, people, found.kept + counting**2)
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
