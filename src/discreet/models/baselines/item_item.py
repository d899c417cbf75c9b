"""Item-item baselines: EASE and nearest neighbors, from co-occurrence counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, final

import numpy as np
from scipy.sparse import csr_matrix, vstack

from discreet.core.arrays import Floats, Indices
from discreet.core.checks import integer, non_negative, positive_finite, within
from discreet.core.progress import Progress
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.baselines.tuning import (
    Point,
    SearchDirection,
    hide_interactions,
    no_promise,
    only_without_privacy,
    walk,
)
from discreet.models.estimator import Estimator
from discreet.models.scorers.item_item import MOST_FADING, ItemWeightsScorer, SparseWeightsScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.session import Session
from discreet.solvers.local_regression import LocalPairs, OrderWeights

_EASE_START = {"regularization": 200.0}
_EASE_DIRECTIONS = {"regularization": SearchDirection(3.0, 2.0, 2e5)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ease(Estimator):
    """Regress each item's interactions on those of all other items, without privacy: a strong baseline.

    `regularization` is found by a small search on hidden interactions unless it is given. So is `fading`, the
    rate at which older interactions lose weight, where the data have times. All items are modeled, or only
    the `most_items` most popular ones. In a catalog of more than 4,096 items, each item is regressed on its
    128 nearest items, because the cost of the closed form is cubic.

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
    """

    name: ClassVar[str] = "ease"
    feedback = "implicit"
    source: ClassVar[str] = "baseline, Steck 2019"

    epsilon: float = math.inf
    delta: float = 0.0
    regularization: float | None = None
    fading: float | None = None
    most_items: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        only_without_privacy(self)
        check_most_items(self.most_items)
        if self.regularization is not None:
            positive_finite("regularization", self.regularization)
        check_fading(self.fading)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee: none."""
        return no_promise(facts)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data: Interactions = session.rows()
        given = {"regularization": self.regularization, "fading": self.fading}
        settings = search_settings(data, given, _EASE_START, _EASE_DIRECTIONS, _regression, self.seed)
        progress("ease", 1, 2)
        items = most_popular(data, self.most_items)
        if items.size > MOST_DENSE:
            table = regression_of_many(data, items, settings["regularization"])
            progress("ease", 2, 2)
            return sparse_scorer(data, items, table, settings)
        weights = _regression(co_occurrence_counts(data, items), settings["regularization"])
        progress("ease", 2, 2)
        return weights_scorer(data, items, weights, settings)


def _regression(together: Floats, ridge: float) -> Floats:
    """Return the closed-form weights with a zero diagonal: minus the inverse over its own diagonal."""
    inverse = np.linalg.inv(together + ridge * np.eye(len(together)))
    weights: Floats = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights


def regression_of_many(data: Interactions, items: Indices, ridge: float) -> csr_matrix:
    """Return the weights of each item's regression on its nearest items, for any number of items."""
    chosen = _chosen(data, items)
    steps = np.zeros(chosen.nnz, dtype=np.int64)
    indptr = chosen.indptr.astype(np.int64)
    pairs = LocalPairs.of(indptr, chosen.indices, steps, items.size, OrderWeights(), _NEAREST)
    return pairs.weights(ridge)


