"""Sum the second moment of users' rows over chosen columns, exactly, off its diagonal.

A row x of length at most 1 is cut to whole steps of 2^-14 toward zero, and the products of its entries are
added as whole numbers. The matrix x x' without its diagonal has a Frobenius norm of at most |x|^2 <= 1.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats
from discreet.core.kernels import compiled, thread_count
from discreet.core.rows import residuals
from discreet.solvers.als import ridge_solutions
from discreet.statistics.blocks import Block
from discreet.statistics.counts import COUNT_PART
from discreet.statistics.domain import FARTHEST, LEAST, MOST, Number, Numbers, Places
from discreet.statistics.fixed_point import PRODUCT_BITS, ROW_STEPS, Steps
from discreet.statistics.statistic import Part, Statistic


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ResidualMoment(Statistic):
    """Sum x x' off the diagonal; x weighs what a person's own ridge leaves of their ratings.

    With residuals e_i and weights q_i = `pull` over the items `top` (ascending), x_i = w q_i e_i with
    w = 1 / sqrt(sum_i q_i^2 (e_i^2 + c^2)), so |x| <= 1. Whoever's ridge has no finite solution adds zero.
    """

    top: Annotated[npt.NDArray[np.int64], Places(("t",), below="n", rising=True)]
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    offsets: Annotated[Floats, Numbers(("n",), -MOST, MOST)]
    features: Annotated[Floats, Numbers(("n", "k"), -MOST, MOST)]
    ridge: Annotated[Floats, Numbers(("k",), LEAST, MOST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of the matrix over `top`."""
        size = self.top.size
        return (Part("moment", (size, size), bits=PRODUCT_BITS, symmetric=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        places = places_among(self.top, self.offsets.size)[block.items]
        item_weight = np.where(places >= 0, self.item_weights[block.items], 0.0)
        people = block.rows((block.values - self.middle) / self.half)
        solved = ridge_solutions(people, self.features, ridge=self.ridge, offsets=self.offsets)
        left = residuals(people, solved, self.features, np.zeros(people.n_rows), self.offsets)
        weights = block.unit_weights(item_weight**2 * (left**2 + COUNT_PART**2))
        add_rows(block.indptr, places, item_weight * left * weights, sums[0])


def places_among(top: npt.NDArray[np.int64], n_items: int) -> npt.NDArray[np.int32]:
    """Return each item's place among those that take part, or -1."""
    places = np.full(n_items, -1, dtype=np.int32)
    places[top] = np.arange(top.size)
    return places


def add_rows(
    indptr: npt.NDArray[np.int64], places: npt.NDArray[np.int32], entries: Floats, total: Steps
) -> None:
    """Add the products of rows at most 1 long to the upper triangle; one that is not finite is left out.

    Entries at a place of -1 take no part. Every thread but one has a sum of its own.
    """
    threads = thread_count()
    cuts = np.searchsorted(indptr, np.linspace(0, places.size, threads + 1))
    cuts[0], cuts[-1] = 0, indptr.size - 1
    totals = [total, *(np.zeros_like(total) for _ in range(threads - 1))]

    def job(one: tuple[tuple[int, int], Steps]) -> None:
        (start, stop), own = one
        add_moment(start, max(start, stop), indptr, places, entries, ROW_STEPS, own)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(job, zip(pairwise(cuts.tolist()), totals, strict=True)))
    for own in totals[1:]:
        total += own


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
