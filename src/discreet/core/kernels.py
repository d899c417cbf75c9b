"""Compile the inner loops that several solvers share; they work on plain arrays and a range of rows.

The loops release the interpreter's lock and touch only their own rows of the output, so that threads can
share the work without talking to each other and the answer does not depend on how many there are. Sums may be
reordered for speed, but NaN and infinity keep their meaning.
"""

from __future__ import annotations

import numba
from numba import njit

from discreet.core.arrays import Array

compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})


def thread_count() -> int:
    """Return how many threads may run kernels: NUMBA_NUM_THREADS, or the number of processors."""
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


@compiled
def dot(left: Array, right: Array) -> float:
    """Return the inner product of two vectors."""
    total = left.dtype.type(0)
    for a in range(left.size):
        total += left[a] * right[a]
    return total  # type: ignore[no-any-return]


@compiled
def sum_features(features: Array, columns: Array, coefficients: Array, out: Array) -> None:
    """Set `out` to the sum of `coefficient * features[column]` over the cells of one row."""
    for a in range(out.size):
        out[a] = 0
    for j in range(columns.size):
        feature = features[columns[j]]
        for a in range(out.size):
            out[a] += coefficients[j] * feature[a]


@compiled
def multiply_rows(
    start: int, stop: int, indptr: Array, columns: Array, values: Array, dense: Array, out: Array
) -> None:
    """Write rows of a sparse matrix times a dense one."""
    for row in range(start, stop):
        cells = slice(indptr[row], indptr[row + 1])
        sum_features(dense, columns[cells], values[cells], out[row])


@compiled
def predict_range(
    start: int, stop: int, rows: Array, columns: Array, left: Array, right: Array, out: Array
) -> None:
    """Write `left[row] . right[column]` for a range of cells."""
    for cell in range(start, stop):
        out[cell] = dot(left[rows[cell]], right[columns[cell]])


@compiled
def residual_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    row_offsets: Array,
    column_offsets: Array,
    left: Array,
    right: Array,
    out: Array,
) -> None:
    """Write what a factor model with offsets leaves of every stored value."""
    for row in range(start, stop):
        for cell in range(indptr[row], indptr[row + 1]):
            column = columns[cell]
            score = dot(left[row], right[column])
            out[cell] = values[cell] - row_offsets[row] - column_offsets[column] - score


@compiled
def add_by_column(columns: Array, values: Array, totals: Array) -> None:
    """Add every value to the total of its column."""
    for cell in range(columns.size):
        totals[columns[cell]] += values[cell]
