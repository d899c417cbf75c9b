"""Regress what users choose next on what they chose before, from co-occurrences of items alone.

This is the closed form of EASE (Steck 2019) for directed co-occurrences without a diagonal. The diagonal is
taken as proportional to the items' votes, with the least factor at which the matrix is positive semidefinite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import eigh, inv
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from discreet.core.arrays import Floats

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
            return float(
                eigsh(matrix, k=1, which="SA", v0=np.ones(size), tol=1e-3, return_eigenvectors=False)[0]
            )
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
