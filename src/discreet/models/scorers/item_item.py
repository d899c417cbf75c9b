"""Score items by weights or similarities between items, and by popularity."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Singles
from discreet.core.exports import Later
from discreet.data import Interactions
from discreet.models.errors import MalformedPart
from discreet.models.scorers.interactions import recency
from discreet.models.scorers.ranking import Ranking
from discreet.models.scorers.scorer import ITEMS, Constant, Notes, Scorer, Stored, StoredNumber, StoredNumbers
from discreet.models.scorers.similarity import NearestItems, false_discoveries

if TYPE_CHECKING:
    from scipy import sparse, special
else:
    sparse, special = Later("scipy.sparse"), Later("scipy.special")

MOST_FADING = 100.0
_COUNTED = "counted without noise: the label states NOT PRIVATE"
_BASE = StoredNumbers(source=_COUNTED, shape=(ITEMS,), least=-1e15, most=1e15)
_PLACES = StoredNumbers(source=_COUNTED, shape=("entries",), dtype=np.int32, least=0, index_of=ITEMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsScorer(Scorer):
    """Sum of the weights of a user's items for each other item.

    `base` breaks ties and ranks for users without items. Where times are known, the r-th latest interaction
    has weight (1 + r) to the minus `fading`.
    """

    needs_ratings: ClassVar[bool] = False
    constants: ClassVar[Mapping[str, Constant]] = {
        "fading": StoredNumber(least=0.0, most=MOST_FADING),
        "decisions": Notes(),
    }

    base: Floats
    # Files of the first version lack it and weight all interactions equally.
    fading: float = 0.0
    decisions: Mapping[str, Any] = field(default_factory=dict)

    def similarities(self, *, noise: float) -> Callable[[int, int], NearestItems]:
        """Return how much having chosen an item supports each other one; counted without noise."""

        def neighbors(item: int, k: int) -> NearestItems:
            speaks = self._supported(item)
            return NearestItems(np.where(speaks > 0, speaks, -np.inf), None)

        return neighbors

    @abstractmethod
    def _supported(self, item: int) -> Floats:
        """Return the weight of an item for each other one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWeightsScorer(WeightsScorer):
    """Weights `weights[i, item]` of a user's items i, for the items that have weights."""

    kind: ClassVar[str] = "item-weights"
    stored: ClassVar[Mapping[str, Stored]] = {
        "items": StoredNumbers(source=_COUNTED, shape=("weighed",), dtype=np.int64, least=0, index_of=ITEMS),
        "weights": StoredNumbers(
            source=_COUNTED, shape=("weighed", "weighed"), dtype=np.float32, least=-1e15, most=1e15
        ),
        "base": _BASE,
    }

    items: Indices
    weights: Singles

    def check(self) -> None:
        """Raise for items named twice."""
        if np.unique(self.items).size != self.items.size:
            raise MalformedPart(part="items", rule="order")

    def _vectors(self, histories: Interactions) -> Floats:
        """Return the sums of the weights of each user's items."""
        place = np.full(self.base.size, -1, dtype=np.int64)
        place[self.items] = np.arange(self.items.size)
        weighed = histories.with_values(recency(histories, self.fading).astype(np.float32))
        matrix: Any = weighed.where(place[histories.items] >= 0).to_scipy()
        sums: Floats = np.asarray(matrix[:, self.items] @ self.weights, dtype=np.float64)
        return sums

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        sums, place = self.folded(histories, rows)
        found = np.tile(self.base.astype(np.float32), (len(sums), 1))
        found[:, self.items] += sums.astype(np.float32)
        every: Singles = found[place]
        return every

    def _supported(self, item: int) -> Floats:
        speaks = np.zeros(self.base.size)
        place = np.flatnonzero(self.items == item)
        if place.size:
            speaks[self.items] = self.weights[place[0]]
        return speaks


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparseWeightsScorer(WeightsScorer):
    """Weights of which few differ from zero: for large catalogs.

    An item in `sources` supports that in `targets` with the weight in `weights`.
    """

    kind: ClassVar[str] = "sparse-item-weights"
    history_part: ClassVar[str] = "co-occurrence"
    stored: ClassVar[Mapping[str, Stored]] = {
        "sources": _PLACES,
        "targets": _PLACES,
        "weights": StoredNumbers(
            source=_COUNTED, shape=("entries",), dtype=np.float32, least=-1e15, most=1e15
        ),
        "base": _BASE,
    }

    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    weights: Singles

    def check(self) -> None:
        """Raise for sources that are not in order."""
        if (np.diff(self.sources) < 0).any():
            raise MalformedPart(part="sources", rule="order")

    def table(self) -> sparse.csr_matrix:
        """Return the weights as a sparse matrix; a row is for the item that supports others."""
        return self.prepared("table", self._table)

    def _table(self) -> sparse.csr_matrix:
        count = self.base.size
        starts = np.searchsorted(self.sources, np.arange(count + 1))
        return sparse.csr_matrix((self.weights, self.targets, starts), shape=(count, count))

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        asked, place = np.unique(rows, return_inverse=True)
        own = histories.select_users(asked)
        weighed: Any = own.with_values(recency(own, self.fading).astype(np.float32)).to_scipy()
        found = np.asarray((weighed @ self.table()).todense(), dtype=np.float32)
        found += self.base.astype(np.float32)
        every: Singles = found[place]
        return every

    def _supported(self, item: int) -> Floats:
        speaks: Floats = self.table()[[item]].toarray()[0].astype(np.float64)
        return speaks


