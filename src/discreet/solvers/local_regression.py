"""Regress each item's interactions on those of its nearest items: weights for catalogs of any size.

EASE (Steck 2019) inverts one matrix over all items, whose cost is cubic. Here every item has a ridge
regression of its own on the items that occur with it most. Memory is linear in items, and time in pairs of
interactions of one user and in items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import scipy.sparse as sp

from discreet.core.arrays import Array, Floats
from discreet.core.exports import Later
from discreet.core.rows import run

if TYPE_CHECKING:
    from discreet.solvers import local_regression_kernels as kernels
else:
    kernels = Later("discreet.solvers.local_regression_kernels")

# Strongest pairs of each item that its neighbors' regressions look up.
_STRONGEST = 1024
# Systems that are solved at once, and steps beyond which a decay no longer changes.
_AT_ONCE, _STEPS = 256, 256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWeights:
    """Weights of a pair by the order of its items: `near` per step, `apart` at any distance, `back`ward."""

    near: float = 1.0
    apart: float = 1.0
    back: float = 1.0

    @property
    def ordered(self) -> bool:
        """Return whether the order of interactions counts."""
        return self.apart < 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPairs:
    """The strongest pairs of each item, and the items that occur with it most; -1 marks room left."""

    counts: Floats
    strong: Array
    sums: Array
    near: Array
    pulls: Array

    @classmethod
    def of(
        cls, indptr: Array, items: Array, steps: Array, n_items: int, order: OrderWeights, nearest: int
    ) -> LocalPairs:
        """Count pairs of rows of `items`; `steps` is the place of each in its row's order."""
        counts = np.bincount(items, minlength=n_items).astype(np.float64)
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        places = np.argsort(items, kind="stable")
        starts = np.append(0, np.cumsum(counts)).astype(np.int64)
        width, nearest = (min(one, max(n_items - 1, 1)) for one in (_STRONGEST, nearest))
        shape, narrow = (n_items, width), (n_items, nearest)
        out = (
            np.empty(shape, np.int32),
            np.zeros(shape, np.float32),
            np.empty(narrow, np.int32),
            np.zeros(narrow, np.float32),
        )
        cost = np.append(0, np.cumsum(np.bincount(items, weights=np.diff(indptr)[rows], minlength=n_items)))
        decay = order.near ** np.arange(_STEPS)
        numbers = np.array([order.apart, order.back])
        owners = rows[places]
        run(
            kernels.pair_sums,
            cost + np.arange(cost.size),
            owners,
            places,
            starts,
            np.asarray(indptr),
            np.asarray(items),
            np.asarray(steps),
            decay,
            np.maximum(counts, 1.0),
            numbers,
            out,
        )
        return cls(counts=counts, strong=out[0], sums=out[1], near=out[2], pulls=out[3])

    def weights(self, ridge: float) -> sp.csr_matrix:
        """Return how much each item (a row) supports each other one (a column), with this ridge."""
        size, width = self.near.shape
        found = np.zeros((size, width), np.float32)
        for start in range(0, size, _AT_ONCE):
            stop = min(start + _AT_ONCE, size)
            systems = np.empty((stop - start, width, width))
            cost = np.arange(stop - start + 1) * width**2
            run(
                kernels.small_systems,
                cost,
                start,
                self.near,
                self.strong,
                self.sums,
                self.counts,
                ridge,
                systems,
            )
            right = np.where(self.near[start:stop] >= 0, self.pulls[start:stop], 0.0)
            found[start:stop] = np.linalg.solve(systems, right[..., None])[..., 0]
        kept = self.near >= 0
        targets = np.repeat(np.arange(size), width).reshape(size, width)
        return sp.csr_matrix((found[kept], (self.near[kept], targets[kept])), shape=(size, size))
