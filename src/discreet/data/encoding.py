"""Turn columns of users, items, ratings and times into sorted, checked arrays.

The time is linear in the number of ratings, but for the logarithm of a row's length. scipy's conversion
between compressed rows and columns is a stable counting sort, compiled and public, so it is used as one here;
`numpy.argsort` took three times as long on twenty million pairs.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from discreet.core import one_of
from discreet.core.exports import pl, sp
from discreet.data.block_sizes import block_sizes
from discreet.data.errors import BadValues, NotDeclared, NotNumeric, OtherNumberOfItems, RepeatedPairs
from discreet.data.facts import Duplicates
from discreet.data.vocabulary import UNKNOWN, Codes, Vocabulary, as_series

Column: TypeAlias = "Iterable[Any] | pl.Series"
_CHUNK = 1 << 20
ITEM_IDS = "item ids"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Ratings by user, items in order; `listed` is the order they came in, None if it is this one."""

    indptr: npt.NDArray[np.int64]
    items: Codes
    values: npt.NDArray[np.float32]
    times: npt.NDArray[np.int64] | None
    listed: Index | None


def encode(ids: Column, declared: Vocabulary | None, what: str) -> tuple[Vocabulary, Codes]:
    """Number the ids by a declared vocabulary, or by the sorted distinct ids."""
    if declared is None:
        return Vocabulary.factorize(ids, what)
    plain = declared.index_of_plain(ids)
    codes = declared.index_of(as_series(ids, what, encoded=True)) if plain is None else plain
    unknown = int(np.count_nonzero(codes == UNKNOWN))
    if unknown:
        # Where no id fits, the two are written in different ways; a declared catalog is public.
        foreign = what == ITEM_IDS and unknown == codes.size and len(declared) > 0
        raise NotDeclared(
            count=unknown,
            of=codes.size,
            what=what,
            declared=len(declared),
            example=declared.ids[:1].tolist()[0] if foreign else None,
        )
    return declared, codes


def encode_items(ids: Column, catalog: Vocabulary | None, n_items: int | None) -> tuple[Vocabulary, Codes]:
    """Number the items; a declared count alone means the IDs 0..n-1 or 1..n if all fit there."""
    if catalog is None and n_items is not None:
        ids = as_series(ids, ITEM_IDS, encoded=True)
        catalog = _numbered_catalog(ids, n_items)
    found, codes = encode(ids, catalog, ITEM_IDS)
    if n_items is not None and len(found) != n_items:
        raise OtherNumberOfItems(declared=n_items, items=len(found))
    return found, codes


def _numbered_catalog(series: pl.Series, n_items: int) -> Vocabulary | None:
    if series.dtype != pl.Int64:
        return None
    low, high = (0, 0) if len(series) == 0 else (series.min(), series.max())
    for start in (0, 1):
        if low >= start and high < start + n_items:  # type: ignore[operator]
            return Vocabulary.range(n_items, start)
    return None


def to_values(values: Column | None, count: int) -> npt.NDArray[np.float32]:
    """Return the ratings as float32, 1 where none are given; reject missing and infinite ones."""
    if values is None:
        return np.ones(count, dtype=np.float32)
    ratings = _to_floats(values)
    bad = count_not_finite(ratings)
    if bad:
        raise BadValues(what="ratings", count=bad, of=ratings.size)
    return ratings


def _to_floats(values: Column) -> npt.NDArray[np.float32]:
    if not isinstance(values, np.ndarray | list) and isinstance(values, pl.Series):
        if not (values.dtype.is_numeric() or values.dtype == pl.Null):
            raise NotNumeric(what="ratings", found=str(values.dtype))
        return joined([values.cast(pl.Float32).fill_null(float("nan"))], np.float32)
    try:
        with np.errstate(over="ignore"):
            return np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        # The error quotes a value, which is a user's record.
        raise NotNumeric(what="ratings") from None


