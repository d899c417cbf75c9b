"""Define a statistic: it maps each user to a bounded vector, and its sum over users is exact.

How to add one. Write a frozen dataclass that derives from `Statistic`; its fields are public or released
numbers only, each annotated with its domain (`domain.py`), which is checked whenever one is made. `parts`
states what is added up: a name, a shape, the steps in 1 as a power of two, and the norm that one user's part
never exceeds, which is the sensitivity that the noise is scaled to. `_add` reads one block of whole users
and adds their whole steps to the given integer arrays, one for each part, in place; a user's steps may
depend on that user's row and on the fields, never on other rows, the block or its place. A user whose
numbers are not finite, or whose equations cannot be solved, contributes zero and never an error: whether a
sum comes out may not depend on a row. Write the formula of the bound, for the whole domain, next to the code.
Then give it an example in tests/contracts/statistic_examples.py: the contract suite finds the class by
itself, and searches its domain for a user who adds more than it declares. Models release
`source.total(statistic)` and add noise; they never see a row.

A contribution is truncated toward zero to whole fixed-point units, so its norm cannot grow. Units are added
as 64-bit integers, which neither round nor depend on the order. No number of one user exceeds the bound its
statistic declares, so a sum over n users stays below n times that many units; `MOST_PEOPLE` keeps it below
2^63 (proofs/exact_sums.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, OtherStatistic, Rows, TooManyUsers, column_sums, run
from discreet.core.exports import Later
from discreet.data import LEAST_WEIGHT, MOST_WEIGHT, Interactions
from discreet.statistics.domain import Stated

if TYPE_CHECKING:
    from discreet.privacy.mechanisms.additive import FixedPoint
    from discreet.statistics import row_kernels as kernels
else:
    kernels = Later("discreet.statistics.row_kernels")


Steps = npt.NDArray[np.int64]

#: Fraction bits of a contributed vector: 2^24 units are 1.
VECTOR_BITS = 24
#: Fraction bits of a row whose products are contributed; an entry fits an int16, and keeps two digits even in
#: a row of thousands of ratings.
ROW_BITS = 14
#: Fraction bits of products of two entries, and of products with a vector.
PRODUCT_BITS = 2 * ROW_BITS
#: Fraction bits of entries whose products are added by matrix multiplication in floats, 2^27 of them exactly.
ROOT_BITS = 13
#: Factor that makes up for rounding in a norm computed from up to 2^31 terms, with a margin.
ROUNDING = 1 - 1e-6
#: The most units that one user may add to any entry of a sum.
MOST_STEPS = 1.5 * 2.0**PRODUCT_BITS
#: Users in one sum: 2^34 of them with `MOST_STEPS` each stay below 2^63.
MOST_PEOPLE = 1 << 34

VECTOR_STEPS = 2.0**VECTOR_BITS
ROW_STEPS = 2.0**ROW_BITS
ROOT_STEPS = 2.0**ROOT_BITS


def to_fixed_point(numbers: Floats, bits: int = VECTOR_BITS) -> Floats:
    """Return numbers in fixed-point units, truncated toward zero; those that are not finite become 0."""
    units: Floats = np.trunc(np.ldexp(numbers, bits))
    units[~np.isfinite(units)] = 0.0
    return units


def as_fixed_point(sums: Floats) -> Steps:
    """Return sums of fixed-point units, exact in floats, as integers."""
    return sums.astype(np.int64)


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
    start, n_users = 0, data.indptr.size - 1
    while start < n_users:
        stop = int(np.searchsorted(data.indptr, data.indptr[start] + _RATINGS_PER_BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), n_users, start + (most_people or n_users))
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
    def weights(self) -> Floats:
        """Return what each interaction weighs: 1 if all of the user's weigh the same.

        The mean square of a user's weights is 1. They depend on the user's own row alone.
        """
        if not self.data.facts.weights:
            return np.ones(self.items.size)
        own = np.clip(self.values, LEAST_WEIGHT, MOST_WEIGHT)
        usual = np.sqrt(self.per_person(own**2) / np.maximum(self.counts, 1))
        relative: Floats = np.minimum(own / usual[self.people], MOST_WEIGHT)
        return relative

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


Norm = Literal["l1", "l2"]


class Part(NamedTuple):
    """Declare one array of a statistic, and the bound on one user's (or one rating's) contribution to it.

    With `symmetric` only the upper triangle of a square matrix is added; its entries off the diagonal count
    twice in the norm, as they do in the whole matrix. With `nonnegative` no user adds less than 0 anywhere.
    `most` bounds the number of entries that one user changes, all of them equally; None bounds neither.
    """

    name: str
    shape: tuple[int, ...]
    bits: int = VECTOR_BITS
    norm: Norm = "l2"
    bound: float = 1.0
    symmetric: bool = False
    of: Literal["person", "rating"] = "person"
    nonnegative: bool = False
    most: int | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Exact sums, in fixed point, of the contributions of `people` users."""

    parts: tuple[Part, ...]
    arrays: tuple[Steps, ...]
    people: int = 0

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over both groups of users; no user may be in both."""
        if self.parts != other.parts:
            raise OtherStatistic()
        added = tuple(one + two for one, two in zip(self.arrays, other.arrays, strict=True))
        return Sums(self.parts, added, _checked(self.people + other.people))

    def steps(self, name: str | None = None) -> FixedPoint:
        """Return a part (the only one, if not named) in fixed point, so that noise is added exactly."""
        # A model that is loaded reads blocks, and draws no noise.
        from discreet.privacy.mechanisms.additive import FixedPoint

        number = 0 if name is None else [part.name for part in self.parts].index(name)
        return FixedPoint(self.arrays[number], self.parts[number].bits)

    def floats(self, name: str | None = None) -> Floats:
        """Return a part as floats: exact up to 2^53 units, the nearest floats beyond.

        A symmetric part is returned as the whole matrix.
        """
        counts, bits = self.steps(name)
        number = 0 if name is None else [part.name for part in self.parts].index(name)
        numbers: Floats = np.ldexp(counts.astype(np.float64), -bits)
        return numbers + np.triu(numbers, 1).T if self.parts[number].symmetric else numbers


class ExactNumbers(NamedTuple):
    """The exact numbers of a query that adds nothing up, such as one per rating, for a session to read."""

    values: Floats

    def steps(self, name: str | None = None) -> Floats:
        """Return the numbers before noise."""
        return self.values


@dataclass(frozen=True, eq=False)
class Statistic(Stated, ABC):
    """Users' contributions, computed block by block. The module's docstring shows how to write one."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Return the arrays that are summed."""

    @abstractmethod
    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        """Add the contributions of a block's users to the arrays, one for each part."""

    def _finish(self, sums: tuple[Steps, ...]) -> None:
        """Turn what was added into the sums, in place: a step that is linear is done once, not by block."""
        return

    @final
    def nothing(self) -> Sums:
        """Return sums of zero, over no users."""
        return Sums(self.parts, tuple(np.zeros(part.shape, dtype=np.int64) for part in self.parts))

    @final
    def over(self, data: Interactions) -> Sums:
        """Return the sums over all users of the data."""
        return self.over_blocks(blocks(data))

    @final
    def over_blocks(self, people: Iterable[Block]) -> Sums:
        """Return the sums over the users of all blocks; no user may be in two of them."""
        sums, count = self.nothing(), 0
        for block in people:
            count = _checked(count + block.counts.size)
            self._add(block, sums.arrays)
        self._finish(sums.arrays)
        return Sums(sums.parts, sums.arrays, count)


def _checked(people: int) -> int:
    if people > MOST_PEOPLE:
        raise TooManyUsers(most=MOST_PEOPLE)
    return people
