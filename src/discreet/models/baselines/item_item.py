"""Item-item baselines: EASE, nearest neighbors, and a Markov chain over what follows the latest items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from scipy.sparse import csr_matrix, vstack

from discreet.core import Floats, Indices, Progress, integer, non_negative, positive_finite, within
from discreet.data import Interactions
from discreet.models.baselines.tuning import Baseline, Point, SearchDirection, hide_interactions, walk
from discreet.models.scorers.item_item import MOST_FADING, ItemWeightsScorer, SparseWeightsScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy import Session
from discreet.solvers import LocalPairs, OrderWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemItem(Baseline):
    """A baseline of weights between items; one setting and `fading` are searched on hidden interactions.

    All items have weights, or only the `most_items` most popular ones.
    """

    feedback = "implicit"
    #: The setting that is searched, where the search starts, and how it moves.
    searched: ClassVar[tuple[str, float, SearchDirection]]

    fading: float | None = None
    most_items: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_budget()
        if self.most_items is not None:
            integer("most_items", self.most_items, least=2)
        if self.fading is not None:
            within("fading", self.fading, least=0, most=MOST_FADING)

    @abstractmethod
    def _weights(self, counts: Floats, setting: float) -> Floats:
        """Return the weights between items, given the counts of their pairs."""

    @abstractmethod
    def _weights_of_many(self, data: Interactions, items: Indices, setting: float) -> csr_matrix:
        """Return the same for any number of items: of each, a few weights."""

    def _counts(self, data: Interactions, items: Indices) -> Floats:
        """Return the counts of pairs of items."""
        return co_occurrence_counts(data, items)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data: Interactions = session.rows()
        settings = self._settings(data)
        progress(self.name, 1, 2)
        items, setting = most_popular(data, self.most_items), settings[self.searched[0]]
        scorer: Scorer
        if items.size > MOST_DENSE:
            scorer = sparse_scorer(data, items, self._weights_of_many(data, items, setting), settings)
        else:
            scorer = weights_scorer(data, items, self._weights(self._counts(data, items), setting), settings)
        progress(self.name, 2, 2)
        return scorer

    def _settings(self, data: Interactions) -> Point:
        """Return the settings under which hidden interactions with the most popular items rank best.

        `fading` is searched where the data have times. Settings that were given stay.
        """
        name, begin, way = self.searched
        fades = data.times is not None
        given = {name: getattr(self, name), "fading": self.fading}
        start = {name: begin, "fading": _FADING_START if fades else 0.0}
        directions = {name: way, "fading": _FADING_DIRECTION} if fades else {name: way}
        start |= {one: value for one, value in given.items() if value is not None}
        directions = {one: own for one, own in directions.items() if given[one] is None}
        hidden = hide_interactions(data, self.seed) if directions else None
        if hidden is None:
            return start
        items = most_popular(hidden.train, _SEARCHED_ITEMS)
        counts = self._counts(hidden.train, items)

        def loss(point: Point) -> float:
            scorer = weights_scorer(hidden.train, items, self._weights(counts, point[name]), point)
            return hidden.loss(scorer.scores(hidden.train, hidden.people))

        return walk(start, directions, loss)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ease(ItemItem):
    """Regress each item's interactions on those of all other items, without privacy: a strong baseline.

    If you don't pass `regularization`, a small search on hidden interactions finds it. If the data have
    times, the search also finds `fading`, the rate at which older interactions lose weight. The model has all
    items, or only the `most_items` most popular items. In a catalog of more than 4,096 items, each item is
    regressed on its 128 nearest items, because the cost of the closed form is cubic.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import Ease, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Ease().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "ease"
    source: ClassVar[str] = "baseline, Steck 2019"
    searched = ("regularization", 200.0, SearchDirection(3.0, 2.0, 2e5))

    regularization: float | None = None

    def __post_init__(self) -> None:
        ItemItem.__post_init__(self)
        if self.regularization is not None:
            positive_finite("regularization", self.regularization)

    def _weights(self, counts: Floats, setting: float) -> Floats:
        """Return the closed-form weights with a zero diagonal: minus the inverse over its own diagonal."""
        inverse = np.linalg.inv(counts + setting * np.eye(len(counts)))
        weights: Floats = -inverse / np.diag(inverse)
        np.fill_diagonal(weights, 0.0)
        return weights

    def _weights_of_many(self, data: Interactions, items: Indices, setting: float) -> csr_matrix:
        """Return the weights of each item's regression on its nearest items, for any number of items."""
        chosen = _chosen(data, items)
        steps = np.zeros(chosen.nnz, dtype=np.int64)
        indptr = chosen.indptr.astype(np.int64)
        pairs = LocalPairs.of(indptr, chosen.indices, steps, items.size, OrderWeights(), _NEAREST)
        return pairs.weights(setting)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemKnn(ItemItem):
    """Nearest neighbors of a user's items, without privacy: the simplest personal baseline.

    Similarity is the cosine between the users of two items. `shrinkage` is added to its denominator, so that
    rare pairs count less. If the data have times, `fading` is the rate at which older interactions lose
    weight. If you don't pass these settings, a small search on hidden interactions finds them. All items have
    neighbors, or only the `most_items` most popular items.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import ItemKnn, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = ItemKnn().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "item-knn"
    source: ClassVar[str] = "baseline, Deshpande and Karypis 2004"
    searched = ("shrinkage", 10.0, SearchDirection(3.0, 0.1, 1e4))

    neighbors: int = 100
    shrinkage: float | None = None

    def __post_init__(self) -> None:
        ItemItem.__post_init__(self)
        integer("neighbors", self.neighbors, least=1)
        if self.shrinkage is not None:
            non_negative("shrinkage", self.shrinkage)

    def _weights(self, counts: Floats, setting: float) -> Floats:
        """Return the shrunken cosines of each item's nearest neighbors; all others are zero."""
        lengths = np.sqrt(np.diag(counts))
        similarity: Floats = counts / np.maximum(np.outer(lengths, lengths) + setting, 1e-12)
        np.fill_diagonal(similarity, 0.0)
        if self.neighbors < len(similarity):
            least = np.partition(similarity, -self.neighbors, axis=0)[-self.neighbors]
            similarity[similarity < least] = 0.0
        return similarity

    def _weights_of_many(self, data: Interactions, items: Indices, setting: float) -> csr_matrix:
        """Return the same for any number of items: only pairs that occur are computed, block by block."""
        lengths = np.sqrt(np.bincount(data.items, minlength=data.n_items))[items]
        parts = []
        for start, block in pairs_by_block(data, items):
            own = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
            product = lengths[start + own] * lengths[block.indices]
            block.data /= np.maximum(product + setting, 1e-12).astype(np.float32)
            parts.append(strongest_of_rows(block, self.neighbors))
        # Rows are for the items whose neighbors these are; they speak for the row's item.
        return vstack(parts).T.tocsr()


