"""Add up the second moment of sparse rows, or its products with a vector, exactly.

Rows are first scaled to a length of at most 1 and cut to whole steps. What one row adds is then a whole
number of steps in every place, so removing a row moves the sum by exactly what that row had added. The
diagonal is left out everywhere: it tells how large a row is, not which columns go together, and chance alone
fills it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.checks import DataError
from discreet.contributions.kernels import scaled_rows as row_kernels
from discreet.solvers.kernels import shared as kernels
from discreet.solvers.rows import Rows, require_fit, run_over_rows

# Steps in a length of 1: an int16 holds them, and a row of thousands of values keeps two digits.
_UNIT = 2.0**14
# Products with a vector are in steps as fine as those of two entries.
_FINE = 2.0**28
# With fewer rows every sum stays below 2^53 steps and becomes a float without rounding.
_MOST_ROWS = 1 << 25
# What rounding can have added to a length computed from up to 2^31 terms, with room to spare.
_ROUNDING = 1 - 1e-6
# Threads add to sums of their own; beyond this size one sum is enough to hold.
_LARGEST_COPY = 1 << 21


class ScaledRows(NamedTuple):
    """Hold sparse rows of length at most 1 in whole steps."""

    indptr: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int16]
    n_columns: int


def own_places(rows: Rows, offsets: Floats, factors: Floats, ridge: Floats) -> Floats:
    """Return each row's ridge solution on the constant and the factors; `ridge` pulls the constant first.

    For the few factors of a round this is faster than the solver of alternating least squares, which is built
    for many.
    """
    require_fit(rows, offsets.size)
    out = np.empty((rows.n_rows, 1 + factors.shape[1]))
    run_over_rows(row_kernels.place_rows, rows, rows.values, offsets, factors, ridge, out)
    return out


def scaled_residuals(
    rows: Rows,
    offsets: Floats,
    factors: Floats,
    ridge: Floats,
    *,
    part: float,
    clamp: float = np.inf,
    least_length: float = 0.0,
) -> ScaledRows:
    """Scale what every row leaves beyond the offsets and its own places (`own_places`) to length 1.

    Rows shorter than `least_length` are divided by that instead. Residuals are at most `clamp` in size. The
    length counts `part` beside every residual, so that a row of tiny ones is not blown up.

    Raises:
        DataError: There are so many rows that their sums would not be exact.
    """
    if rows.n_rows >= _MOST_ROWS:
        raise DataError(f"Sums over {_MOST_ROWS:,} rows and more are not exact; take a sample of them.")
    require_fit(rows, offsets.size)
    steps = np.zeros(rows.values.size, dtype=np.int16)
    numbers = (float(part), float(clamp), float(least_length), _UNIT * _ROUNDING)
    run_over_rows(row_kernels.scale_residuals, rows, rows.values, offsets, factors, ridge, *numbers, steps)
    return ScaledRows(rows.indptr, rows.columns, steps, offsets.size)


def second_moment(rows: ScaledRows) -> Floats:
    """Return the sum of every row's outer product with itself, its diagonal left out."""
    upper = _summed(row_kernels.add_second_moment, rows, (rows.n_columns, rows.n_columns))
    matrix = upper.astype(np.float64)
    del upper
    matrix /= _UNIT**2
    matrix += np.triu(matrix, 1).T
    return matrix


def moment_product(rows: ScaledRows, vector: Floats) -> Floats:
    """Return the second moment times a vector of length at most 1, without building the moment."""
    settled = np.ascontiguousarray(vector, dtype=np.float64)
    total = _summed(row_kernels.add_products, rows, (rows.n_columns,), settled, _FINE / _UNIT**2)
    return total / _FINE


def _summed(
    kernel: Callable[..., None], rows: ScaledRows, shape: tuple[int, ...], *arguments: Any
) -> npt.NDArray[np.int64]:
    """Return the sum of what `kernel` adds for all rows; every thread has a sum of its own."""
    small = int(np.prod(shape)) <= _LARGEST_COPY
    parts = kernels.thread_count() if small and rows.columns.size > _LARGEST_COPY // 16 else 1
    totals = [np.zeros(shape, dtype=np.int64) for _ in range(parts)]
    cuts = np.searchsorted(rows.indptr, np.linspace(0, rows.columns.size, parts + 1))
    cuts[0], cuts[-1] = 0, rows.indptr.size - 1

    def add(part: int) -> None:
        kernel(
            int(cuts[part]),
            int(cuts[part + 1]),
            rows.indptr,
            rows.columns,
            rows.steps,
            *arguments,
            totals[part],
        )

    if parts == 1:
        add(0)
        return totals[0]
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(add, range(parts)))
    for other in totals[1:]:
        totals[0] += other
    return totals[0]
