"""Sum the normal equations of item vectors: leave-one-out residuals times the user's own factors.

A user's numbers are computed by these loops alone, in an order that depends on that user's row only.
Features are laid out factor by factor, so that the innermost loops run along the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats, require_fit, summed_over_rows
from discreet.core.kernels import AHEAD, compiled, dot, fetch_row, inner
from discreet.statistics.block_algebra import BLOCK, invert, line_products, multiply, room_to_invert, width_of
from discreet.statistics.domain import FARTHEST, LEAST, MOST, Number, Numbers
from discreet.statistics.norm_clipping import clip_factors
from discreet.statistics.statistic import ROUNDING, VECTOR_STEPS, Block, Part, Statistic, Steps


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemVectors(Statistic):
    """Sum of residuals times users' factors by item, the items' counts, and the factors' second moment.

    A user's own ratings are explained by a ridge over `features` beyond `offsets`; `scale` turns the solution
    into factors f of about unit size, the first of them 1, no longer than `longest` >= 1. With r_i and f_i
    computed without rating i, weights q_i = `item_weights` and c = `count_part` a user contributes
    (w q_i r_i f_i, w q_i c) for each item i, w = 1 / sqrt(sum_i q_i^2 (r_i^2 |f_i|^2 + c^2)), of length 1;
    and, apart from that, the matrix
    sum_i f_i f_i' / (longest sqrt(n S)) with S = sum_i |f_i|^2, whose norm is at most 1: the norm of the sum
    is at most S, and S = sqrt(S) sqrt(S) <= sqrt(S) sqrt(n) longest.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    features: Annotated[Floats, Numbers(("n", "k"), -MOST, MOST)]
    offsets: Annotated[Floats, Numbers(("n",), -MOST, MOST)]
    ridge: Annotated[Floats, Numbers(("k",), LEAST, MOST)]
    scale: Annotated[Floats, Numbers(("k",), LEAST, MOST)]
    # Factors hold the constant 1, so nothing shorter than that is left of them.
    longest: Annotated[float, Number(1.0, MOST)]
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the vector of all sums and then all counts, and the moment."""
        n_items, size = self.features.shape
        return (Part("vectors", (n_items * (size + 1),)), Part("moment", (size, size), symmetric=True))

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.rows((block.values - self.middle) / self.half)
        require_fit(people, self.features.shape[0])
        asked = VectorsAsked(*(getattr(self, name) for name in VectorsAsked._fields))

        def part(start: int, stop: int) -> tuple[Steps, Steps]:
            vectors, moment = (np.zeros(one.shape, dtype=np.int64) for one in sums)
            totals, counts = self.split(vectors)
            longest = int(np.diff(people.indptr[start : stop + 1]).max(initial=0))
            room, out = Room.of(longest, self.features.shape[1]), Totals(totals, counts, moment)
            add_people(start, stop, people.indptr, people.columns, people.values, asked, room, out)
            return vectors, moment

        for total, added in zip(sums, summed_over_rows(part, people.indptr), strict=True):
            total += added

    def split(self, total: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the items' sums and counts, as views."""
        return total[: self.features.size].reshape(self.features.shape), total[self.features.size :]


class VectorsAsked(NamedTuple):
    """What `ItemVectors` states, for compiled loops."""

    offsets: Array
    features: Array
    ridge: Array
    scale: Array
    longest: float
    item_weights: Array
    count_part: float


class Totals(NamedTuple):
    """What is added up: a vector and a count for each item, and the factors' second moment."""

    sums: Array
    counts: Array
    moment: Array