def pairs_by_block(data: Interactions, items: Indices) -> Iterator[tuple[int, csr_matrix]]:
    """Yield the co-occurrences of some items with all others, and the place of the first of these items."""
    matrix = _chosen(data, items)
    turned = matrix.T.tocsr()
    for start in range(0, turned.shape[0], _BLOCK):
        block = (turned[start : start + _BLOCK] @ matrix).tocsr()
        own = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr)) + start
        block.data[block.indices == own] = 0.0
        block.eliminate_zeros()
        yield start, block


def strongest_of_rows(table: csr_matrix, most: int) -> csr_matrix:
    """Return a sparse matrix with at most the `most` largest entries of each row."""
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    order = np.lexsort((-table.data, rows))
    rank = np.arange(order.size) - table.indptr[rows]
    kept = order[rank < most]
    return csr_matrix((table.data[kept], (rows[kept], table.indices[kept])), shape=table.shape)


# The search uses this many of the most popular items, because a step may have cubic cost.
_SEARCHED_ITEMS = 1024
# Where the search for `fading` starts, and how it moves.
_FADING_START, _FADING_DIRECTION = 0.7, SearchDirection(1.5, 0.2, 2.5)
# Ties go to the more popular item; all weights are larger than this.
_TIE_BREAK = 1e-6
# Up to this many items all pairs are kept; of more, the strongest ones. So many items are paired at once.
MOST_DENSE, _BLOCK = 4096, 1024
# Nearest items that an item of a large catalog is regressed on.
_NEAREST = 128


def most_popular(data: Interactions, most: int | None) -> Indices:
    """Return the `most` most popular items (None: all), in catalog order."""
    counts = np.bincount(data.items, minlength=data.n_items)
    return np.sort(np.argsort(-counts, kind="stable")[:most])


def co_occurrence_counts(data: Interactions, items: Indices) -> Floats:
    """Return how many users have each pair of these items; the diagonal counts the users of one item."""
    matrix = _chosen(data, items)
    together: Floats = (matrix.T @ matrix).toarray().astype(np.float64)
    return together


def _chosen(data: Interactions, items: Indices) -> Any:
    return data.with_values(np.ones(data.n_ratings, dtype=np.float32)).to_scipy()[:, items].tocsr()


def sparse_scorer(
    data: Interactions, items: Indices, table: csr_matrix, settings: Point
) -> SparseWeightsScorer:
    """Return the scorer of a sparse matrix of weights between these items."""
    rows = np.repeat(np.arange(items.size), np.diff(table.indptr))
    return SparseWeightsScorer(
        sources=items[rows].astype(np.int32),
        targets=items[table.indices].astype(np.int32),
        weights=table.data.astype(np.float32),
        base=_tie_breaks(data),
        fading=settings["fading"],
        decisions=settings,
    )


def _tie_breaks(data: Interactions) -> Floats:
    counts = np.bincount(data.items, minlength=data.n_items).astype(np.float64)
    breaks: Floats = counts * (_TIE_BREAK / max(counts.max(initial=0.0), 1.0))
    return breaks


