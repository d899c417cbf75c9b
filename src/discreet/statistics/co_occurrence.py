"""Sum item co-occurrences, weighted by their order and by how close in time they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import Array, Floats, add_over_rows, run
from discreet.core.kernels import compiled, fetch_entry, inner, longest_row
from discreet.statistics.domain import MOST, Length, Number, Numbers, Places, Whole
from discreet.statistics.pair_tiles import PairEntries, add_in_tiles
from discreet.statistics.residual_moment import places_among
from discreet.statistics.statistic import PRODUCT_BITS, ROUNDING, VECTOR_STEPS, Block, Part, Statistic, Steps

# The weight of the direction back is a whole number of this many parts of the weight forward. So both are
# whole multiples of one truncated number, and one sum represents them.
BACK_PARTS = 16


class OrderedRows(NamedTuple):
    """Users' interactions in the order of time, and the places of their items in `top`, or -1.

    `order` has the positions of each row's interactions in the order of time, and `same` whether each has the
    time of the previous one. `own` is what each interaction weighs.
    """

    indptr: Array
    order: Array
    same: Array
    positions: Array
    own: Array


class PairWeights(NamedTuple):
    """What a pair weighs: by its items, by the steps between them, at any distance, and backward."""

    weight: Array
    near: float
    apart: float
    back: float


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class CoOccurrence(Statistic):
    """Sum of the directed co-occurrences of the items in `top` (ascending) over users.

    A pair of a user's interactions, first i and later j, has the weight v = q_i q_j (a + (1 - a) n^s), with q
    the items' `weight` times that of the interaction, a = `apart` and n = `near`, both from 0 to 1. s is the
    number of distinct times of interactions from one to the other. The entry (i, j) gets v and the entry (j,
    i) gets v times b = `back` sixteenths. A pair at one time has no direction: both entries get v (1 + b) /
    2, and so does every pair without times. A user's matrix has an empty diagonal and is divided by its
    Frobenius norm, so the norm of a contribution is 1, however few pairs it has.
    """

    n_items: Annotated[int, Length("n")]
    top: Annotated[npt.NDArray[np.int64], Places(("t",), below="n", rising=True)]
    # Weights are divided by a user's largest; a user with only zeros has no pair.
    weight: Annotated[Floats, Numbers(("t",), 0.0, 1e305)]
    near: Annotated[float, Number(0.0, 1.0)]
    apart: Annotated[float, Number(0.0, 1.0)]
    back: Annotated[int, Whole(0, BACK_PARTS)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the matrix over `top`."""
        return (Part("pairs", (self.top.size, self.top.size), bits=PRODUCT_BITS, nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        rows, weights = self.rows(block), self.weights()
        before = np.append(np.int32(0), np.cumsum(rows.positions >= 0, dtype=np.int32))
        starts = before[block.indptr].astype(np.int64)
        entries, ordered = PairEntries.empty(int(starts[-1])), block.data.times is not None

        def part(start: int, stop: int, _: Floats) -> None:
            lay_out(start, stop, rows, starts, weights, entries)

        run(part, block.indptr, entries.scaled)
        longest = int(block.counts.max(initial=0))
        if ordered:
            add_in_tiles(entries, longest, self.near, self.apart, ordered, sums[0])
            return
        pairs = np.zeros_like(sums[0])
        add_in_tiles(entries, longest, self.near, self.apart, ordered, pairs)
        sums[0][:] += pairs
        sums[0][:] += pairs.T

    def rows(self, block: Block) -> OrderedRows:
        """Return the rows of a block, with the places of their items in `top`."""
        order, same = block.in_time()
        positions = places_among(self.top, self.n_items)[block.items]
        return OrderedRows(block.indptr, order, same, positions, block.weights)

    def weights(self) -> PairWeights:
        """Return what pairs weigh, for compiled loops."""
        weight = np.ascontiguousarray(self.weight)
        return PairWeights(weight, self.near, self.apart, self.back / BACK_PARTS)

    def _finish(self, sums: tuple[Steps, ...]) -> None:
        """Weight both directions: until here a row is for later items and a column for earlier ones."""
        weigh_directions(sums[0], BACK_PARTS, self.back)


_UNITS = 2.0**PRODUCT_BITS / BACK_PARTS
_TILE = 64
# Weights are at most 1 here, so underflow of squares loses less than 1e-280, for rows of any length. A
# squared norm above this bound is right in all its digits; users below it contribute nothing.
_LEAST_LENGTH = 1e-200


@inner
def taking_part(
    rows: OrderedRows, row: int, asked: PairWeights, columns: Array, own: Array, gaps: Array, moved: Array
) -> int:
    """Write a user's interactions with items in `top` in the order of time; return their number.

    `gaps` gets the decay from each to the next, and `moved` whether time has passed; times of other
    interactions count as well. Weights are divided by the largest, which does not change the normalized
    matrix.
    """
    positions, weights, near = rows.positions, asked.weight, asked.near
    count, left, passed, largest = 0, 1.0, False, 0.0
    for t in range(rows.indptr[row], rows.indptr[row + 1]):
        if not rows.same[t]:
            left *= near
            passed = True
        entry = rows.order[t]
        if positions[entry] >= 0:
            columns[count], own[count] = positions[entry], weights[positions[entry]] * rows.own[entry]
            gaps[count], moved[count] = left, passed
            largest = own[count] if own[count] > largest else largest
            count, left, passed = count + 1, 1.0, False
    for t in range(count):
        own[t] /= largest
    return count


@compiled
def squared_length(own: Array, gaps: Array, moved: Array, count: int, asked: PairWeights) -> float:
    """Return the squared Frobenius norm of a user's matrix before it is scaled.

    A pair has the weight apart + (1 - apart) f. Sums over earlier interactions of 1, f and f^2 times the
    squared item weights give the squares of all pairs in one pass; `level` is the sum over interactions at
    the same time, whose weight is 1. No term is negative, so nothing cancels.
    """
    directed, tied, plain, decayed, twice, level = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    apart, back, rest = asked.apart, asked.back, 1 - asked.apart
    for t in range(count):
        if moved[t]:
            plain += level
            decayed = (decayed + level) * gaps[t]
            twice = (twice + level) * gaps[t] * gaps[t]
            level = 0.0
        square = own[t] * own[t]
        directed += square * (apart * apart * plain + 2 * apart * rest * decayed + rest * rest * twice)
        tied += square * level
        level += square
    return (1 + back * back) * directed + (1 + back) * (1 + back) / 2 * tied


@compiled
def weigh_directions(pairs: Array, forward: int, back: int) -> None:
    """Replace a matrix P by `forward` P' + `back` P, in place and tile by tile."""
    size = pairs.shape[0]
    for top in range(0, size, _TILE):
        for left in range(0, top + 1, _TILE):
            for i in range(top, min(top + _TILE, size)):
                for j in range(left, min(left + _TILE, i + 1)):
                    lower, upper = pairs[i, j], pairs[j, i]
                    pairs[i, j] = forward * upper + back * lower
                    pairs[j, i] = forward * lower + back * upper


@compiled
def lay_out(
    start: int, stop: int, rows: OrderedRows, starts: Array, asked: PairWeights, entries: PairEntries
) -> None:
    """Write the interactions of a range of rows as `PairEntries`; row r begins at `starts[r]`.

    A user without a pair, or with numbers that are not finite, contributes nothing.
    """
    columns, own, scaled, steps, first, level = entries
    longest = longest_row(start, stop, rows.indptr)
    gaps, moved = np.empty(longest), np.empty(longest, np.bool_)
    for row in range(start, stop):
        begin, end = starts[row], starts[row + 1]
        weighed = own[begin:end]
        count = taking_part(rows, row, asked, columns[begin:end], weighed, gaps, moved)
        length = squared_length(weighed, gaps, moved, count, asked)
        usable = length > _LEAST_LENGTH and np.isfinite(length)
        scale = ROUNDING / np.sqrt(length) * _UNITS if usable else 0.0
        entry, step, begun = begin, 0, begin
        for t in range(rows.indptr[row], rows.indptr[row + 1]):
            step += not rows.same[t]
            if rows.positions[rows.order[t]] >= 0:
                if entry > begin and steps[entry - 1] != step:
                    begun = entry
                steps[entry], first[entry], level[entry] = step, begin, begun
                scaled[entry] = scale * own[entry]
                entry += 1


#: A user contributes r, r^2 / 2 and 1/2; this bounds the norm of that vector. The root of 3/2 as a double is
#: a little too small, and a user with r = 1 is exactly there.
EVIDENCE_LENGTH = math.nextafter(math.sqrt(1.5), 2.0)
# Pairs of at most so many interactions, the latest, are read: a bound on the time that a user takes.
_LATEST = 32
# Two interactions have one pair, whose correlation is -1 or 1 whatever they are.
_FEWEST = 3


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class OrderEvidence(Statistic):
    """Sum of users' correlations r, half of their squares, and half the number of users who have one.

    `pairs` is the released matrix that `asked` sums, noise included. A user takes out their own contribution
    to it. r is the correlation, over the ordered pairs of their latest interactions, of a pair's weight by
    order and closeness in time with its entry of the matrix, multiplied by the `scale` of both items. If a
    user's order is random, what is left of the matrix does not depend on it, so r is 0 on average. It is
    clipped to -1 to 1: |(r, r^2 / 2, 1/2)| <= sqrt(1 + 1/4 + 1/4), whatever the matrix is. A user with fewer
    than three interactions in `asked.top`, or all at one time, contributes nothing.
    """

    asked: CoOccurrence
    pairs: Annotated[Floats, Numbers(("t", "t"), -MOST, MOST)]
    scale: Annotated[Floats, Numbers(("t",), 0.0, 1.0)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the three sums."""
        return (Part("evidence", (3,), bound=EVIDENCE_LENGTH),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        rows, weights, pairs = self.asked.rows(block), self.asked.weights(), np.ascontiguousarray(self.pairs)

        def part(start: int, stop: int, total: Steps) -> None:
            add_evidence(start, stop, rows, weights, pairs, self.scale, total)

        add_over_rows(part, block.indptr, *sums)


# What is left of an entry that is a user's own contribution: rounding, and truncation to fixed point.
_OWN_ROUNDING, _OWN_TRUNCATION = 2e-6, 2.0**-22
# A smaller part of a sum of squares is rounding, not variance.
_LEAST_VARIANCE = 1e-9


@inner
def _without(entry: float, own: float, scale: float) -> float:
    """Return an entry of the matrix without a user's own part, scaled."""
    left = entry - own
    return left * scale if abs(left) > _OWN_ROUNDING * own + _OWN_TRUNCATION else 0.0


@inner
def _correlation(
    columns: Array,
    own: Array,
    gaps: Array,
    moved: Array,
    count: int,
    unit: float,
    asked: PairWeights,
    pairs: Array,
    scale: Array,
) -> float:
    """Return the correlation of a user's weights with the entries of all others; NaN where there is none.

    `unit` times the product of two items' weights and the weight of their order is what the user added.
    """
    apart, back = asked.apart, asked.back
    number, first, second, product, squares, others = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    for a in range(max(0, count - _LATEST), count):
        for b in range(a + 2, count):
            fetch_entry(pairs, columns[a + 1], columns[b])
            fetch_entry(pairs, columns[b], columns[a + 1])
        decay, passed = 1.0, False
        for b in range(a + 1, count):
            decay *= gaps[b]
            passed |= moved[b]
            weight = apart + (1 - apart) * decay
            ahead = weight if passed else weight * (1 + back) / 2
            behind = weight * back if passed else ahead
            i, j = columns[a], columns[b]
            mine, scaled = unit * own[a] * own[b], scale[i] * scale[j]
            one = _without(pairs[i, j], mine * ahead, scaled)
            other = _without(pairs[j, i], mine * behind, scaled)
            number += 2
            first += ahead + behind
            second += one + other
            product += ahead * one + behind * other
            squares += ahead * ahead + behind * behind
            others += one * one + other * other
    spread, varied = squares - first * first / number, others - second * second / number
    if not (spread > _LEAST_VARIANCE * squares and varied > _LEAST_VARIANCE * others):
        return np.nan
    return (product - first * second / number) / np.sqrt(spread * varied)  # type: ignore[no-any-return]


@compiled
def add_evidence(
    start: int,
    stop: int,
    rows: OrderedRows,
    asked: PairWeights,
    pairs: Array,
    scale: Array,
    totals: Array,
) -> None:
    """Add the contributions of a range of rows in fixed point, truncated toward zero.

    A user without a correlation, or with one that is not finite, contributes nothing.
    """
    longest = longest_row(start, stop, rows.indptr)
    columns, own, gaps = np.empty(longest, np.uint32), np.empty(longest), np.empty(longest)
    moved = np.empty(longest, np.bool_)
    for row in range(start, stop):
        count = taking_part(rows, row, asked, columns, own, gaps, moved)
        if count < _FEWEST:
            continue
        added = ROUNDING / np.sqrt(squared_length(own, gaps, moved, count, asked))
        found = _correlation(columns, own, gaps, moved, count, added, asked, pairs, scale)
        if not np.isfinite(found):
            continue
        found = -1.0 if found < -1.0 else 1.0 if found > 1.0 else found
        totals[0] += np.int64(found * VECTOR_STEPS)
        totals[1] += np.int64(found * found / 2 * VECTOR_STEPS)
        totals[2] += np.int64(VECTOR_STEPS / 2)
