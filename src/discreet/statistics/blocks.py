"""Split data into blocks of whole users, and compute what depends on each user's own row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices
from discreet.core.exports import Later
from discreet.core.rows import Rows, column_sums, run
from discreet.data.interactions import Interactions
from discreet.statistics.fixed_point import ROUNDING, Steps, as_fixed_point, to_fixed_point

if TYPE_CHECKING:
    from discreet.statistics import row_kernels as kernels
else:
    kernels = Later("discreet.statistics.row_kernels")

# No more users than this have ratings in a block, so sums of floats over a block stay exact.
_RATINGS_PER_BLOCK = 1 << 21


# Orders of time by block, which several statistics of one fit ask for: 2 bytes a rating instead of sorting
# again. A place in a row of at most so many ratings leaves a bit for whether the time is that of the one
# before.
_orders: WeakKeyDictionary[Interactions, dict[tuple[int, int], npt.NDArray[np.uint16]]] = WeakKeyDictionary()
_LONGEST_KEPT = 1 << 15


def rows_of(histories: Interactions) -> Rows:
    """Return the histories as CSR rows for solvers."""
    return Rows(histories.indptr, histories.items, histories.values)


def blocks(data: Interactions, *, most_people: int | None = None) -> Iterator[Block]:
    """Yield the users in blocks of whole rows, small enough that a few copies of a block fit in memory."""
    start = 0
    while start < data.n_users:
        stop = int(np.searchsorted(data.indptr, data.indptr[start] + _RATINGS_PER_BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), data.n_users, start + (most_people or data.n_users))
        yield Block(data, start, stop)
        start = stop


class Block:
    """The ratings of consecutive users, with sums and norms over each user's own row."""

    __slots__ = ("counts", "data", "indptr", "items", "start", "stop")

    def __init__(self, data: Interactions, start: int, stop: int) -> None:
        span = slice(int(data.indptr[start]), int(data.indptr[stop]))
        self.data, self.start, self.stop = data, start, stop
        self.indptr = data.indptr[start : stop + 1] - data.indptr[start]
        self.counts = np.diff(self.indptr)
        self.items = data.items[span]

    @property
    def values(self) -> Floats:
        """Return the ratings in double precision."""
        span = slice(int(self.data.indptr[self.start]), int(self.data.indptr[self.stop]))
        return self.data.values[span].astype(np.float64)

    @property
    def people(self) -> Indices:
        """Return the row of every rating, counted from the first of the block."""
        return np.repeat(np.arange(self.stop - self.start), self.counts)

    def alone(self) -> Interactions:
        """Return these users as a dataset of their own."""
        return self.data.span(self.start, self.stop)

    def rows(self, values: Floats | None = None) -> Rows:
        """Return the ratings, or other values of the same entries, as CSR rows."""
        numbers = self.values if values is None else values
        return Rows(self.indptr, self.items, numbers.astype(np.float32))

    def in_time(self) -> tuple[Indices, npt.NDArray[np.bool_]]:
        """Return each user's ratings in the order of time, and which have the time of the one before.

        The first array has positions in the block. The second states, in the order of the first, whether the
        user's previous rating has the same time; without times it is always true. Ties keep the order of the
        row, so both depend on the user's own row alone. Orders of short rows are kept for the next statistic.
        """
        if self.data.times is None:
            return np.arange(self.items.size), np.ones(self.items.size, dtype=bool)
        kept, span = _orders.setdefault(self.data, {}), (self.start, self.stop)
        if span in kept:
            order, same = np.empty(self.items.size, dtype=np.int64), np.empty(self.items.size, dtype=bool)
            kernels.unpack_order(self.indptr, kept[span], order, same)
            return order, same
        order, same = self._sorted(self.data.times)
        if self.counts.max(initial=0) <= _LONGEST_KEPT:
            packed = np.empty(self.items.size, dtype=np.uint16)
            kernels.pack_order(self.indptr, order, same, packed)
            kept[span] = packed
        return order, same

    def _sorted(self, times: Indices) -> tuple[Indices, npt.NDArray[np.bool_]]:
        """Sort each row by time."""
        times = times[self.data.indptr[self.start] : self.data.indptr[self.stop]]
        bits = int(self.counts.max(initial=0)).bit_length()
        if times.size == 0 or (int(times.max()) - int(times.min())) >> (63 - bits) == 0:
            return self._ordered(times, bits)
        # Times so far apart do not fit into one key with a position.
        order = np.lexsort((times, self.people))
        same = np.zeros(self.items.size, dtype=bool)
        same[1:] = times[order[1:]] == times[order[:-1]]
        same[self.indptr[:-1][self.counts > 0]] = False
        return order, same

    def _ordered(self, times: Indices, bits: int) -> tuple[Indices, npt.NDArray[np.bool_]]:
        """Sort each row by itself, with keys of the time and `bits` for the position."""
        order, same = np.empty(self.items.size, dtype=np.int64), np.empty(self.items.size, dtype=bool)

        def part(start: int, stop: int, out: Indices) -> None:
            kernels.order_by_time(start, stop, self.indptr, times, bits, same, out)

        run(part, self.indptr, order)
        return order, same

    def per_person(self, terms: Floats) -> Floats:
        """Return the sum of `terms` over each user's own ratings."""
        return column_sums(self.people, terms, self.counts.size)

    def unit_weights(self, squared_terms: Floats) -> Floats:
        """Return, for each rating, the weight that scales its user's vector to a norm of at most 1."""
        lengths = np.sqrt(self.per_person(squared_terms))
        return (ROUNDING / np.maximum(lengths, np.finfo(np.float64).tiny))[self.people]

    def add_by_item(self, contributions: Floats, totals: Steps) -> None:
        """Add contributions (each at most 1 in absolute value) to the items' totals, in fixed point."""
        totals += as_fixed_point(column_sums(self.items, to_fixed_point(contributions), totals.size))