def weights_scorer(data: Interactions, items: Indices, weights: Floats, settings: Point) -> ItemWeightsScorer:
    """Return the scorer of item-to-item weights over these items."""
    return ItemWeightsScorer(
        items=items,
        weights=weights.astype(np.float32),
        base=_tie_breaks(data),
        fading=settings["fading"],
        decisions=settings,
    )


# An item that follows s steps later counts this to the power s - 1; interactions further apart do not count.
_LATER, _MOST_LATER = 0.5, 8
# Of a large catalog so many items are kept after each.
_MOST_NEXT = 256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarkovChain(ItemItem):
    """Items that follow a user's latest items, without privacy: the baseline for data with an order.

    The fit estimates the probability of an item after another item from how often it follows within a few
    steps. Later steps count less. `smoothing` counts of popularity are added to each item's transitions, and
    `fading` is the rate at which older interactions lose weight. If you don't pass these settings, a small
    search on hidden interactions finds them. Without times, every pair of a user's items is a transition in
    both directions. All items have transitions, or only the `most_items` most popular items. If the catalog
    has more than 4,096 items, only the most frequent transitions of each item count, and popularity only
    breaks ties.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import MarkovChain, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = MarkovChain().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "markov-chain"
    source: ClassVar[str] = "baseline, Rendle and others 2010"
    searched = ("smoothing", 10.0, SearchDirection(3.0, 0.1, 1e4))

    smoothing: float | None = None

    def __post_init__(self) -> None:
        ItemItem.__post_init__(self)
        if self.smoothing is not None:
            positive_finite("smoothing", self.smoothing)

    def _counts(self, data: Interactions, items: Indices) -> Floats:
        return transition_counts(data, items)

    def _weights(self, counts: Floats, setting: float) -> Floats:
        return transition_probabilities(counts, setting)

    def _weights_of_many(self, data: Interactions, items: Indices, setting: float) -> csr_matrix:
        """Return the most probable items after each, for any number of items; others have probability 0."""
        parts = []
        for block in _counts_by_block(data, items):
            total = np.asarray(block.sum(axis=1)).ravel() + setting
            block.data = block.data / np.repeat(total, np.diff(block.indptr))
            parts.append(strongest_of_rows(block, _MOST_NEXT))
        return vstack(parts).tocsr()


def transition_counts(data: Interactions, items: Indices) -> Floats:
    """Return how often each of these items follows each other one, weighted by the steps between them.

    A step leads from one time to the next. Interactions at one time have no order, so such a pair counts half
    in both directions.
    """
    size = items.size
    if data.times is None:
        together = co_occurrence_counts(data, items)
        np.fill_diagonal(together, 0.0)
        return together
    counts = np.zeros(size * size)
    for before, after, weight in _transitions(data, items):
        counts += np.bincount(before * size + after, weights=weight, minlength=size * size)
    return counts.reshape(size, size)


def _transitions(data: Interactions, items: Indices) -> Iterator[tuple[Indices, Indices, Floats]]:
    """Yield items, items that follow, and weights, for some transitions after the others."""
    assert data.times is not None
    place = np.full(data.n_items, -1, dtype=np.int64)
    place[items] = np.arange(items.size)
    order = np.lexsort((data.times, data.rows()))
    people, columns, times = data.rows()[order], place[data.items[order]], data.times[order]
    changed = np.ones(people.size, dtype=bool)
    changed[1:] = (people[1:] != people[:-1]) | (times[1:] != times[:-1])
    step = np.cumsum(changed)
    for lag in range(1, min(_MOST_LATER, people.size - 1) + 1):
        pairs = (people[lag:] == people[:-lag]) & (columns[lag:] >= 0) & (columns[:-lag] >= 0)
        before, after = columns[:-lag][pairs], columns[lag:][pairs]
        apart = (step[lag:] - step[:-lag])[pairs]
        weight = np.where(apart > 0, _LATER ** (np.maximum(apart, 1) - 1.0), 0.5)
        yield before, after, weight
        tied = apart == 0
        yield after[tied], before[tied], weight[tied]


def _counts_by_block(data: Interactions, items: Indices) -> Iterator[csr_matrix]:
    """Yield how often items follow some items, for some items after the others."""
    if data.times is None:
        for _, block in pairs_by_block(data, items):
            yield block
        return
    counts = csr_matrix((items.size, items.size))
    for before, after, weight in _transitions(data, items):
        counts = counts + csr_matrix((weight, (before, after)), shape=counts.shape)
    yield counts


def transition_probabilities(counts: Floats, smoothing: float) -> Floats:
    """Return the probability of each item after each other one, with popularity added to the counts."""
    share = counts.sum(axis=0) / max(float(counts.sum()), 1e-12)
    probabilities: Floats = (counts + smoothing * share) / (counts.sum(axis=1, keepdims=True) + smoothing)
    np.fill_diagonal(probabilities, 0.0)
    return probabilities
