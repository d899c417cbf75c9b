"""Regress each item's interactions on those of others: EASE for directed co-occurrences, and nearest items.

EASE (Steck 2019) has a closed form. For co-occurrences without a diagonal, the diagonal is taken as
proportional to the items' votes, with the least factor at which the matrix is positive semidefinite. EASE
inverts one matrix over all items, whose cost is cubic. For catalogs of any size, every item has a ridge
regression of its own on the items that occur with it most. Memory is linear in items, and time in pairs of
interactions of one user and in items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import eigh, inv
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from discreet.core import Array, Floats, run
from discreet.core.exports import Later
from discreet.solvers.spectrum import REPEATABLE

if TYPE_CHECKING:
    from discreet.solvers import local_regression_kernels as kernels
else:
    kernels = Later("discreet.solvers.local_regression_kernels")


# Up to this size all eigenvalues are cheap, and single ones are found by iteration only beyond it.
_SMALL = 1024
# A matrix without a noticeable negative eigenvalue has no pairs.
_LEAST = 1e-12
# The range of half-precision numbers, with a margin.
_MOST_WEIGHT = 6e4


class StrongestWeights(NamedTuple):
    """For each item, the items whose weights are largest, and these weights."""

    items: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float16]


def regression_weights(
    pairs: Floats, back: float, votes: Floats, item_weights: Floats, *, by_votes: float, ridge: float
) -> Floats | None:
    """Return how much each item (a row) supports each other one (a column); None where pairs are empty.

    `pairs` are sums of the products of two items' weights, forward, and times `back` in the other direction.
    The ridge is `by_votes` times the diagonal plus that of `ridge` votes.
    """
    root = np.sqrt(votes)
    scale = root * item_weights
    forward = pairs / scale[:, None] / scale
    together = (forward + forward.T) / (1 + back)
    least = -_smallest_eigenvalue(together)
    if not (least > _LEAST and np.isfinite(least)):
        return None
    together[np.diag_indices_from(together)] = least * (1 + by_votes + ridge / votes)
    inverse: Floats = inv(together, overwrite_a=True, check_finite=False)
    weights: Floats = inverse @ forward
    # No item supports itself: a multiple of the inverse's column is subtracted from each column.
    weights -= inverse * (np.diag(weights) / np.diag(inverse))
    np.fill_diagonal(weights, 0.0)
    weights *= root
    weights /= root[:, None]
    return weights


def _smallest_eigenvalue(matrix: Floats) -> float:
    size = len(matrix)
    if size > _SMALL:
        try:
            start = np.ones(size)
            found = eigsh(
                matrix, k=1, which="SA", v0=start, tol=1e-3, return_eigenvectors=False, **REPEATABLE
            )
            return float(found[0])
        except ArpackNoConvergence:
            pass
    return float(eigh(matrix, eigvals_only=True, subset_by_index=(0, 0))[0])


def strongest(weights: Floats, most: int) -> StrongestWeights:
    """Return at most `most` weights of each row, the largest in absolute value, as half-precision numbers."""
    width = min(most, len(weights))
    columns = np.argpartition(-np.abs(weights), width - 1, axis=1)[:, :width]
    columns = np.sort(columns, axis=1)
    kept = np.take_along_axis(weights, columns, axis=1)
    return StrongestWeights(
        columns.astype(np.int32), np.clip(kept, -_MOST_WEIGHT, _MOST_WEIGHT).astype(np.float16)
    )


def strongest_of_sparse(weights: sp.csr_matrix, most: int) -> StrongestWeights:
    """Return the same of a sparse matrix; a row with fewer weights ends with zeros."""
    lengths = np.diff(weights.indptr)
    rows = np.repeat(np.arange(weights.shape[0]), lengths)
    order = np.lexsort((-np.abs(weights.data), rows))
    rank = np.arange(order.size) - weights.indptr[rows]
    width = max(min(most, int(lengths.max(initial=0))), 1)
    columns = np.zeros((weights.shape[0], width), dtype=np.int32)
    kept = np.zeros(columns.shape, dtype=np.float16)
    inside = rank < width
    cells = rows[inside], rank[inside]
    columns[cells] = weights.indices[order[inside]]
    kept[cells] = np.clip(weights.data[order[inside]], -_MOST_WEIGHT, _MOST_WEIGHT)
    return StrongestWeights(columns, kept)


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
