"""Describe rows and columns by who met what, never by how it was rated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.arrays import Floats
from discreet.checks import integer
from discreet.randomness import experiment_generator

# Counts are raised by this before they are divided by: a row of one cell must not stand out.
_DAMPING = 5.0
_ITERATIONS = 12
# Features are in standard deviations; nothing counts as further out than this.
_FURTHEST = 3.0


def pattern_features(
    indptr: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], n_columns: int, directions: int
) -> tuple[Floats, Floats]:
    """Return features of rows and of columns: the logarithm of the count, and leading singular directions.

    The directions are those of the matrix of ones at the stored cells, divided by the roots of its counts.
    """
    n_rows = indptr.size - 1
    directions = min(integer("directions", directions, least=0), n_rows, n_columns)
    row_counts = np.diff(indptr).astype(np.float64)
    column_counts = np.bincount(columns, minlength=n_columns).astype(np.float64)
    row_root, column_root = (1 / np.sqrt(counts + _DAMPING) for counts in (row_counts, column_counts))
    cells = np.repeat(row_root, np.diff(indptr)) * column_root[columns]
    matrix = sp.csr_matrix((cells, columns, indptr), shape=(n_rows, n_columns))
    right = experiment_generator(0, "patterns").standard_normal((n_columns, directions))
    for _ in range(_ITERATIONS):
        right = np.linalg.qr(np.asarray(matrix.T @ (matrix @ right)))[0]
    left = np.asarray(matrix @ right)
    return (
        _standardized(np.column_stack([np.log1p(row_counts), left * row_root[:, None]]), row_counts),
        _standardized(
            np.column_stack([np.log1p(column_counts), right * column_root[:, None]]), column_counts
        ),
    )


def _standardized(features: Floats, counts: Floats) -> Floats:
    """Return features with mean 0 and variance 1 over the cells; one that is constant becomes 0."""
    weights = counts / max(counts.sum(), 1.0)
    centered = features - weights @ features
    scale = np.sqrt(weights @ centered**2)
    shown = np.divide(centered, scale, out=np.zeros_like(centered), where=scale > 1e-9)
    return np.asarray(np.clip(shown, -_FURTHEST, _FURTHEST))
