"""Compile the exact second moment of people's rows over a part of the columns."""

from __future__ import annotations

import numpy as np

from discreet.solvers.kernels.shared import Array, compiled


@compiled
def _steps_of_row(places: Array, entries: Array, unit: float, columns: Array, steps: Array) -> int:
    """Write a row's entries in whole steps, cut toward zero; return how many, none if one is not finite."""
    count = 0
    for cell in range(places.size):
        if places[cell] < 0:
            continue
        if not np.isfinite(entries[cell]):
            return 0
        step = np.int64(entries[cell] * unit)
        if step != 0:
            columns[count] = places[cell]
            steps[count] = step
            count += 1
    return count


@compiled
def add_moment(
    start: int, stop: int, indptr: Array, places: Array, entries: Array, unit: float, totals: Array
) -> None:
    """Add the products of every pair of a row's entries to the upper triangle; places rise along a row."""
    longest = 0
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    columns = np.empty(longest, np.int64)
    steps = np.empty(longest, np.int64)
    for row in range(start, stop):
        cells = slice(indptr[row], indptr[row + 1])
        count = _steps_of_row(places[cells], entries[cells], unit, columns, steps)
        for first in range(count):
            line, here = totals[columns[first]], steps[first]
            for second in range(first + 1, count):
                line[columns[second]] += here * steps[second]