_FLIPPED = "computed from flipped bits only (none if the label states NOT PRIVATE)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborScorer(Scorer):
    """Scores of items: the sum of an item's similarities to its neighbors among a user's items."""

    kind: ClassVar[str] = "neighbours"
    needs_ratings: ClassVar[bool] = False
    stored: ClassVar[Mapping[str, Stored]] = {
        "neighbors": StoredNumbers(
            source=_FLIPPED, shape=(ITEMS, "width"), dtype=np.int32, least=0, index_of=ITEMS
        ),
        "neighbor_similarities": StoredNumbers(
            source=_FLIPPED, shape=(ITEMS, "width"), dtype=np.float32, least=-1e15, most=1e15
        ),
    }

    neighbors: npt.NDArray[np.int32]
    neighbor_similarities: Singles

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        asked, place = np.unique(rows, return_inverse=True)
        chosen = np.zeros((asked.size, histories.n_items), dtype=np.bool_)
        for index, row in enumerate(asked):
            chosen[index, histories.items[histories.indptr[row] : histories.indptr[row + 1]]] = True
        shared = chosen[place[:, None], self.neighbors[items]]
        total: Floats = np.sum(self.neighbor_similarities[items] * shared, axis=1, dtype=np.float64)
        return total

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        own = histories.select_users(rows).to_scipy()
        chosen = sparse.csr_matrix((np.ones(own.nnz, np.float32), own.indices, own.indptr), shape=own.shape)
        return np.asarray((chosen @ self._table().T).todense(), dtype=np.float32)

    def similarities(self, *, noise: float) -> Callable[[int, int], NearestItems]:
        """Return an item's kept neighbors; the least of them shows how near noise alone brings an item."""

        def neighbors(item: int, k: int) -> NearestItems:
            count, width = self.neighbors.shape
            found = np.full(count, -np.inf)
            kept = self.neighbor_similarities[item].astype(np.float64)
            found[self.neighbors[item]] = np.where(kept > 0, kept, -np.inf)
            if not noise:
                return NearestItems(found, None)
            part = min(max(width / max(count - 1, 1), 1e-9), 1.0)
            # Of symmetric noise a quarter lies above this many deviations; all of it where more is kept.
            part, edge = (0.25, np.quantile(kept, 0.75)) if part > 0.5 else (part, kept.min(initial=np.inf))
            deviation = max(float(edge) / -float(special.ndtri(part)), np.finfo(np.float64).tiny)
            chance = special.ndtr(-found / deviation)
            return NearestItems(found, 1 - false_discoveries(chance))

        return neighbors

    def _table(self) -> sparse.csr_matrix:
        count, width = self.neighbors.shape
        pointers = np.arange(0, count * width + 1, max(width, 1))[: count + 1]
        parts = (self.neighbor_similarities.ravel(), self.neighbors.ravel(), pointers)
        return sparse.csr_matrix(parts, shape=(count, count))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PopularityScorer(Scorer):
    """Scores by popularity, the same for all users."""

    kind: ClassVar[str] = "popularity"
    needs_ratings: ClassVar[bool] = False
    same_for_all: ClassVar[bool] = True
    stored: ClassVar[Mapping[str, Stored]] = {
        "popularity": StoredNumbers(source="noisy release: weighted counts of users per item", shape=(ITEMS,))
    }

    popularity: Floats

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the items' popularity."""
        return self.popularity[items]

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the same scores for all users."""
        return np.broadcast_to(self.popularity.astype(np.float32), (len(rows), len(self.popularity))).copy()

    def ranking(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Ranking | None:
        """Return the popularity: one order serves all lists."""
        return None if rank_by is not None else Ranking(self.popularity)
