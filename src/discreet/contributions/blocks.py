"""Add up what each person contributes, exactly: no rounding error of one person's sum depends on another.

Contributions are cut to multiples of 2^-24, toward zero, so their norm cannot grow; sums of up to 2^27
contributions of at most 1 then stay below 2^53 steps and double precision adds them without any rounding.
So adding or removing one person moves the sums by exactly that person's vector, in whatever order and in
however many blocks they were added.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from discreet.arrays import Floats
from discreet.checks import DataError
from discreet.data.interactions import Interactions
from discreet.solvers.rows import Rows, column_sums

_GRID = 2.0**-24
# What rounding can have added to a norm computed from up to 2^31 terms, with room to spare.
_ROUNDING = 1 - 1e-6
_RATINGS_PER_BLOCK = 1 << 21
_MOST_PEOPLE = 1 << 27


def rows_of(histories: Interactions) -> Rows:
    """Return the histories in the form that solvers read."""
    return Rows(histories.indptr, histories.items, histories.values)


def blocks(data: Interactions, *, most_people: int | None = None) -> Iterator[Block]:
    """Yield the people in blocks of whole rows, small enough that a few copies of one fit in memory."""
    if data.n_users > _MOST_PEOPLE:
        raise DataError(f"Sums are exact for at most {_MOST_PEOPLE:,} people; these data hold more.")
    start = 0
    while start < data.n_users:
        stop = int(np.searchsorted(data.indptr, data.indptr[start] + _RATINGS_PER_BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), data.n_users, start + (most_people or data.n_users))
        yield Block(data, start, stop)
        start = stop


class Block:
    """Hold a run of people: their ratings, and sums and lengths over each one's own row."""

    __slots__ = ("counts", "indptr", "items", "people", "start", "stop", "values")

    def __init__(self, data: Interactions, start: int, stop: int) -> None:
        span = slice(int(data.indptr[start]), int(data.indptr[stop]))
        self.start, self.stop = start, stop
        self.indptr = data.indptr[start : stop + 1] - data.indptr[start]
        self.counts = np.diff(self.indptr)
        self.items = data.items[span]
        self.values = data.values[span].astype(np.float64)
        self.people = np.repeat(np.arange(stop - start), self.counts)

    def per_person(self, terms: Floats) -> Floats:
        """Return the sum of `terms` over each person's own ratings."""
        return column_sums(self.people, terms, self.counts.size)

    def unit_weights(self, squared_terms: Floats) -> Floats:
        """Return, for each rating, the weight that gives its person's vector a length of at most 1."""
        lengths = np.sqrt(self.per_person(squared_terms))
        return (_ROUNDING / np.maximum(lengths, np.finfo(np.float64).tiny))[self.people]

    def add_by_item(self, contributions: Floats, totals: Floats) -> None:
        """Add contributions (each at most 1 in size) to the items' totals, exactly."""
        totals += column_sums(self.items, np.trunc(contributions / _GRID) * _GRID, totals.size)


def exact_total(contributions: Floats) -> float:
    """Return the exact sum of one contribution (at most 1 in size) a person."""
    return float(np.sum(np.trunc(contributions / _GRID) * _GRID))
