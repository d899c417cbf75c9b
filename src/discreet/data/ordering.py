"""Sort ratings by person and item: one counting sort by person, then each short row on its own.

The time is linear in the number of ratings, but for the logarithm of a row's length. scipy's conversion
between compressed rows and columns is a stable counting sort, compiled and public, so it is used as one here;
`numpy.argsort` took three times as long on twenty million pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.exports import Later

if TYPE_CHECKING:
    import scipy.sparse as sp
else:
    sp = Later("scipy.sparse")

# So few ratings are compared with each other: loading scipy would take longer.
_FEW = 4096
Index = npt.NDArray[np.int32] | npt.NDArray[np.int64]


def group(
    keys: npt.NDArray[np.int32], groups: int, carried: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Index]:
    """Sort by key (each below `groups`); return where groups start, what was carried along, and the order."""
    starts: npt.NDArray[Any] = _positions(keys.size + 1)
    # One stored cell a row, whose column is the key: turning rows into columns sorts by key.
    cells: Any = sp.csr_array((carried, keys, starts), shape=(keys.size, groups)).tocsc()
    return cells.indptr.astype(np.int64), cells.data, cells.indices


def group_starts(keys: npt.NDArray[np.int32], groups: int) -> npt.NDArray[np.int64]:
    """Return where each group starts once the keys are in order."""
    starts = np.zeros(groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=groups), out=starts[1:])
    return starts


def is_sorted(keys: npt.NDArray[Any]) -> bool:
    """Tell whether the keys never fall."""
    return bool(np.all(keys[1:] >= keys[:-1]))


def by_person_and_item(
    rows: npt.NDArray[np.int32], items: npt.NDArray[np.int32], n_users: int, n_items: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Index | None]:
    """Return where each person's ratings start, the sorted items, and the order, None if it was this."""
    if rows.size <= _FEW:
        return _by_comparing(rows, items, n_users)
    if not is_sorted(rows):
        indptr, items, order = group(rows, n_users, items)
        return indptr, *sort_rows(indptr, items, n_items, order)
    indptr = group_starts(rows, n_users)
    if rows_are_sorted(indptr, items):
        return indptr, items, None
    return indptr, *sort_rows(indptr, items.copy(), n_items, _positions(items.size))


def _by_comparing(
    rows: npt.NDArray[np.int32], items: npt.NDArray[np.int32], n_users: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Index | None]:
    order = np.lexsort((items, rows)).astype(np.int32)
    indptr = group_starts(rows, n_users)
    return (indptr, items, None) if is_sorted(order) else (indptr, items[order], order)


def sort_rows(
    indptr: npt.NDArray[np.int64], items: npt.NDArray[np.int32], n_items: int, order: Index
) -> tuple[npt.NDArray[np.int32], Index]:
    """Put the items of each row in order, and `order` with them; both are used up."""
    carried: npt.NDArray[Any] = order
    # Beside wide row ends scipy would make the items wide, too, and copy them.
    ends: npt.NDArray[Any] = indptr.astype(np.int32) if items.size < 2**31 else indptr
    rows: Any = sp.csr_array((carried, items, ends), shape=(indptr.size - 1, n_items))
    rows.sort_indices()
    return rows.indices.astype(np.int32, copy=False), rows.data


def sort_runs(numbers: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers, each run of them in ascending order."""
    ends = np.append(starts, numbers.size)
    weights = np.zeros(numbers.size, dtype=np.int8)
    runs: Any = sp.csr_array((weights, numbers.copy(), ends), shape=(starts.size, np.iinfo(np.int64).max))
    runs.sort_indices()
    return runs.indices.astype(np.int64, copy=False)  # type: ignore[no-any-return]


def rows_are_sorted(indptr: npt.NDArray[np.int64], items: npt.NDArray[np.int32]) -> bool:
    """Tell whether the items never fall inside a row."""
    falls = items[1:] < items[:-1]
    falls[row_boundaries(indptr, items.size)] = False
    return not falls.any()


def repeats(indptr: npt.NDArray[np.int64], items: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Mark each rating whose item is the one before it in the same sorted row."""
    same = np.zeros(items.size, dtype=np.bool_)
    np.equal(items[1:], items[:-1], out=same[1:])
    same[indptr[:-1][indptr[:-1] < items.size]] = False
    return same


def row_boundaries(indptr: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Return each k such that ratings k and k + 1 belong to different rows."""
    inner = indptr[(indptr > 0) & (indptr < size)]
    return inner - 1


def cells_of_rows(indptr: npt.NDArray[np.int64], rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the positions of all ratings of the given rows, row after row."""
    lengths = indptr[rows + 1] - indptr[rows]
    shift = np.repeat(indptr[rows] - (np.cumsum(lengths) - lengths), lengths)
    cells: npt.NDArray[np.int64] = np.arange(shift.size, dtype=np.int64) + shift
    return cells


def _positions(count: int) -> Index:
    return np.arange(count, dtype=np.int32) if count < 2**31 else np.arange(count, dtype=np.int64)
