"""Sum the second moment of users' rows over selected columns, exactly, without its diagonal.

A row x of norm at most 1 is truncated toward zero to fixed-point units of 2^-14, and the products of its
entries are added as integers. The matrix x x' without its diagonal has a Frobenius norm of at most
|x|^2 <= 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.core import Array, Floats, add_over_rows, residuals, run
from discreet.core.kernels import compiled, inner
from discreet.solvers import solve_rows
from discreet.statistics import row_kernels
from discreet.statistics.domain import FARTHEST, LEAST, MOST, Number, Numbers, Places
from discreet.statistics.pair_tiles import empty_row
from discreet.statistics.statistic import PRODUCT_BITS, ROW_STEPS, Block, Part, Statistic, Steps
from discreet.statistics.typical import COUNT_PART


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualMoment(Statistic):
    """Sum of x x' off the diagonal; x has the weighted residuals of a user's own ridge regression.

    With residuals e_i and weights q_i = `pull` over the items `top` (ascending), x_i = w q_i e_i with
    w = 1 / sqrt(sum_i q_i^2 (e_i^2 + c^2)), so |x| <= 1. A user whose ridge has no finite solution adds zero.
    """

    top: Annotated[npt.NDArray[np.int64], Places(("t",), below="n", rising=True)]
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    offsets: Annotated[Floats, Numbers(("n",), -MOST, MOST)]
    features: Annotated[Floats, Numbers(("n", "k"), -MOST, MOST)]
    ridge: Annotated[Floats, Numbers(("k",), LEAST, MOST)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of the matrix over `top`."""
        size = self.top.size
        return (Part("moment", (size, size), bits=PRODUCT_BITS, symmetric=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.rows((block.values - self.middle) / self.half)
        solved = solve_rows(people, self.features, ridge=self.ridge, offsets=self.offsets, finite=False)
        entries = residuals(people, solved, self.features, np.zeros(people.n_rows), self.offsets)
        places = places_among(self.top, self.offsets.size)
        positions = np.empty(entries.size, np.int32)

        def part(start: int, stop: int, out: Floats) -> None:
            given = (block.indptr, block.items, places, self.item_weights, COUNT_PART, positions)
            row_kernels.weigh_rows(start, stop, *given, out)

        run(part, block.indptr, entries)
        add_rows(block.indptr, positions, entries, sums[0])


def places_among(top: npt.NDArray[np.int64], n_items: int) -> npt.NDArray[np.int32]:
    """Return each item's position in `top`, or -1."""
    positions = np.full(n_items, -1, dtype=np.int32)
    positions[top] = np.arange(top.size)
    return positions


def add_rows(
    indptr: npt.NDArray[np.int64], positions: npt.NDArray[np.int32], entries: Floats, total: Steps
) -> None:
    """Add the products of rows of norm at most 1 to the upper triangle; rows that are not finite add nothing.

    Entries at position -1 are skipped.
    """
    longest = int(np.diff(indptr).max(initial=0))

    def part(start: int, stop: int, own: Steps) -> None:
        # Arrays are made here because code that makes them takes longer to compile than a loop.
        row = (np.empty(longest, np.uint32), np.empty(longest, np.int32))
        sums = (np.zeros(own.shape, np.int32), np.zeros(len(own), np.int64))
        add_moment(start, stop, indptr, positions, entries, ROW_STEPS, *row, *sums, own)

    add_over_rows(part, indptr, total)


# A line of 32-bit sums is added to the totals before one of its sums could exceed this.
_MOST_UNITS = (1 << 31) - 1


@inner
def _fixed_point_row(
    positions: Array, entries: Array, unit: float, columns: Array, units: Array
) -> tuple[int, int]:
    """Write a row's entries in fixed point, truncated toward zero.

    Return their number, 0 if one is not finite, and the largest magnitude.
    """
    count, largest = 0, np.int64(0)
    for j in range(positions.size):
        if positions[j] < 0:
            continue
        if not np.isfinite(entries[j]):
            return 0, 0
        truncated = np.int64(entries[j] * unit)
        if truncated != 0:
            columns[count] = positions[j]
            units[count] = truncated
            largest = max(largest, abs(truncated))
            count += 1
    return count, largest  # type: ignore[return-value]


@compiled
def add_moment(
    start: int,
    stop: int,
    indptr: Array,
    positions: Array,
    entries: Array,
    unit: float,
    columns: Array,
    units: Array,
    sums: Array,
    bounds: Array,
    totals: Array,
) -> None:
    """Add the products of every pair of a row's entries to the upper triangle; positions rise along a row.

    `columns` and `units` are room for a row. Sums of 32 bits, zero at first, need half as much of the cache.
    `bounds` are what no sum of a line exceeds in magnitude. A row has norm at most 1, that is 2^14 units, so
    one product has at most 2^28.
    """
    for row in range(start, stop):
        own = slice(indptr[row], indptr[row + 1])
        count, largest = _fixed_point_row(positions[own], entries[own], unit, columns, units)
        for first in range(count):
            column, here = columns[first], units[first]
            line, most = sums[column], abs(np.int64(here)) * largest
            bounds[column] += most
            if bounds[column] > _MOST_UNITS:
                empty_row(line, totals[column])
                bounds[column] = most
            for second in range(first + 1, count):
                line[columns[second]] += here * units[second]
    for column in range(len(totals)):
        empty_row(sums[column], totals[column])
