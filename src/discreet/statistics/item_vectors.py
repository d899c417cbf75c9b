"""Sum the normal equations of item vectors: leave-one-out residuals times the user's own factors.

A user's numbers are computed by these loops alone, in an order that depends on that user's row only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import Array, Floats, add_over_rows, require_fit
from discreet.core.kernels import AHEAD, HIGH, compiled, dot, fetch_row, in_lines, inner
from discreet.solvers.block_algebra import invert, multiply, room_to_invert, row_products, width_of
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

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the vector of all sums and then all counts, and the moment."""
        n_items, size = self.features.shape
        return (Part("vectors", (n_items * (size + 1),)), Part("moment", (size, size), symmetric=True))

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.rows((block.values - self.middle) / self.half)
        require_fit(people, self.features.shape[0])
        asked = VectorsAsked.of(self)

        def part(start: int, stop: int, vectors: Steps, moment: Steps) -> None:
            totals, counts = self.split(vectors)
            longest = int(np.diff(people.indptr[start : stop + 1]).max(initial=0))
            room, out = Room.of(longest, self.features.shape[1]), Totals(totals, counts, moment)
            add_people(start, stop, people.indptr, people.columns, people.values, asked, room, out)

        add_over_rows(part, people.indptr, *sums)

    def split(self, total: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the items' sums and counts, as views."""
        return total[: self.features.size].reshape(self.features.shape), total[self.features.size :]


class VectorsAsked(NamedTuple):
    """What `ItemVectors` states, for compiled loops, with columns that fill up the features.

    Their features are zero, their ridge is 1. Their scale is zero, and so is that of the constant.
    """

    offsets: Array
    features: Array
    ridge: Array
    scale: Array
    longest: float
    item_weights: Array
    count_part: float

    @classmethod
    def of(cls, stated: ItemVectors) -> Self:
        """Return what a statistic states."""
        n_items, size = stated.features.shape
        wide = width_of(size)
        features, ridge, scale = in_lines(n_items, wide), np.ones(wide), np.zeros(wide)
        features[:, :size], ridge[:size], scale[1:size] = stated.features, stated.ridge, stated.scale[1:]
        rest = (stated.longest, stated.item_weights, stated.count_part)
        return cls(stated.offsets, features, ridge, scale, *rest)


class Totals(NamedTuple):
    """What is added up: a vector and a count for each item, and the factors' second moment."""

    sums: Array
    counts: Array
    moment: Array


class Room(NamedTuple):
    """The arrays that `add_people` works in, for rows of at most a number of ratings.

    Columns of zeros fill up the features. Arrays are made here because code that makes them takes longer to
    compile than a loop.
    """

    #: By rating: features, and the user's factors without each rating.
    rows: Array
    own: Array
    residuals: Array
    lengths: Array
    #: By pair of features.
    products: Array
    inverse: Array
    #: Of `invert`.
    four: Array
    pivots: Array
    swept: Array
    #: By feature.
    solution: Array
    total: Array

    @classmethod
    def of(cls, longest: int, size: int) -> Self:
        """Return room for rows of at most `longest` ratings."""
        wide, count = width_of(size), -(-longest // HIGH) * HIGH
        by_rating = (in_lines(count, wide), in_lines(count, wide), np.empty(count), np.empty(count))
        by_pair = (in_lines(wide, wide), in_lines(wide, wide), *room_to_invert(wide))
        return cls(*by_rating, *by_pair, np.empty(wide), np.empty(wide))


# Leverage is capped: a rating with a larger one almost alone determines its own prediction.
_MOST_LEVERAGE = 0.9


@inner
def _cut(value: float) -> int:
    """Return a number in fixed point, truncated toward zero.

    It is at most 2^24 units, so 32 bits hold them; processors convert to these faster.
    """
    return np.int64(np.int32(value * VECTOR_STEPS))  # type: ignore[return-value]


@inner
def _own_factors(asked: VectorsAsked, room: Room, count: int, size: int) -> None:
    """Turn targets into leave-one-out residuals; set `own` to the factors without each rating in turn."""
    rows, own, inverse, residuals = room.rows, room.own, room.inverse, room.residuals
    solution, scale, wide = room.solution, asked.scale, asked.scale.size
    for a in range(wide):
        solution[a] = dot(inverse[a], room.total)
    multiply(rows, count, size, inverse, own)
    for j in range(count):
        one, turned = rows[j], own[j]
        leverage, fitted = 0.0, 0.0
        for a in range(wide):
            leverage += one[a] * turned[a]
            fitted += one[a] * solution[a]
        residual = (residuals[j] - fitted) / (1 - min(leverage, _MOST_LEVERAGE))
        residuals[j] = residual
        length = 0.0
        for a in range(wide):
            turned[a] = scale[a] * (solution[a] - turned[a] * residual)
            length += turned[a] * turned[a]
        room.lengths[j] = clip_factors(turned, length, asked.longest)


@inner
def _add_contribution(columns: Array, asked: VectorsAsked, room: Room, out: Totals) -> None:
    """Add a vector (sums and counts) and a matrix (moment), each of norm at most 1; nothing if not finite."""
    own, residuals, lengths, products = room.own, room.residuals, room.lengths, room.products
    item_weights, count_part = asked.item_weights, asked.count_part
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
    for j in range(columns.size):
        if j + AHEAD < columns.size:
            fetch_row(sums, columns[j + AHEAD])
        item = np.uint32(columns[j])
        item_weight = weight * item_weights[item]
        counts[item] += _cut(item_weight * count_part)
        factor, total_of_item, one = item_weight * residuals[j], sums[item], own[j]
        for a in range(size):
            total_of_item[a] += _cut(factor * one[a])
    for a in range(size):
        for b in range(a, size):
            moment[a, b] += _cut(share * products[a, b])


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
    features, offsets, ridge, wide = asked.features, asked.offsets, asked.ridge, asked.features.shape[1]
    rows, inverse, size = room.rows, room.inverse, out.sums.shape[1]
    high = (size + HIGH - 1) // HIGH * HIGH
    for row in range(start, stop):
        items = columns[indptr[row] : indptr[row + 1]]
        if items.size == 0:
            continue
        for a in range(wide):
            room.total[a] = 0.0
        for j in range(items.size):
            item, one = np.uint32(items[j]), rows[j]
            if indptr[row] + j + AHEAD < columns.size:
                fetch_row(features, columns[indptr[row] + j + AHEAD])
            target, feature = values[indptr[row] + j] - offsets[item], features[item]
            room.residuals[j] = target
            for a in range(wide):
                one[a] = feature[a]
                room.total[a] += target * feature[a]
        row_products(rows, items.size, size, inverse)
        for a in range(high):
            inverse[a, a] += ridge[a]
        if not invert(inverse, high, room.four, room.pivots, room.swept):
            continue
        _own_factors(asked, room, items.size, size)
        row_products(room.own, items.size, size, room.products)
        _add_contribution(items, asked, room, out)
