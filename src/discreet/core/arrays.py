"""Array types, CSR rows, and compiled loops over them on all available threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import pairwise
from tokenize import TokenError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from discreet.core.errors import BadSparseMatrix
from discreet.core.exports import Later

if TYPE_CHECKING:
    import numba

    from discreet.core import kernels
else:
    numba, kernels = Later("numba"), Later("discreet.core.kernels")


#: Any array, as compiled loops take it.
Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

#: What numpy raises on a malformed header of an array file.
STRANGE_HEADER = (SyntaxError, TypeError, RecursionError, TokenError)


# Several parts a thread, so that a slow part does not hold up the rest.
_PARTS_PER_THREAD = 4
# The fixed cost of a row, in entries.
_ENTRIES_PER_ROW = 100
# With fewer entries, threads cost more than they save.
_WORTH_THREADS = 20_000


class Rows(NamedTuple):
    """A sparse matrix by rows, with an optional non-negative weight for every stored value.

    Assumes
        `indptr` int64, `columns` int32 sorted within a row, `values` and `weights` float32.
    """

    indptr: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    weights: npt.NDArray[np.float32] | None = None

    @property
    def n_rows(self) -> int:
        """Return the number of rows, empty ones included."""
        return self.indptr.size - 1

    def row_weights(self) -> npt.NDArray[np.float64]:
        """Return the total weight of every row; without weights, the number of its values."""
        if self.weights is None:
            return np.diff(self.indptr).astype(np.float64)
        return np.diff(np.concatenate(([0.0], np.cumsum(self.weights, dtype=np.float64)))[self.indptr])


def thread_count() -> int:
    """Return how many threads may run kernels: NUMBA_NUM_THREADS, or the number of processors."""
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


def require_fit(rows: Rows, n_columns: int) -> None:
    """Raise for a matrix whose arrays are inconsistent: compiled loops do not check bounds."""
    stored = rows.columns.size
    sizes = {stored, rows.values.size, stored if rows.weights is None else rows.weights.size}
    if rows.indptr.size == 0 or rows.indptr[0] != 0 or rows.indptr[-1] != stored or len(sizes) > 1:
        raise BadSparseMatrix(part="lengths")
    if (rows.indptr[1:] < rows.indptr[:-1]).any():
        raise BadSparseMatrix(part="row pointers")
    if stored and (rows.columns.min() < 0 or rows.columns.max() >= n_columns):
        raise BadSparseMatrix(part="columns")
    if rows.weights is not None and stored and not rows.weights.min() >= 0:
        raise BadSparseMatrix(part="weights")


def run(kernel: Callable[..., None], cost: Array | int, *arguments: object) -> None:
    """Call `kernel(start, stop, *arguments)` on ranges of about equal cost that together cover all rows.

    `cost` is cumulative, starts at 0 and has one entry more than there are rows; or it is the number of rows,
    which then cost the same. The kernel writes to its last argument.
    """
    *inputs, out = arguments
    settled = [_read_only(value) if isinstance(value, np.ndarray) else value for value in inputs]
    threads, all_of_it = thread_count(), cost if isinstance(cost, int) else int(cost[-1])
    parts = threads * _PARTS_PER_THREAD if threads > 1 and all_of_it > _WORTH_THREADS else 1
    # Numbers of another type than the costs' would have all of these copied.
    cuts = np.linspace(0, all_of_it, parts + 1).astype(np.int64)
    if not isinstance(cost, int):
        cuts = np.searchsorted(cost, cuts)
        cuts[0], cuts[-1] = 0, cost.size - 1
    ranges = [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
    if len(ranges) <= 1:
        for start, stop in ranges:
            kernel(start, stop, *settled, out)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda part: kernel(*part, *settled, out), ranges))


def run_over_rows(kernel: Callable[..., None], rows: Rows, *arguments: object) -> None:
    """Call `kernel(start, stop, indptr, columns, *arguments)` over all rows."""
    cost = rows.indptr + _ENTRIES_PER_ROW * np.arange(rows.indptr.size)
    run(kernel, cost, rows.indptr, rows.columns, *arguments)


def add_over_rows(add: Callable[..., None], indptr: Array, *totals: Array, alone: bool = False) -> None:
    """Call `add(start, stop, *totals)`, which adds to the totals in place, on ranges of rows.

    All threads but one have totals of their own, so addition must be exact in any order: integers, in floats
    below 2^53. With `alone` there is one thread, because one set of totals is enough to hold.
    """
    threads = thread_count() if indptr[-1] > _WORTH_THREADS and not alone else 1
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], threads + 1).astype(np.int64))
    cuts[0], cuts[-1] = 0, indptr.size - 1
    spans = [(start, stop) for start, stop in pairwise(cuts.tolist()) if start < stop]
    if len(spans) <= 1:
        add(0, indptr.size - 1, *totals)
        return
    others = [[np.zeros_like(total) for total in totals] for _ in spans[1:]]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda span, own: add(*span, *own), spans, [totals, *others]))
    for own in others:
        for total, more in zip(totals, own, strict=True):
            total += more


def multiply(rows: Rows, dense: Array) -> Array:
    """Return the sparse matrix times a dense one, in the type of the dense one; weights are ignored."""
    require_fit(rows, dense.shape[0])
    out = np.empty((rows.n_rows, dense.shape[1]), dense.dtype)
    run_over_rows(kernels.multiply_rows, rows, rows.values.astype(dense.dtype, copy=False), dense, out)
    return out


def require_cells(left: Array, right: Array, rows: Array, columns: Array) -> None:
    """Raise for entries outside the product of two factor matrices."""
    for index, table in ((rows, left), (columns, right)):
        if index.size and (index.min() < 0 or index.max() >= table.shape[0]):
            raise BadSparseMatrix(part="entries")
    if rows.shape != columns.shape or left.shape[1] != right.shape[1] or left.dtype != right.dtype:
        raise BadSparseMatrix(part="entries")


def predict_cells(left: Array, right: Array, rows: Array, columns: Array) -> Array:
    """Return `left[row] . right[column]` for every pair in `rows` and `columns`."""
    rows, columns = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    require_cells(left, right, rows, columns)
    out = np.empty(rows.size, left.dtype)
    run(kernels.predict_range, rows.size, rows, columns, left, right, out)
    return out


def residuals(rows: Rows, left: Array, right: Array, row_offsets: Array, column_offsets: Array) -> Array:
    """Return `value - row offset - column offset - left . right` for every stored value, in order."""
    require_fit(rows, right.shape[0])
    out = np.empty(rows.values.size, left.dtype)
    offsets = (row_offsets.astype(left.dtype, copy=False), column_offsets.astype(left.dtype, copy=False))
    run_over_rows(kernels.residual_rows, rows, rows.values, *offsets, left, right, out)
    return out


def column_sums(columns: Array, values: Array, n_columns: int) -> npt.NDArray[np.float64]:
    """Return the sum of `values` by column in double precision, without a temporary array."""
    if columns.size != values.size or (columns.size and not 0 <= columns.min() <= columns.max() < n_columns):
        raise BadSparseMatrix(part="columns")
    totals = np.zeros(n_columns)
    kernels.add_by_column(_read_only(columns), _read_only(values), totals)
    return totals


def one_algebra_thread() -> AbstractContextManager[object]:
    """Limit the linear-algebra library to one thread inside the block.

    Solves that alternate between thin matrices and sparse products need this: after a product the library's
    threads wait in a busy loop and take the processor from the sparse products. The limit is for the whole
    process, like every setting of that library. Setting it costs a few milliseconds, so do it once per solve.
    """
    limited: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limited


def _read_only(array: Array) -> Array:
    """Return a read-only view: one type for the compiler, whatever the caller's flags are."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
