"""Score items by their likeness to what a person chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import ndtr, ndtri

from discreet.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.scorers.parts import ITEMS, Numbers, Stored
from discreet.models.scorers.scorer import Scorer
from discreet.models.scorers.similarity import Neighbors, false_discoveries

_FLIPPED = "computed from flipped bits only (none if the label says NOT PRIVATE)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborScorer(Scorer):
    """Score an item by its likeness to the items a person chose, as far as they are among its neighbors."""

    kind: ClassVar[str] = "neighbours"
    needs_ratings: ClassVar[bool] = False
    history_part: ClassVar[str] = "co-occurrence"
    stored: ClassVar[Mapping[str, Stored]] = {
        "neighbors": Numbers(
            source=_FLIPPED, shape=(ITEMS, "width"), dtype=np.int32, least=0, index_of=ITEMS
        ),
        "likeness": Numbers(
            source=_FLIPPED, shape=(ITEMS, "width"), dtype=np.float32, least=-1e15, most=1e15
        ),
    }

    neighbors: npt.NDArray[np.int32]
    likeness: Singles

    def fold_in(self, histories: Interactions) -> Floats:
        """Return an empty vector for everybody: a history is compared item by item."""
        return np.zeros((histories.n_users, 0))

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single cells."""
        asked, place = np.unique(rows, return_inverse=True)
        chosen = np.zeros((asked.size, histories.n_items), dtype=np.bool_)
        for index, row in enumerate(asked):
            chosen[index, histories.items[histories.indptr[row] : histories.indptr[row + 1]]] = True
        shared = chosen[place[:, None], self.neighbors[items]]
        total: Floats = np.sum(self.likeness[items] * shared, axis=1, dtype=np.float64)
        return total

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        own = histories.select_users(rows).to_scipy()
        chosen = csr_matrix((np.ones(own.nnz, np.float32), own.indices, own.indptr), shape=own.shape)
        return np.asarray((chosen @ self._table().T).todense(), dtype=np.float32)

    def similarities(self, *, noised: bool) -> Callable[[int, int], Neighbors]:
        """Return an item's kept neighbors; the least of them tells how near noise alone brings an item."""

        def neighbors(item: int, k: int) -> Neighbors:
            count, width = self.neighbors.shape
            found = np.full(count, -np.inf)
            kept = self.likeness[item].astype(np.float64)
            found[self.neighbors[item]] = np.where(kept > 0, kept, -np.inf)
            if not noised:
                return Neighbors(found, None)
            part = min(max(width / max(count - 1, 1), 1e-9), 1.0)
            # Of symmetric noise a quarter lies above this many deviations; all of it where more is kept.
            part, edge = (0.25, np.quantile(kept, 0.75)) if part > 0.5 else (part, kept.min(initial=np.inf))
            noise = max(float(edge) / -float(ndtri(part)), np.finfo(np.float64).tiny)
            chance = ndtr(-found / noise)
            return Neighbors(found, 1 - false_discoveries(chance))

        return neighbors

    def _table(self) -> csr_matrix:
        count, width = self.neighbors.shape
        pointers = np.arange(0, count * width + 1, max(width, 1))[: count + 1]
        parts = (self.likeness.ravel(), self.neighbors.ravel(), pointers)
        return csr_matrix(parts, shape=(count, count))