class Room(NamedTuple):
    """The arrays that `add_people` works in, for rows of at most a number of ratings.

    Lines of zeros fill up the features to a multiple of four. Arrays are made here because code that makes
    them takes longer to compile than a loop.
    """

    #: By block of ratings: features, and the user's factors without each rating.
    lines: Array
    own: Array
    #: By pair of features.
    products: Array
    inverse: Array
    #: Of `invert`.
    four: Array
    weights: Array
    rows: Array
    parts: Array
    #: By rating.
    residuals: Array
    lengths: Array
    #: By feature.
    solution: Array
    total: Array
    #: By place in a block.
    leverage: Array
    fitted: Array
    factors: Array
    units: Array

    @classmethod
    def of(cls, longest: int, size: int) -> Self:
        """Return room for rows of at most `longest` ratings."""
        blocks, wide = -(-longest // BLOCK), -(-size // 4) * 4
        by_block = (np.zeros((blocks, wide * BLOCK)), np.zeros((blocks, wide * BLOCK)))
        by_pair = (np.empty((wide, wide)), np.empty((wide, wide)), *room_to_invert(wide))
        by_rating = (np.empty(blocks * BLOCK), np.empty(blocks * BLOCK))
        by_feature = (np.empty(wide), np.empty(wide))
        by_place = (np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK))
        return cls(*by_block, *by_pair, *by_rating, *by_feature, *by_place, np.empty(wide * BLOCK, np.int32))


# Leverage is capped: a rating with a larger one almost alone determines its own prediction.
_MOST_LEVERAGE = 0.9


@inner
def _cut(value: float) -> int:
    """Return a number in fixed point, truncated toward zero.

    It is at most 2^24 units, so 32 bits hold them; processors convert to these faster.
    """
    return np.int64(np.int32(value * VECTOR_STEPS))  # type: ignore[return-value]


@inner
def _apply(
    one: Array, width: int, inverse: Array, solution: Array, out: Array, leverage: Array, fitted: Array
) -> None:
    """Write the inverse times a block, the leverage of its ratings, and what the solution predicts."""
    for j in range(BLOCK):
        leverage[j] = 0.0
        fitted[j] = 0.0
    multiply(inverse, one, width, out)
    for a in range(0, inverse.shape[0], 4):
        four = out[a * BLOCK : (a + 4) * BLOCK]
        given = one[a * BLOCK : (a + 4) * BLOCK]
        s0, s1, s2, s3 = solution[a], solution[a + 1], solution[a + 2], solution[a + 3]
        for j in range(width):
            x0, x1, x2, x3 = given[j], given[j + BLOCK], given[j + 2 * BLOCK], given[j + 3 * BLOCK]
            leverage[j] += (
                x0 * four[j] + x1 * four[j + BLOCK] + x2 * four[j + 2 * BLOCK] + x3 * four[j + 3 * BLOCK]
            )
            fitted[j] += s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3


@inner
def _own_factors(asked: VectorsAsked, room: Room, count: int) -> None:
    """Turn targets into leave-one-out residuals; set `own` to the factors without each rating in turn."""
    lines, own, inverse, residuals = room.lines, room.own, room.inverse, room.residuals
    lengths, solution, total, scale = room.lengths, room.solution, room.total, asked.scale
    leverage, fitted = room.leverage, room.fitted
    size, blocks = inverse.shape[0], (count + BLOCK - 1) // BLOCK
    for a in range(size):
        total[a] = 0.0
    for block in range(blocks):
        one, width = lines[block], width_of(block, count)
        target = residuals[block * BLOCK : block * BLOCK + width]
        for a in range(size):
            total[a] += dot(one[a * BLOCK : a * BLOCK + width], target)
    for a in range(size):
        solution[a] = dot(inverse[a], total)
    for block in range(blocks):
        one, width = own[block], width_of(block, count)
        target = residuals[block * BLOCK : (block + 1) * BLOCK]
        squares = lengths[block * BLOCK : (block + 1) * BLOCK]
        _apply(lines[block], width, inverse, solution, one, leverage, fitted)
        for j in range(width):
            target[j] = (target[j] - fitted[j]) / (1 - min(leverage[j], _MOST_LEVERAGE))
            squares[j] = 0.0
        for a in range(1, scale.size):
            line, factor, middle = one[a * BLOCK : (a + 1) * BLOCK], scale[a], solution[a]
            for j in range(width):
                line[j] = factor * (middle - line[j] * target[j])
                squares[j] += line[j] * line[j]
        clip_factors(one, squares, width, scale.size, asked.longest)