_KNN_START = {"shrinkage": 10.0}
_KNN_DIRECTIONS = {"shrinkage": SearchDirection(3.0, 0.1, 1e4)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemKnn(Estimator):
    """Nearest neighbors of a user's items, without privacy: the simplest personal baseline.

    Similarity is the cosine between the users of two items. `shrinkage` is added to its denominator, so that
    rare pairs count less. It is found by a small search on hidden interactions unless it is given; so is
    `fading`, the rate at which older interactions lose weight, where the data have times. All items have
    neighbors, or only the `most_items` most popular ones.

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
    """

    name: ClassVar[str] = "item-knn"
    feedback = "implicit"
    source: ClassVar[str] = "baseline, Deshpande and Karypis 2004"

    epsilon: float = math.inf
    delta: float = 0.0
    neighbors: int = 100
    shrinkage: float | None = None
    fading: float | None = None
    most_items: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        only_without_privacy(self)
        integer("neighbors", self.neighbors, least=1)
        check_most_items(self.most_items)
        if self.shrinkage is not None:
            non_negative("shrinkage", self.shrinkage)
        check_fading(self.fading)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee: none."""
        return no_promise(facts)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data: Interactions = session.rows()
        weigh = partial(_nearest, neighbors=self.neighbors)
        given = {"shrinkage": self.shrinkage, "fading": self.fading}
        settings = search_settings(data, given, _KNN_START, _KNN_DIRECTIONS, weigh, self.seed)
        progress("item-knn", 1, 2)
        items = most_popular(data, self.most_items)
        if items.size > MOST_DENSE:
            table = nearest_of_many(data, items, settings["shrinkage"], self.neighbors)
            progress("item-knn", 2, 2)
            return sparse_scorer(data, items, table, settings)
        weights = weigh(co_occurrence_counts(data, items), settings["shrinkage"])
        progress("item-knn", 2, 2)
        return weights_scorer(data, items, weights, settings)


def _nearest(together: Floats, shrinkage: float, *, neighbors: int) -> Floats:
    """Return the shrunken cosines of each item's nearest neighbors; all others are zero."""
    lengths = np.sqrt(np.diag(together))
    similarity: Floats = together / np.maximum(np.outer(lengths, lengths) + shrinkage, 1e-12)
    np.fill_diagonal(similarity, 0.0)
    if neighbors < len(similarity):
        similarity[similarity < np.partition(similarity, -neighbors, axis=0)[-neighbors]] = 0.0
    return similarity


def nearest_of_many(data: Interactions, items: Indices, shrinkage: float, neighbors: int) -> csr_matrix:
    """Return the same for any number of items: only pairs that occur are computed, block by block."""
    lengths = np.sqrt(np.bincount(data.items, minlength=data.n_items))[items]
    parts = []
    for start, block in pairs_by_block(data, items):
        own = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        product = lengths[start + own] * lengths[block.indices]
        block.data /= np.maximum(product + shrinkage, 1e-12).astype(np.float32)
        parts.append(strongest_of_rows(block, neighbors))
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


def check_fading(fading: float | None) -> None:
    """Raise for a fading that a model file can't store."""
    if fading is not None:
        within("fading", fading, least=0, most=MOST_FADING)


def check_most_items(most: int | None) -> None:
    """Raise for fewer than two items; None means all."""
    if most is not None:
        integer("most_items", most, least=2)


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


def search_settings(
    data: Interactions,
    given: dict[str, float | None],
    start: Point,
    directions: dict[str, SearchDirection],
    weigh: Callable[[Floats, float], Floats],
    seed: int,
    count: Callable[[Interactions, Indices], Floats] | None = None,
) -> Point:
    """Return the settings under which hidden interactions with the most popular items rank best.

    The first setting is the argument of `weigh`; `fading` is searched where the data have times. Settings
    that are `given` stay. `count` counts pairs of items, by default `co_occurrence_counts`.
    """
    fades = data.times is not None
    start = {**start, "fading": _FADING_START if fades else 0.0}
    directions = {**directions, "fading": _FADING_DIRECTION} if fades else directions
    start |= {name: value for name, value in given.items() if value is not None}
    directions = {name: way for name, way in directions.items() if given.get(name) is None}
    hidden = hide_interactions(data, seed) if directions else None
    if hidden is None:
        return start
    items = most_popular(hidden.train, _SEARCHED_ITEMS)
    together, searched = (count or co_occurrence_counts)(hidden.train, items), next(iter(start))

    def loss(point: Point) -> float:
        scorer = weights_scorer(hidden.train, items, weigh(together, point[searched]), point)
        return hidden.loss(scorer.scores(hidden.train, hidden.people))

    return walk(start, directions, loss)
