"""Sum the normal equations of item vectors: leave-one-out residuals times the user's own factors.

A user's numbers are computed by these loops alone, in an order that depends on that user's row only.
Features are laid out factor by factor, so that the innermost loops run along the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats
from discreet.core.kernels import compiled, dot
from discreet.core.rows import require_fit, summed_over_rows
from discreet.statistics.blocks import Block
from discreet.statistics.domain import FARTHEST, LEAST, MOST, Number, Numbers
from discreet.statistics.fixed_point import ROUNDING, VECTOR_STEPS, Steps
from discreet.statistics.statistic import Part, Statistic


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemVectors(Statistic):
    """Sum residuals times users' factors by item, the items' counts, and the factors' second moment.

    A person explains the own ratings by a ridge over `features` beyond `offsets`; `scale` turns the solution
    into factors f of about unit size, the first of them 1, no longer than `longest` >= 1. With r_i and f_i
    computed without rating i, weights q_i = `pull` and c = `count_part` a person tells
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

        def part(start: int, stop: int) -> tuple[Steps, Steps]:
            vectors, moment = (np.zeros(one.shape, dtype=np.int64) for one in sums)
            add_people(
                start,
                stop,
                people.indptr,
                people.columns,
                people.values,
                self.offsets,
                self.features,
                self.ridge,
                self.scale,
                self.longest,
                self.item_weights,
                self.count_part,
                *self.split(vectors),
                moment,
            )
            return vectors, moment

        for total, added in zip(sums, summed_over_rows(part, people.indptr), strict=True):
            total += added

    def split(self, total: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the items' sums and counts, as views."""
        return total[: self.features.size].reshape(self.features.shape), total[self.features.size :]


# Leverage is capped: a rating with a larger one almost alone determines its own prediction.
_MOST_LEVERAGE = 0.9


# Ratings of a row are laid out in blocks of so many, which the processor's nearest cache holds.
_BLOCK = 64


@compiled
def _cut(value: float) -> int:
    """Return a number in fixed point, truncated toward zero.

    It is at most 2^24 units, so 32 bits hold them; processors convert to these faster.
    """
    return np.int64(np.int32(value * VECTOR_STEPS))  # type: ignore[return-value]


@compiled
def _tile(one: Array, width: int, a: int, b: int, out: Array) -> None:
    """Add the inner products of four lines of a block, from `a` on, with two, from `b` on."""
    t0, t1, t2, t3, u0, u1, u2, u3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    l0, l1, l2, l3, r0, r1 = one[a], one[a + 1], one[a + 2], one[a + 3], one[b], one[b + 1]
    for j in range(width):
        t0 += l0[j] * r0[j]
        t1 += l1[j] * r0[j]
        t2 += l2[j] * r0[j]
        t3 += l3[j] * r0[j]
        u0 += l0[j] * r1[j]
        u1 += l1[j] * r1[j]
        u2 += l2[j] * r1[j]
        u3 += l3[j] * r1[j]
    out[a, b] += t0
    out[a + 1, b] += t1
    out[a + 2, b] += t2
    out[a + 3, b] += t3
    out[a, b + 1] += u0
    out[a + 1, b + 1] += u1
    out[a + 2, b + 1] += u2
    out[a + 3, b + 1] += u3


@compiled
def _width(block: int, count: int) -> int:
    """Return how much of a block is used: all, or in the last one eights that hold the rest."""
    return min(_BLOCK, (count - block * _BLOCK + 7) // 8 * 8)


@compiled
def _products(lines: Array, count: int, out: Array) -> None:
    """Set the lower triangle of `out` to the inner products of lines, over `count` ratings.

    The number of lines is a multiple of four.
    """
    out[:] = 0.0
    for block in range((count + _BLOCK - 1) // _BLOCK):
        one, width = lines[block], _width(block, count)
        for a in range(0, out.shape[0], 4):
            for b in range(0, a + 4, 2):
                _tile(one, width, a, b, out)


@compiled
def _invert(matrix: Array) -> bool:
    """Replace a positive definite matrix, given by its lower triangle, by its inverse.

    Four rows are swept by themselves, then they are taken off all others at once.
    """
    size = matrix.shape[0]
    for i in range(size):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
    for first in range(0, size, 4):
        for p in range(first, first + 4):
            line, pivot = matrix[p], matrix[p, p]
            if not pivot > 0:
                return False
            line[p] = 1.0
            for j in range(size):
                line[j] /= pivot
            for i in range(first, first + 4):
                if i != p:
                    other, factor = matrix[i], matrix[i, p]
                    other[p] = 0.0
                    for j in range(size):
                        other[j] -= factor * line[j]
        l0, l1, l2, l3 = matrix[first], matrix[first + 1], matrix[first + 2], matrix[first + 3]
        for i in range(size):
            if not first <= i < first + 4:
                other = matrix[i]
                f0, f1, f2, f3 = other[first], other[first + 1], other[first + 2], other[first + 3]
                other[first : first + 4] = 0.0
                for j in range(size):
                    other[j] -= f0 * l0[j] + f1 * l1[j] + f2 * l2[j] + f3 * l3[j]
    return True


@compiled
def _apply(
    one: Array, width: int, inverse: Array, solution: Array, out: Array, leverage: Array, fitted: Array
) -> None:
    """Write the inverse times a block, the leverage of its ratings, and what the solution predicts."""
    leverage[:] = 0.0
    fitted[:] = 0.0
    for a in range(0, inverse.shape[0], 2):
        p, q, w, v = out[a], out[a + 1], inverse[a], inverse[a + 1]
        p[:] = 0.0
        q[:] = 0.0
        for b in range(0, inverse.shape[0], 4):
            l0, l1, l2, l3 = one[b], one[b + 1], one[b + 2], one[b + 3]
            w0, w1, w2, w3, v0, v1, v2, v3 = (
                w[b],
                w[b + 1],
                w[b + 2],
                w[b + 3],
                v[b],
                v[b + 1],
                v[b + 2],
                v[b + 3],
            )
            for j in range(width):
                p[j] += w0 * l0[j] + w1 * l1[j] + w2 * l2[j] + w3 * l3[j]
                q[j] += v0 * l0[j] + v1 * l1[j] + v2 * l2[j] + v3 * l3[j]
        left, right, s, t = one[a], one[a + 1], solution[a], solution[a + 1]
        for j in range(width):
            leverage[j] += p[j] * left[j] + q[j] * right[j]
            fitted[j] += s * left[j] + t * right[j]


@compiled
def _own_factors(
    lines: Array,
    residuals: Array,
    count: int,
    inverse: Array,
    scale: Array,
    longest: float,
    own: Array,
    lengths: Array,
) -> None:
    """Turn targets into leave-one-out residuals; set `own` to the factors without each rating in turn."""
    size, blocks = inverse.shape[0], (count + _BLOCK - 1) // _BLOCK
    solution, total = np.zeros(size), np.zeros(size)
    leverage, fitted = np.empty(_BLOCK), np.empty(_BLOCK)
    for block in range(blocks):
        one, width = lines[block], _width(block, count)
        for a in range(size):
            total[a] += dot(one[a, :width], residuals[block, :width])
    for a in range(size):
        solution[a] = dot(inverse[a], total)
    for block in range(blocks):
        one, target, squares, width = own[block], residuals[block], lengths[block], _width(block, count)
        _apply(lines[block], width, inverse, solution, one, leverage, fitted)
        for j in range(width):
            target[j] = (target[j] - fitted[j]) / (1 - min(leverage[j], _MOST_LEVERAGE))
            squares[j] = 0.0
        for a in range(1, scale.size):
            line, factor, middle = one[a], scale[a], solution[a]
            for j in range(width):
                line[j] = factor * (middle - line[j] * target[j])
                squares[j] += line[j] * line[j]
        _shorten(one, squares, width, scale.size, longest)


@compiled
def _shorten(own: Array, lengths: Array, width: int, size: int, longest: float) -> None:
    """Make the constant 1 and the rest so short that the whole is at most `longest`; square the lengths.

    `longest` is at least 1. A length that is not finite stays so: whoever it belongs to contributes zero.
    """
    room = longest * longest - 1
    for j in range(width):
        own[0, j] = 1.0
        if lengths[j] > room and np.isfinite(lengths[j]):
            shorter = np.sqrt(room / lengths[j])
            lengths[j] = room
            for a in range(1, size):
                own[a, j] *= shorter
        lengths[j] += 1.0


@compiled
def _clear(own: Array, count: int) -> None:
    """Set what only fills up the last block to zero."""
    block = (count - 1) // _BLOCK
    for a in range(own.shape[1]):
        for j in range(count - block * _BLOCK, _width(block, count)):
            own[block, a, j] = 0.0


@compiled
def _add_contribution(
    columns: Array,
    own: Array,
    residuals: Array,
    lengths: Array,
    products: Array,
    longest: float,
    item_weights: Array,
    count_part: float,
    sums: Array,
    counts: Array,
    moment: Array,
) -> None:
    """Add a vector (sums and counts) and a matrix (moment), each of norm at most 1; nothing if not finite."""
    size = sums.shape[1]
    squares, total = 0.0, 0.0
    for j in range(columns.size):
        total += lengths[j]
        squares += item_weights[columns[j]] ** 2 * (residuals[j] ** 2 * lengths[j] + count_part**2)
    weight = ROUNDING / np.sqrt(squares)
    share = ROUNDING / (np.sqrt(total * columns.size) * longest)
    if not (np.isfinite(squares) and np.isfinite(total) and np.isfinite(weight) and np.isfinite(share)):
        return
    for j in range(columns.size):
        item, block, place = np.uint32(columns[j]), j // _BLOCK, j % _BLOCK
        item_weight = weight * item_weights[item]
        counts[item] += _cut(item_weight * count_part)
        line, factor = sums[item], item_weight * residuals[j]
        for a in range(size):
            line[a] += _cut(factor * own[block, a, place])
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
    offsets: Array,
    features: Array,
    ridge: Array,
    scale: Array,
    longest: float,
    item_weights: Array,
    count_part: float,
    sums: Array,
    counts: Array,
    moment: Array,
) -> None:
    """Add the contributions of a range of rows; a user without ratings or finite numbers adds nothing.

    Lines of zeros fill up the features to a multiple of four.
    """
    size, most = features.shape[1], 0
    for row in range(start, stop):
        most = max(most, indptr[row + 1] - indptr[row])
    most, wide = (most + _BLOCK - 1) // _BLOCK, (size + 3) // 4 * 4
    lines, own = np.zeros((most, wide, _BLOCK)), np.zeros((most, wide, _BLOCK))
    residuals, lengths = np.empty((most, _BLOCK)), np.empty((most, _BLOCK))
    products, inverse = np.empty((wide, wide)), np.empty((wide, wide))
    for row in range(start, stop):
        items = columns[indptr[row] : indptr[row + 1]]
        if items.size == 0:
            continue
        for j in range(items.size):
            block, place, item = j // _BLOCK, j % _BLOCK, np.uint32(items[j])
            residuals[block, place] = values[indptr[row] + j] - offsets[item]
            for a in range(size):
                lines[block, a, place] = features[item, a]
        _clear(lines, items.size)
        residuals.reshape(-1)[items.size : (items.size + 7) // 8 * 8] = 0.0
        _products(lines, items.size, inverse)
        for a in range(wide):
            inverse[a, a] += ridge[a] if a < size else 1.0
        if not _invert(inverse):
            continue
        _own_factors(lines, residuals, items.size, inverse, scale, longest, own, lengths)
        _clear(own, items.size)
        _products(own, items.size, products)
        flat = (residuals.reshape(-1), lengths.reshape(-1), products)
        _add_contribution(items, own, *flat, longest, item_weights, count_part, sums, counts, moment)
