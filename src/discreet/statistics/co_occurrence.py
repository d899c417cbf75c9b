"""Sum item co-occurrences, weighted by how close in time they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats
from discreet.core.kernels import compiled
from discreet.core.rows import summed_over_rows
from discreet.statistics.blocks import Block
from discreet.statistics.domain import Length, Number, Numbers, Places
from discreet.statistics.fixed_point import PRODUCT_BITS, ROUNDING, Steps
from discreet.statistics.residual_moment import places_among
from discreet.statistics.statistic import Part, Statistic


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class CoOccurrence(Statistic):
    """Sum, over pairs of items in `top` (ascending), how much the same people chose both.

    A pair (i, j) of a person's choices counts by q_i q_j (a + (1 - a) n^s), with q the items' `weight`,
    a = `apart` and n = `near`, both from 0 to 1, and s the number of times at which the person chose anything
    from one to the other; where there are no times, s = 0. The symmetric matrix of all of a person's pairs,
    whose diagonal is empty, is divided by its Frobenius norm: its length is 1, however few pairs it has.
    """

    n_items: Annotated[int, Length("n")]
    top: Annotated[npt.NDArray[np.int64], Places(("t",), below="n", rising=True)]
    # Weights are divided by a person's largest; whoever has only zeros has no pair.
    weight: Annotated[Floats, Numbers(("t",), 0.0, 1e305)]
    near: Annotated[float, Number(0.0, 1.0)]
    apart: Annotated[float, Number(0.0, 1.0)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of the matrix over `top`."""
        shape = (self.top.size, self.top.size)
        return (Part("pairs", shape, bits=PRODUCT_BITS, symmetric=True, nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        places = places_among(self.top, self.n_items)[block.items]
        weights = np.append(self.weight, 0.0)[places]
        order, same = block.in_time()
        fade = np.where(same, 1.0, self.near)

        def part(start: int, stop: int) -> tuple[Steps]:
            told = np.zeros(sums[0].shape, dtype=np.int64)
            add_pairs(start, stop, block.indptr, order, fade, places, weights, self.apart, told)
            return (told,)

        told = summed_over_rows(part, block.indptr)[0]
        sums[0][:] += np.triu(told + told.T)


_STEPS = 2.0**PRODUCT_BITS
# Weights are at most 1 here, so what is lost where squares vanish stays below 1e-280, for rows of any length.
# A squared length above this is right in all its digits; whoever has less tells nothing.
_LEAST_LENGTH = 1e-200


@compiled
def _taking_part(
    places: Array, weights: Array, order: Array, fade: Array, columns: Array, own: Array, gaps: Array
) -> int:
    """Write, in the order of time, the choices that take part, and what fades from each to the next one.

    Steps in time at which something else was chosen count as well. Weights are divided by the largest, which
    changes nothing in the end. Return how many take part.
    """
    count, left, largest = 0, 1.0, 0.0
    for t in range(order.size):
        left *= fade[t]
        cell = order[t]
        if places[cell] >= 0:
            columns[count], own[count], gaps[count] = places[cell], weights[cell], left
            largest = max(largest, own[count])
            count, left = count + 1, 1.0
    for t in range(count):
        own[t] /= largest
    return count


@compiled
def _squared_length(own: Array, gaps: Array, count: int, apart: float) -> float:
    """Return the squared norm of a person's matrix, both triangles of it, before it is scaled.

    A pair counts by apart + (1 - apart) f; the sums over earlier choices of 1, f and f^2 times their squares
    give the square of that for all pairs in one pass. No term is negative, so nothing cancels.
    """
    total, plain, faded, twice = 0.0, 0.0, 0.0, 0.0
    rest = 1 - apart
    for t in range(count):
        faded *= gaps[t]
        twice *= gaps[t] * gaps[t]
        square = own[t] * own[t]
        total += square * (apart * apart * plain + 2 * apart * rest * faded + rest * rest * twice)
        plain += square
        faded += square
        twice += square
    return 2 * total


@compiled
def add_pairs(
    start: int,
    stop: int,
    indptr: Array,
    order: Array,
    fade: Array,
    places: Array,
    weights: Array,
    apart: float,
    totals: Array,
) -> None:
    """Add what the people of a range of rows tell, in whole steps: every pair once, in either triangle.

    `order` holds the places of each row's choices in the order of their times, `fade` what is left on the
    step to each. Whoever has no pair, or numbers that are not finite, tells nothing.
    """
    longest = 0
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    columns, own, gaps = np.empty(longest, np.int64), np.empty(longest), np.empty(longest)
    for row in range(start, stop):
        cells = slice(indptr[row], indptr[row + 1])
        ordered = order[cells] - indptr[row]
        count = _taking_part(places[cells], weights[cells], ordered, fade[cells], columns, own, gaps)
        length = _squared_length(own, gaps, count, apart)
        if not (length > _LEAST_LENGTH and np.isfinite(length)):
            continue
        scale = ROUNDING / np.sqrt(length)
        for later in range(1, count):
            line, here, faded = totals[columns[later]], scale * own[later], 1.0
            for earlier in range(later - 1, -1, -1):
                faded *= gaps[earlier + 1]
                told = here * own[earlier] * (apart + (1 - apart) * faded)
                line[columns[earlier]] += np.int64(told * _STEPS)
