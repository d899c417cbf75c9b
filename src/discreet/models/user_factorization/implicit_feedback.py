"""Learn item embeddings from implicit feedback: co-occurrence directions, and each item's embedding in them.

A user's contribution is a function of their items, the order of these, and earlier releases, scaled to length
at most 1. Times may be those of an import, or drawn at random. So after the co-occurrences three numbers are
released: how well they predict each user's own order, without that user's part in them. If order doesn't
inform, the rest learns as from data without times.

Released co-occurrences cover the most popular items, because noise hides the pairs of all others. Without
noise, `whole_catalog` counts the other pairs as well. The proofs are in proofs/user_factorization.md and
proofs/user_factorization_implicit.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.core import Floats, Indices, Progress
from discreet.data import Interactions
from discreet.models.released_items import RecentReleases
from discreet.models.scorers.interactions import FADING, InteractionScorer, NextItems
from discreet.models.user_factorization.latent_factors import feature_prior
from discreet.models.user_factorization.public_features import learn_content
from discreet.models.user_factorization.settings import (
    FactorizationSettings,
    detail,
    part_of_pairs,
    users_per_noise,
)
from discreet.models.user_factorization.votes_first import last_votes, share_for_votes
from discreet.privacy import Session, share
from discreet.solvers import (
    LocalPairs,
    OrderWeights,
    VoteEstimate,
    clearest_part,
    denoised_pairs,
    edge_of_noise,
    regression_weights,
    shrink_coordinates,
    strongest,
    strongest_of_sparse,
)
from discreet.statistics import BACK_PARTS, CoOccurrence, ItemContext, ItemVotes, OrderEvidence, UserCount
from discreet.statistics.typical import COUNT_PART

# Standard deviations that make a finding sure.
_SURE = 2.0

Informs = Literal["yes", "no", "cannot tell", "not asked"]


def order_informs(
    session: Session,
    share: Fraction,
    asked: CoOccurrence,
    pairs: Floats,
    tally: VoteEstimate,
    least_order: float,
) -> Informs:
    """Release how well co-occurrences predict the order of interactions, and return whether it informs.

    `pairs` is the released sum of `asked`. Order informs if the mean correlation is surely positive. It does
    not if that is surely below `least_order`. The deviation is that of the noise and, from the released sum
    of squares, of sampling.
    """
    # Entries have about the variance that popularity expects; dividing by its root makes them comparable.
    scale = 1 / np.sqrt(tally.raised[asked.top] * asked.weight)
    evidence = OrderEvidence(asked=asked, pairs=pairs, scale=scale / scale.max())
    (total, half_squares, halves), sigma = session.release(evidence, share)
    unsure = _SURE * math.sqrt(max(2 * half_squares, 0.0) + sigma**2)
    if total + unsure < least_order * 2 * halves:
        return "no"
    return "yes" if total > unsure else "cannot tell"


# Weights of count^-1/2 give all co-occurrences one variance. Without noise, each counts as it is.
_EQUAL_VARIANCE = -0.5
# An eigenvalue is kept from the edge of the noise's spectrum on: what is seen is shrunk later.
_ABOVE_EDGE = 1.0
# Some of a list always follows embeddings and popularity, so that items without pairs keep an order.
_MOST_BLEND = 0.999


def learn_implicit(
    session: Session,
    table: Floats | None,
    progress: Progress,
    settings: FactorizationSettings,
    words: Floats | None = None,
    recent: RecentReleases | None = None,
) -> InteractionScorer:
    """Release votes and, if they help, item embeddings, for all of the session.

    With `recent`, which has a session of its own, items are as popular as they are now.
    """
    n_items, multiplier = session.n_items, session.multiplier
    public = np.zeros((n_items, 0)) if table is None else table
    counted = session.release(UserCount(), share(settings.question_share)).values
    people = max(float(counted[0]), 1.0)
    votes = ItemVotes(n_items=n_items, norm="l2")
    first, noise = session.release(votes, share(settings.first_share))
    tally = VoteEstimate.of(first, noise)
    known = KnownVotes(session, settings, people, tally)
    # A user with n interactions has n^(1/2) votes.
    length = (max(float(first.sum()), 0.0) / people) ** 2
    part = part_of_pairs(length, settings)
    needed = share_for_votes(first, noise, multiplier, settings.first_share, pairs=float(part))
    content = None
    if words is not None:
        content = learn_content(session, share(settings.question_share), words, tally.likely)
    progress("user-factorization", 1, 3)
    vectors = np.zeros((n_items, 0))
    ratio = users_per_noise(people, multiplier)
    part *= session.left
    more = share(needed or 1.0) - share(settings.first_share)
    if needed is not None and more > 0:
        part *= (session.left - more) / session.left
    pays = may_show(people, n_items, multiplier / math.sqrt(part), settings)
    decisions: dict[str, Any] = {
        "users per noise": round(ratio, 1) if multiplier else "inf",
        "votes need": needed if needed is not None else "all",
        "enough users for factors": pays,
    }
    found, paired = None, None
    if pays and needed is not None:
        if more > 0:
            tally = tally.with_again(*session.release(votes, more))
        known = known._replace(tally=tally)
        paired = known.pairs_in_order((part, None), settings.order, detailed=True)
        found = known.directions(paired.pairs)
        decisions["order informs"] = paired.informs
    progress("user-factorization", 2, 3)
    decisions["directions kept"] = found.kept if found else 0
    if paired and found and found.kept:
        vectors, tally = known.embeddings(session.left, found, public, near=paired.weights.near)
        vectors = even_lengths(vectors, tally.likely)
    else:
        tally = last_votes(session, tally, people)
    progress("user-factorization", 3, 3)
    if content is not None:
        decisions["weight of similar words"] = round(content.weight, 3)
        vectors = content.beside(vectors, settings.lists.ridge)
    ordered = paired is None or paired.weights.ordered
    following = known._replace(tally=tally).next_items(paired) if paired else NextItems()
    following = whole_catalog(session, settings, blend=following.blend, ordered=ordered) or following
    decisions |= {"items paired": following.items.size, "blend of pairs": round(following.blend, 3)}
    popularity = tally.likely if recent is None else recent.votes().likely
    return InteractionScorer.of(
        popularity,
        vectors,
        decisions,
        following,
        ordered=ordered,
        settings=settings.lists,
    )


class ReleasedPairs(NamedTuple):
    """The released sum of `asked`, the co-occurrences of `items`: (i, j) is mostly that j follows i.

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
    """The co-occurrence directions above the noise: item coordinates and their squared weights.

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
    """The item embeddings, and the votes combined with the counts of the same release."""

    vectors: Floats
    tally: VoteEstimate


def may_show(people: float, n_items: int, multiplier: float, settings: FactorizationSettings) -> bool:
    """Return whether co-occurrences with this noise can show more than popularity."""
    size = _co_occurrence_size(people, n_items, multiplier, settings)
    return people >= settings.users_per_edge * edge_of_noise(size, multiplier, 0.0)


def _co_occurrence_size(
    people: float,
    n_items: int,
    multiplier: float,
    settings: FactorizationSettings,
    fine: float = 0.0,
) -> int:
    most = settings.most_co_occurrence_items if fine else settings.most_direction_items
    wanted = settings.items_per_root * math.sqrt(people / multiplier) * (1 + fine) if multiplier else most
    return min(max(int(min(wanted, most)), settings.fewest_items), n_items)


class PairsInOrder(NamedTuple):
    """Released co-occurrences, whether order in time matters, and the weights of following items.

    `embeddings` is what is left of the budget's share for item embeddings.
    """

    pairs: ReleasedPairs
    informs: Informs
    weights: OrderWeights
    embeddings: Fraction


class KnownVotes(NamedTuple):
    """The session of a fit, its settings, and what is known of its users and items so far."""

    session: Session
    settings: FactorizationSettings
    people: float
    tally: VoteEstimate

    def pairs(self, part: Fraction, weights: OrderWeights, *, detailed: bool) -> ReleasedPairs:
        """Release the weighted co-occurrences of the most popular items, for this part of the budget.

        If they are `detailed` they have as many items and as much order as the noise allows.
        """
        session, settings, people, tally = self
        multiplier = session.multiplier_of(part)
        fine = detail(users_per_noise(people, multiplier), settings) if detailed else 0.0
        size = _co_occurrence_size(people, session.n_items, multiplier, settings, fine)
        top = np.sort(np.argsort(-tally.votes, kind="stable")[:size])
        weight = tally.raised[top] ** (_EQUAL_VARIANCE * (1 - fine))
        statistic = CoOccurrence(
            n_items=session.n_items,
            top=top,
            weight=weight,
            near=weights.near,
            apart=weights.apart,
            back=round(BACK_PARTS * (1 - (1 - weights.back) * fine)),
        )
        return ReleasedPairs(statistic, *session.release(statistic, part))

    def pairs_in_order(
        self, shares: tuple[Fraction, Fraction | None], weights: OrderWeights, *, detailed: bool
    ) -> PairsInOrder:
        """Release co-occurrences by order, whether order informs, and, if it does not, them without order.

        `shares` are those of co-occurrences and of embeddings, which may be all that is left. What follows
        the first release is spent from the latter.
        """
        session, settings, _, tally = self
        pairs = self.pairs(shares[0], weights, detailed=detailed)
        embeddings = session.left if shares[1] is None else shares[1]
        if not (weights.ordered and session.has_times):
            return PairsInOrder(pairs, "not asked", weights, embeddings)
        order = share(settings.question_share)
        informs = order_informs(session, order, pairs.asked, pairs.pairs, tally, settings.least_order)
        embeddings -= order
        if informs == "no":
            # Two releases are still to come, and both count: each gets half.
            again, weights = embeddings / 2, OrderWeights()
            pairs = self.pairs(again, weights, detailed=detailed)
            embeddings -= again
        return PairsInOrder(pairs, informs, weights, embeddings)

    def directions(self, pairs: ReleasedPairs) -> CoOccurrenceDirections:
        """Return the directions of released co-occurrences that are above the noise."""
        _, settings, people, tally = self
        top, weight, multiplier = pairs.items, pairs.weight, pairs.noise
        # Directions need the most popular items only; noise in either half has half of the variance.
        best = np.argsort(-tally.votes[top], kind="stable")[: settings.most_direction_items]
        inside = np.sort(best)
        top, weight = top[inside], weight[inside]
        square = pairs.pairs[np.ix_(inside, inside)]
        # The first direction is popularity, which the votes already hold.
        part, found = clearest_part(
            (square + square.T) / 2,
            np.argsort(-tally.votes[top], kind="stable"),
            multiplier,
            people,
            fewest=settings.fewest_items,
            most=settings.most_embedding_factors + 1,
            above_edge=_ABOVE_EDGE,
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

    def next_items(self, paired: PairsInOrder) -> NextItems:
        """Return how much each paired item supports each other one, from released numbers alone.

        The less noise there is, the more of a list follows these weights. Without pairs, none of it does.
        """
        _, settings, people, tally = self
        pairs = paired.pairs
        votes = tally.raised[pairs.items]
        clean = denoised_pairs(
            pairs.pairs, pairs.noise, people, votes * pairs.weight, most=settings.most_pair_directions
        )
        weights = regression_weights(
            clean,
            pairs.back,
            votes,
            pairs.weight,
            by_votes=settings.pair_ridge,
            ridge=settings.pair_ridge_users,
        )
        if weights is None:
            return NextItems()
        neighbors = strongest(weights, settings.most_neighbors)
        return NextItems(
            items=pairs.items,
            neighbors=neighbors.items,
            weights=neighbors.weights,
            blend=_blend(people, pairs.noise, settings),
            fading=FADING if paired.weights.ordered else 0.0,
        )

    def embeddings(
        self, part: Fraction, found: CoOccurrenceDirections, table: Floats, *, near: float
    ) -> ItemEmbeddings:
        """Release the mean embedding of each item's users, computed without that item; shrink by the noise.

        A user's other interactions are weighted by how close in time they are. Embeddings are shrunk toward
        what the public `table` predicts, if it has columns.
        """
        session, settings, people, tally = self
        item_weights = tally.raised**settings.weight_power
        counting = COUNT_PART * math.sqrt(found.kept)
        context = ItemContext(
            vectors=found.vectors,
            squares=found.squares,
            longest=math.sqrt(found.kept + 2),
            item_weights=item_weights,
            count_part=counting,
            near=near,
        )
        released, multiplier = session.release(context, part)
        sums, counted = context.split(released)
        counted = counted / counting
        tally = tally.with_more(counted, multiplier / counting, item_weights)
        counts = tally.expected(counted, multiplier / counting, item_weights)
        middle = sums.sum(axis=0) / max(float(counted.sum()), multiplier / counting, 1e-9)
        variance = multiplier**2 + _sampling_variance(counts, item_weights, people, found.kept + counting**2)
        centered = sums - counts[:, None] * middle
        expected = found.guess * _slopes(found.guess, centered, counts, variance)
        vectors = expected + shrink_coordinates(centered - counts[:, None] * expected, counts, variance)
        if table.shape[1]:
            expected = expected + feature_prior(table, vectors - expected, counts**2 / variance)
            vectors = expected + shrink_coordinates(centered - counts[:, None] * expected, counts, variance)
        return ItemEmbeddings(vectors, tally)


def _blend(people: float, noise: float, settings: FactorizationSettings) -> float:
    """Return the part of a list's probability that follows pairs, by users per unit of noise in them.

    Pairs of few users are chance, so the part is smaller there even without noise. With noise it follows the
    root of the users per unit of noise, as the number of items in co-occurrences does.
    """
    largest = min(people / (people + settings.pair_users), _MOST_BLEND)
    if not noise:
        return largest
    root, half = math.sqrt(users_per_noise(people, noise)), math.sqrt(settings.detail_users_per_noise)
    return largest * root / (root + half)


def even_lengths(vectors: Floats, popularity: Floats) -> Floats:
    """Return embeddings around their mean, whose lengths differ the less, the more directions there are.

    In one direction the length shows how far an item is from the others. In many it mostly shows how clearly
    the item is seen, and products with long vectors would decide every list. So with k directions a length
    counts by its power 1/k. An embedding shorter than usual in one direction stays shorter.
    """
    share = popularity / popularity.sum()
    centered: Floats = vectors - share @ vectors
    squares = (centered**2).sum(axis=1)
    usual = max(float(share @ squares), 1e-150)
    one = 1 / vectors.shape[1]
    centered *= ((squares + one * usual) ** ((one - 1) / 2))[:, None]
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


def whole_catalog(
    session: Session, settings: FactorizationSettings, *, blend: float, ordered: bool
) -> NextItems | None:
    """Return the weights between all items; None with noise, in small catalogs, and of data elsewhere."""
    if session.is_private or session.n_items <= settings.most_co_occurrence_items:
        return None
    data = session.rows()
    if not isinstance(data, Interactions):
        return None
    ordered = ordered and data.times is not None
    order = settings.order if ordered else OrderWeights()
    pairs = LocalPairs.of(
        data.indptr, data.items, steps_in_time(data), data.n_items, order, settings.nearest_items
    )
    kept = strongest_of_sparse(pairs.weights(settings.pair_ridge_users), settings.most_neighbors)
    return NextItems(
        items=np.arange(data.n_items),
        neighbors=kept.items,
        weights=kept.weights,
        blend=blend,
        fading=FADING if ordered else 0.0,
    )


def steps_in_time(data: Interactions) -> Indices:
    """Return the place of each interaction in its user's order; those at one time share a place."""
    if data.times is None:
        return np.zeros(data.n_ratings, dtype=np.int64)
    rows = data.rows()
    order = np.lexsort((data.times, rows))
    later = np.zeros(order.size, dtype=np.int64)
    later[1:] = (rows[order][1:] == rows[order][:-1]) & (np.diff(data.times[order]) != 0)
    steps = np.empty(order.size, dtype=np.int64)
    steps[order] = np.cumsum(later)
    return steps
