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
    """Sum the co-occurrences of the items in `top` (ascending) over users.

    A pair (i, j) of a user's interactions has the weight q_i q_j (a + (1 - a) n^s), with q the items'
    `weight`, a = `apart` and n = `near`, both from 0 to 1. s is the number of distinct times of interactions
    from one to the other; without times, s = 0. The symmetric matrix of a user's pairs has an empty diagonal.
    It is divided by its Frobenius norm, so the norm of a contribution is 1, however few pairs it has.
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
        positions = places_among(self.top, self.n_items)[block.items]
        weights = np.append(self.weight, 0.0)[positions]
        order, same = block.in_time()
        decay = np.where(same, 1.0, self.near)

        def part(start: int, stop: int) -> tuple[Steps]:
            pairs = np.zeros(sums[0].shape, dtype=np.int64)
            add_pairs(start, stop, block.indptr, order, decay, positions, weights, self.apart, pairs)
            return (pairs,)

        pairs = summed_over_rows(part, block.indptr)[0]
        sums[0][:] += np.triu(pairs + pairs.T)


_UNITS = 2.0**PRODUCT_BITS
# Weights are at most 1 here, so underflow of squares loses less than 1e-280, for rows of any length. A
# squared norm above this bound is right in all its digits; users below it contribute nothing.
_LEAST_LENGTH = 1e-200


@compiled
def _taking_part(
    positions: Array, weights: Array, order: Array, decay: Array, columns: Array, own: Array, gaps: Array
) -> int:
    """Write a user's interactions with items in `top` in the order of time; return their number.

    `gaps` gets the decay from each to the next; times of other interactions count as well. Weights are
    divided by the largest, which does not change the normalized matrix.
    """
    count, left, largest = 0, 1.0, 0.0
    for t in range(order.size):
        left *= decay[t]
        entry = order[t]
        if positions[entry] >= 0:
            columns[count], own[count], gaps[count] = positions[entry], weights[entry], left
            largest = max(largest, own[count])
            count, left = count + 1, 1.0
    for t in range(count):
        own[t] /= largest
    return count


@compiled
def _squared_length(own: Array, gaps: Array, count: int, apart: float) -> float:
    """Return the squared Frobenius norm of a user's matrix, both triangles, before it is scaled.

    A pair has the weight apart + (1 - apart) f. Sums over earlier interactions of 1, f and f^2 times the
    squared item weights give the squares of all pairs in one pass. No term is negative, so nothing cancels.
    """
    total, plain, decayed, twice = 0.0, 0.0, 0.0, 0.0
    rest = 1 - apart
    for t in range(count):
        decayed *= gaps[t]
        twice *= gaps[t] * gaps[t]
        square = own[t] * own[t]
        total += square * (apart * apart * plain + 2 * apart * rest * decayed + rest * rest * twice)
        plain += square
        decayed += square
        twice += square
    return 2 * total


@compiled
def add_pairs(
    start: int,
    stop: int,
    indptr: Array,
    order: Array,
    decay: Array,
    positions: Array,
    weights: Array,
    apart: float,
    totals: Array,
) -> None:
    """Add the contributions of a range of rows in fixed point: every pair once, in either triangle.

    `order` holds the positions of each row's interactions in the order of time, `decay` the factor from the
    previous one to each. A user without a pair, or with numbers that are not finite, contributes nothing.
    """
    longest = 0
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    columns, own, gaps = np.empty(longest, np.int64), np.empty(longest), np.empty(longest)
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        ordered = order[entries] - indptr[row]
        count = _taking_part(
            positions[entries], weights[entries], ordered, decay[entries], columns, own, gaps
        )
        length = _squared_length(own, gaps, count, apart)
        if not (length > _LEAST_LENGTH and np.isfinite(length)):
            continue
        scale = ROUNDING / np.sqrt(length)
        for later in range(1, count):
            line, here, decayed = totals[columns[later]], scale * own[later], 1.0
            for earlier in range(later - 1, -1, -1):
                decayed *= gaps[earlier + 1]
                contribution = here * own[earlier] * (apart + (1 - apart) * decayed)
                line[columns[earlier]] += np.int64(contribution * _UNITS)
