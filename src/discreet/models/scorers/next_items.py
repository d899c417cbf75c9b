"""Score what a user chooses next by weights between items, and blend it with other scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import logsumexp

from discreet.core.arrays import Floats, Indices
from discreet.core.checks import DataError
from discreet.data.interactions import Interactions


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NextItems:
    """Hold, for the items in `items`, the weights with which each speaks for its `neighbors` among them.

    A user's weight of an item is the sum over their interactions; with times the r-th latest counts (1 + r)
    to the minus `fading`. The share of `blend` of a list's probability follows these weights, where they are
    positive.
    """

    items: Indices
    neighbors: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float16]
    blend: float
    fading: float

    @classmethod
    def none(cls) -> NextItems:
        """Return no items."""
        empty = np.zeros((0, 0))
        return cls(
            items=np.zeros(0, dtype=np.int64),
            neighbors=empty.astype(np.int32),
            weights=empty.astype(np.float16),
            blend=0.0,
            fading=1.0,
        )

    def __bool__(self) -> bool:
        """Tell whether they change any score."""
        return self.items.size > 0 and self.blend > 0

    def check(self) -> None:
        """Refuse parts that do not fit together."""
        if np.unique(self.items).size != self.items.size:
            raise DataError("paired names an item twice.")
        if not len(self.neighbors) == len(self.weights) == self.items.size:
            raise DataError("The shape of neighbors does not fit the other parts.")

    def following(self, histories: Interactions, recency: Floats) -> Floats:
        """Return the positive sums of the weights of each user's interactions, for all of `items`."""
        place = np.full(histories.n_items, -1, dtype=np.int64)
        place[self.items] = np.arange(self.items.size)
        own = place[histories.items]
        known = own >= 0
        starts = np.append(0, np.cumsum(known))[histories.indptr]
        size = self.items.size
        chosen: Any = csr_matrix(
            (recency[known].astype(np.float32), own[known], starts), shape=(histories.n_users, size)
        )
        sums: Floats = np.asarray((chosen @ self._table()).todense(), dtype=np.float64)
        return np.maximum(sums, 0.0)

    def blended(self, scores: Floats, following: Floats) -> Floats:
        """Return log-odds of a mixture: what `scores` say, and the weights in `following`.

        Both give the same probability to all of `items` together. Whoever's interactions speak for no item
        keeps their scores.
        """
        total = following.sum(axis=1, keepdims=True)
        speaks = total[:, 0] > 0
        found = scores.copy()
        if not speaks.any():
            return found
        base, follows = scores[speaks][:, self.items], following[speaks] / total[speaks]
        with np.errstate(divide="ignore"):
            new = np.log(follows) + logsumexp(base, axis=1, keepdims=True) + np.log(self.blend)
            kept = np.log1p(-self.blend)
        found[speaks] += kept
        found[np.ix_(speaks, self.items)] = np.logaddexp(base + kept, new)
        return found

    def _table(self) -> Any:
        size, width = self.neighbors.shape
        starts = np.arange(0, size * width + 1, max(width, 1))[: size + 1]
        parts = (self.weights.astype(np.float32).ravel(), self.neighbors.ravel(), starts)
        return csr_matrix(parts, shape=(size, size))