def joined(taken: list[pl.Series], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return the numbers of the one series in a list, which is emptied.

    Parts of a series that have no other owner are freed as they are copied.
    """
    series = taken.pop()
    if series.n_chunks() == 1:
        return series.to_numpy()
    parts, found, done = series.get_chunks()[::-1], np.empty(len(series), dtype=kind), 0
    del series
    while parts:
        part = parts.pop()
        found[done : done + len(part)] = part.to_numpy()
        done += len(part)
    return found


def count_not_finite(numbers: npt.NDArray[np.float32]) -> int:
    """Count NaN and infinity without a temporary as long as the array."""
    parts = (numbers[start : start + _CHUNK] for start in range(0, numbers.size, _CHUNK))
    return sum(int(np.count_nonzero(~np.isfinite(part))) for part in parts)


def to_times(times: Column | None) -> npt.NDArray[np.int64] | None:
    """Return times as int64; reject missing ones."""
    return take_times([times])


def take_times(taken: list[Column | None]) -> npt.NDArray[np.int64] | None:
    """Return the times in a list, which is emptied, so that they are freed as they are copied."""
    times = taken.pop()
    if times is None:
        return None
    if isinstance(times, np.ndarray) and times.dtype == np.int64:
        return times
    if isinstance(times, np.ndarray) and times.dtype != object:
        series = _series_of(times)
    elif isinstance(times, pl.Series):
        series = times
    else:
        return _each_time(list(times))
    if not series.dtype.is_numeric():
        raise NotNumeric(what="times", kind="whole numbers", found=str(series.dtype))
    _refuse_missing(series.null_count(), len(series))
    try:
        moments = [series.cast(pl.Int64)]
        del times, series
        return joined(moments, np.int64)
    except pl.exceptions.PolarsError:
        # The error of polars quotes a value, which is a user's record.
        raise NotNumeric(what="times", kind="finite numbers of 64 bits", found="larger") from None


def _series_of(times: npt.NDArray[Any]) -> pl.Series:
    try:
        return pl.Series("time", times)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise NotNumeric(what="times", kind="whole numbers", found=str(times.dtype)) from None


def _each_time(times: list[Any]) -> npt.NDArray[np.int64]:
    """Return numbers in a Python container as whole numbers, each converted by itself.

    A container's common type would follow from all of them: one fraction would round all users' times.
    """
    _refuse_missing(sum(time is None for time in times), len(times))
    try:
        return np.fromiter(map(whole_number, times), dtype=np.int64, count=len(times))
    except (TypeError, ValueError, OverflowError):
        raise NotNumeric(what="times", kind="whole numbers of 64 bits", found="others") from None


def _refuse_missing(missing: int, count: int) -> None:
    if missing:
        raise BadValues(what="times", count=missing, of=count)


def whole_number(number: Any) -> int:
    """Return a number without its fraction; raise a TypeError for anything else."""
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        raise TypeError("not a number")
    plain: Any = number
    return int(plain)


def sort_ratings(
    columns: list[npt.NDArray[Any] | None], size: tuple[int, int], duplicates: Duplicates = "refuse"
) -> Sorted:
    """Sort users, items, ratings and times; reject or merge ratings of the same pair. `size` counts both.

    The list of columns is emptied, so that each can be freed as soon as it is sorted.
    """
    one_of("duplicates", duplicates, get_args(Duplicates))
    rows, items = columns.pop(0), columns.pop(0)
    assert rows is not None and items is not None
    indptr, items, order = by_person_and_item(rows, items, *size)
    del rows
    sorted_columns = []
    while columns:
        column = columns.pop(0)
        sorted_columns.append(column if order is None or column is None else np.take(column, order))
    values, times = sorted_columns
    assert values is not None
    result = Sorted(indptr=indptr, items=items, values=values, times=times, listed=order)
    again = repeats(indptr, items)
    extra = int(np.count_nonzero(again))
    if extra == 0:
        return result
    if duplicates == "refuse":
        raise RepeatedPairs(count=extra, of=items.size)
    return _merge(result, ~again, duplicates)


def _merge(data: Sorted, first: npt.NDArray[np.bool_], how: Duplicates) -> Sorted:
    """Keep one rating of each run of equal pairs, the first or last; `first` marks where a run starts."""
    starts = np.flatnonzero(first)
    chosen = _outermost_of_runs(data, first, starts, earliest=how == "first")
    values = data.values[chosen]
    if how in ("mean", "count"):
        sizes = np.diff(starts, append=first.size) if how == "mean" else 1
        sums = exact_sums(data.values, starts)
        # What does not fit into a single becomes infinite, and is rejected.
        with np.errstate(over="ignore"):
            values = (sums / sizes).astype(np.float32)
    before = np.concatenate([[0], np.cumsum(first)])
    return Sorted(
        indptr=before[data.indptr],
        items=data.items[chosen],
        values=values,
        times=None if data.times is None else data.times[chosen],
        listed=chosen if data.listed is None else data.listed[chosen],
    )


def exact_sums(values: npt.NDArray[np.float32], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the sum of each run, rounded once: the same for every order in which its values are listed.

    The order within a run follows from how all rows were sorted, so it depends on other users' rows. Doubles
    add without rounding as long as all partial sums are whole multiples, below 2^53, of one power of two.
    """
    wide = values.astype(np.float64)
    sums = np.add.reduceat(wide, starts)
    sizes = np.diff(starts, append=values.size)
    bound = np.maximum.reduceat(np.abs(wide), starts) * sizes
    inexact = bound > np.ldexp(np.minimum.reduceat(_units_in_last_place(wide), starts), 53)
    for run in np.flatnonzero(inexact).tolist():
        sums[run] = math.fsum(wide[starts[run] : starts[run] + sizes[run]])
    return sums


def _units_in_last_place(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the greatest power of two of which each value is a whole multiple; infinity for zero."""
    fractions, exponents = np.frexp(values)
    whole = np.ldexp(fractions, 24).astype(np.int64)
    units = np.ldexp((whole & -whole).astype(np.float64), exponents - 24)
    return np.where(whole == 0, np.inf, units)


def _outermost_of_runs(
    data: Sorted, first: npt.NDArray[np.bool_], starts: npt.NDArray[np.int64], *, earliest: bool
) -> npt.NDArray[np.int64]:
    """Return the earliest or latest rating of each run; among equal times, or without, listing decides."""
    outermost = np.minimum if earliest else np.maximum
    run = np.cumsum(first) - 1
    # A copy, because what its time rules out is overwritten.
    listed = np.arange(first.size, dtype=np.int64) if data.listed is None else data.listed.astype(np.int64)
    if data.times is not None:
        beyond = np.iinfo(np.int64).max if earliest else -1
        listed[data.times != outermost.reduceat(data.times, starts)[run]] = beyond
    return np.flatnonzero(listed == outermost.reduceat(listed, starts)[run])


_PART = 1 << 16
Index = npt.NDArray[np.int32] | npt.NDArray[np.int64]


def group(
    keys: npt.NDArray[np.int32], groups: int, carried: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Index]:
    """Sort by key (each below `groups`); return where groups start, what was carried along, and the order."""
    starts: npt.NDArray[Any] = _positions(keys.size + 1)
    # One stored entry a row, whose column is the key: conversion to columns sorts by key.
    turned: Any = sp.csr_array((carried, keys, starts), shape=(keys.size, groups)).tocsc()
    return turned.indptr.astype(np.int64), turned.data, turned.indices


def group_starts(keys: npt.NDArray[np.int32], groups: int) -> npt.NDArray[np.int64]:
    """Return where each group starts once the keys are in order."""
    counts = np.zeros(groups, dtype=np.int64)
    # Counting widens the keys, so it is done a part at a time.
    for start in range(0, keys.size, _CHUNK):
        counts += np.bincount(keys[start : start + _CHUNK], minlength=groups)
    return np.append(0, np.cumsum(counts))


def by_person_and_item(
    rows: npt.NDArray[np.int32], items: npt.NDArray[np.int32], n_users: int, n_items: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Index | None]:
    """Return where each user's ratings start, the sorted items, and the order, None if already sorted.

    Ratings of the same pair stay in the order they came in. Rows and items are used up.
    """
    # Codes that polars found are its own memory, which is read-only.
    rows, items = np.require(rows, requirements="W"), np.require(items, requirements="W")
    indptr = group_starts(rows, n_users)
    if n_users.bit_length() + n_items.bit_length() + rows.size.bit_length() > block_sizes().key_bits:
        order, _ = _sorted_places([items.copy()])
        order = order[_sorted_places([rows[order]])[0]]
        items = np.take(items, order)
    else:
        order, items = _sorted_places([rows, items])
    is_sorted = bool((order == _positions(order.size)).all())
    return (indptr, items, None) if is_sorted else (indptr, items, order)


def _sorted_places(columns: list[npt.NDArray[np.int32]]) -> tuple[Index, npt.NDArray[np.int32]]:
    """Return the places of rows in order of these columns, equal ones in their order, and the last column.

    The columns and the place of a row are sorted as one number, which takes a fraction of the time. The last
    column is read off these numbers: to fetch it row by row would take longer than the sort. The columns are
    used up: results are written over them, because fresh memory takes longer than what is done with it.
    """
    count, place_bits = columns[0].size, columns[0].size.bit_length()
    widths = [int(column.max(initial=0)).bit_length() for column in columns]
    keys = np.empty(count, np.int64)
    for start in range(0, count, _PART):
        key = keys[start : start + _PART]
        key[:] = columns[0][start : start + _PART]
        for column, width in zip(columns[1:], widths[1:], strict=True):
            key <<= width
            key |= column[start : start + _PART]
        key <<= place_bits
        key |= np.arange(start, start + key.size)
    keys.sort()
    last = columns[-1]
    order: Index = columns[0] if len(columns) > 1 and count < 2**31 else _positions(count)
    for start in range(0, count, _PART):
        key = keys[start : start + _PART]
        order[start : start + _PART] = key & ((1 << place_bits) - 1)
        key >>= place_bits
        last[start : start + _PART] = key & ((1 << widths[-1]) - 1)
    return order, last


def sort_runs(numbers: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the numbers, each run of them in ascending order."""
    ends = np.append(starts, numbers.size)
    weights = np.zeros(numbers.size, dtype=np.int8)
    runs: Any = sp.csr_array((weights, numbers.copy(), ends), shape=(starts.size, np.iinfo(np.int64).max))
    runs.sort_indices()
    return runs.indices.astype(np.int64, copy=False)  # type: ignore[no-any-return]


def rows_are_sorted(indptr: npt.NDArray[np.int64], items: npt.NDArray[np.int32]) -> bool:
    """Return whether the items never fall inside a row."""
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