@inner
def _clear(own: Array, count: int) -> None:
    """Set what only fills up the last block to zero."""
    block = (count - 1) // BLOCK
    for a in range(own.shape[1] // BLOCK):
        for j in range(count - block * BLOCK, width_of(block, count)):
            own[block, a * BLOCK + j] = 0.0


@inner
def _add_contribution(columns: Array, asked: VectorsAsked, room: Room, out: Totals) -> None:
    """Add a vector (sums and counts) and a matrix (moment), each of norm at most 1; nothing if not finite."""
    own, residuals, lengths, products = room.own, room.residuals, room.lengths, room.products
    item_weights, count_part, factors, units = asked.item_weights, asked.count_part, room.factors, room.units
    sums, counts, moment = out.sums, out.counts, out.moment
    size = sums.shape[1]
    squares, total = 0.0, 0.0
    for j in range(columns.size):
        total += lengths[j]
        squares += item_weights[columns[j]] ** 2 * (residuals[j] ** 2 * lengths[j] + count_part**2)
    weight = ROUNDING / np.sqrt(squares)
    share = ROUNDING / (np.sqrt(total * columns.size) * asked.longest)
    if not (np.isfinite(squares) and np.isfinite(total) and np.isfinite(weight) and np.isfinite(share)):
        return
    for first in range(0, columns.size, BLOCK):
        some, one = columns[first : first + BLOCK], own[first // BLOCK]
        for j in range(some.size):
            item_weight = weight * item_weights[some[j]]
            counts[some[j]] += _cut(item_weight * count_part)
            factors[j] = item_weight * residuals[first + j]
        for a in range(size):
            line, cut = one[a * BLOCK : (a + 1) * BLOCK], units[a * BLOCK : (a + 1) * BLOCK]
            for j in range(some.size):
                cut[j] = np.int32(factors[j] * line[j] * VECTOR_STEPS)
        for j in range(some.size):
            if first + j + AHEAD < columns.size:
                fetch_row(sums, columns[first + j + AHEAD])
            total_of_item = sums[some[j]]
            for a in range(size):
                total_of_item[a] += units[a * BLOCK + j]
    for a in range(size):
        for b in range(a + 1):
            moment[b, a] += _cut(share * products[a, b])


@compiled
def add_people(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    asked: VectorsAsked,
    room: Room,
    out: Totals,
) -> None:
    """Add the contributions of a range of rows; a user without ratings or finite numbers adds nothing."""
    features, offsets, ridge, size = asked.features, asked.offsets, asked.ridge, asked.features.shape[1]
    lines, own, inverse, residuals = room.lines, room.own, room.inverse, room.residuals
    for row in range(start, stop):
        items = columns[indptr[row] : indptr[row + 1]]
        if items.size == 0:
            continue
        for j in range(items.size):
            block, place, item = j // BLOCK, j % BLOCK, np.uint32(items[j])
            if indptr[row] + j + AHEAD < columns.size:
                fetch_row(features, columns[indptr[row] + j + AHEAD])
            residuals[j] = values[indptr[row] + j] - offsets[item]
            for a in range(size):
                lines[block, a * BLOCK + place] = features[item, a]
        _clear(lines, items.size)
        for j in range(items.size, (items.size + 7) // 8 * 8):
            residuals[j] = 0.0
        line_products(lines, items.size, inverse)
        for a in range(inverse.shape[0]):
            inverse[a, a] += ridge[a] if a < size else 1.0
        if not invert(inverse, room.four, room.weights, room.rows, room.parts):
            continue
        _own_factors(asked, room, items.size)
        _clear(own, items.size)
        line_products(own, items.size, room.products)
        _add_contribution(items, asked, room, out)
