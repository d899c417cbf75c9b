"""Compile loops over the rows of a block: the order of time, and residuals by item and by row.

Float operations keep their order here, so sums have the same bits as those of plain numpy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.core import Array
from discreet.core.kernels import longest_row, strict, strict_inner
from discreet.statistics.statistic import ROUNDING, VECTOR_STEPS
from discreet.statistics.typical import USER_RIDGE

_TINY = float(np.finfo(np.float64).tiny)


# Rows of at least so many entries are sorted by digits of so many bits: for shorter ones comparing is faster.
_LONG, _DIGIT = 48, 8


@strict_inner
def _sort_by_digits(keys: Array, spare: Array, low: int, high: int) -> None:
    """Sort keys that are in order below bit `low` and equal from bit `high` on; each pass keeps ties."""
    ends = np.empty(1 << _DIGIT, np.int64)
    mask = (np.int64(1) << _DIGIT) - 1
    source, target = keys, spare
    for shift in range(low, high, _DIGIT):
        for digit in range(ends.size):
            ends[digit] = 0
        for j in range(keys.size):
            ends[(source[j] >> shift) & mask] += 1
        total = 0
        for digit in range(ends.size):
            total, ends[digit] = total + ends[digit], total
        for j in range(keys.size):
            digit = (source[j] >> shift) & mask
            target[ends[digit]] = source[j]
            ends[digit] += 1
        source, target = target, source
    if ((high - low + _DIGIT - 1) // _DIGIT) % 2:
        for j in range(keys.size):
            keys[j] = spare[j]


@strict_inner
def _sort_by_insertion(keys: Array) -> None:
    """Sort a few keys. The general sort takes three seconds to compile."""
    for j in range(1, keys.size):
        key, place = keys[j], j
        while place > 0 and keys[place - 1] > key:
            keys[place] = keys[place - 1]
            place -= 1
        keys[place] = key


@strict
def order_by_time(
    start: int, stop: int, indptr: Array, times: Array, bits: int, same: Array, order: Array
) -> None:
    """Write each row's entries in the order of time, and which have the time of the one before.

    A time after the row's first one and a position below 2^`bits` make one key, so ties keep the row's order.
    """
    longest = longest_row(start, stop, indptr)
    keys, spare = np.empty(longest, np.int64), np.empty(longest, np.int64)
    mask = (np.int64(1) << bits) - 1
    for row in range(start, stop):
        first, count = indptr[row], indptr[row + 1] - indptr[row]
        if count == 0:
            continue
        earliest, latest, rising = times[first], times[first], True
        for j in range(1, count):
            time = times[first + j]
            earliest = time if time < earliest else earliest
            latest = time if time > latest else latest
            rising = rising and time >= times[first + j - 1]
        own = keys[:count]
        for j in range(count):
            own[j] = ((times[first + j] - earliest) << bits) | j
        if not rising and count < _LONG:
            _sort_by_insertion(own)
        elif not rising:
            high = bits
            while (latest - earliest) >> (high - bits):
                high += 1
            _sort_by_digits(own, spare[:count], bits, high)
        same[first] = False
        for j in range(count):
            order[first + j] = first + (own[j] & mask)
            if j:
                same[first + j] = (own[j] >> bits) == (own[j - 1] >> bits)


# The highest bit of an order in 16 bits states whether the time is that of the one before.
_SAME = 1 << 15


@strict
def pack_order(indptr: Array, order: Array, same: Array, packed: Array) -> None:
    """Write the place of each entry in its row and whether it has the time of the one before, in 16 bits."""
    for row in range(indptr.size - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            packed[entry] = order[entry] - indptr[row] + (_SAME if same[entry] else 0)


@strict
def unpack_order(indptr: Array, packed: Array, order: Array, same: Array) -> None:
    """Write what was packed."""
    for row in range(indptr.size - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            place = np.int64(packed[entry])
            order[entry], same[entry] = indptr[row] + (place & (_SAME - 1)), place >= _SAME


class Residuals(NamedTuple):
    """What `ItemResiduals` states, for compiled loops."""

    middle: float
    half: float
    mean: float
    effects: Array
    item_weights: Array
    count_part: float


@strict
def add_residuals(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    asked: Residuals,
    residuals: Array,
    sums: Array,
    counts: Array,
) -> None:
    """Add residuals and counts by item, in fixed point; numbers that are not finite add nothing.

    `residuals` is room for a row.
    """
    middle, half, mean, effects, item_weights, count_part = asked
    for row in range(start, stop):
        first, count = indptr[row], indptr[row + 1] - indptr[row]
        own = 0.0
        for j in range(count):
            residuals[j] = (values[first + j] - middle) / half - mean - effects[columns[first + j]]
            own += residuals[j]
        own /= count + USER_RIDGE
        squares = 0.0
        for j in range(count):
            residuals[j] -= own
            weight = item_weights[columns[first + j]]
            squares += weight * weight * (residuals[j] * residuals[j] + count_part * count_part)
        length = np.sqrt(squares)
        # A comparison with NaN is false, so NaN stays what it is.
        scale = ROUNDING / (_TINY if length < _TINY else length)
        for j in range(count):
            item = columns[first + j]
            weight = item_weights[item] * scale
            residual, part = weight * residuals[j] * VECTOR_STEPS, weight * count_part * VECTOR_STEPS
            if np.isfinite(residual):
                sums[item] += np.int64(residual)
            if np.isfinite(part):
                counts[item] += np.int64(part)


@strict
def weigh_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    places: Array,
    item_weights: Array,
    count_part: float,
    positions: Array,
    entries: Array,
) -> None:
    """Replace residuals by a row of norm at most 1 over the items that have places, which are written, too.

    Other items have weight 0. If one of their residuals is not finite, nothing in the row is: 0 times it is
    NaN.
    """
    for row in range(start, stop):
        squares = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            positions[entry] = places[columns[entry]]
            weight = item_weights[columns[entry]] if positions[entry] >= 0 else 0.0
            squares += weight * weight * (entries[entry] * entries[entry] + count_part * count_part)
        length = np.sqrt(squares)
        scale = ROUNDING / (_TINY if length < _TINY else length)
        for entry in range(indptr[row], indptr[row + 1]):
            weight = item_weights[columns[entry]] if positions[entry] >= 0 else 0.0
            entries[entry] = weight * entries[entry] * scale
