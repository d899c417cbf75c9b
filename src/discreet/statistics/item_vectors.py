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
from discreet.core.kernels import compiled
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


@compiled
def _cut(value: float) -> int:
    """Return a number in fixed point, truncated toward zero."""
    return np.int64(value * VECTOR_STEPS)  # type: ignore[return-value]


@compiled
def _products(lines: Array, count: int, out: Array) -> None:
    """Set the lower triangle of `out` to the inner products of the first `count` entries of lines."""
    for a in range(out.shape[0]):
        left = lines[a]
        for b in range(a + 1):
            right = lines[b]
            total = 0.0
            for j in range(count):
                total += left[j] * right[j]
            out[a, b] = total


@compiled
def _invert(matrix: Array, inverse: Array) -> bool:
    """Invert a positive definite matrix given by its lower triangle, which its Cholesky factor overwrites."""
    size = matrix.shape[0]
    for i in range(size):
        for j in range(i + 1):
            entry = matrix[i, j]
            for k in range(j):
                entry -= matrix[i, k] * matrix[j, k]
            if j < i:
                matrix[i, j] = entry / matrix[j, j]
            elif not entry > 0:
                return False
            else:
                matrix[i, i] = np.sqrt(entry)
    for column in range(size):
        solved = inverse[column]
        for i in range(size):
            entry = 1.0 if i == column else 0.0
            for k in range(column, i):
                entry -= matrix[i, k] * solved[k]
            solved[i] = entry / matrix[i, i] if i >= column else 0.0
        for i in range(size - 1, -1, -1):
            entry = solved[i]
            for k in range(i + 1, size):
                entry -= matrix[k, i] * solved[k]
            solved[i] = entry / matrix[i, i]
    return True


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
    size = inverse.shape[0]
    solution = np.zeros(size)
    for b in range(size):
        line, total = lines[b], 0.0
        for j in range(count):
            total += line[j] * residuals[j]
        for a in range(size):
            solution[a] += inverse[a, b] * total
    leverage = np.zeros(count)
    fitted = np.zeros(count)
    for a in range(size):
        product, line = own[a], lines[a]
        for j in range(count):
            product[j] = 0.0
        for b in range(size):
            other, weight = lines[b], inverse[a, b]
            for j in range(count):
                product[j] += weight * other[j]
        for j in range(count):
            leverage[j] += product[j] * line[j]
            fitted[j] += solution[a] * line[j]
    for j in range(count):
        residuals[j] = (residuals[j] - fitted[j]) / (1 - min(leverage[j], _MOST_LEVERAGE))
        lengths[j] = 0.0
    for a in range(1, size):
        line = own[a]
        for j in range(count):
            line[j] = scale[a] * (solution[a] - line[j] * residuals[j])
            lengths[j] += line[j] * line[j]
    _shorten(own, lengths, count, size, longest)


@compiled
def _shorten(own: Array, lengths: Array, count: int, size: int, longest: float) -> None:
    """Make the constant 1 and the rest so short that the whole is at most `longest`; square the lengths.

    `longest` is at least 1. A length that is not finite stays so: whoever it belongs to contributes zero.
    """
    room = longest * longest - 1
    for j in range(count):
        own[0, j] = 1.0
        if lengths[j] > room and np.isfinite(lengths[j]):
            shorter = np.sqrt(room / lengths[j])
            lengths[j] = room
            for a in range(1, size):
                own[a, j] *= shorter
        lengths[j] += 1.0


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
    size = products.shape[0]
    squares = 0.0
    total = 0.0
    for j in range(columns.size):
        total += lengths[j]
        squares += item_weights[columns[j]] ** 2 * (residuals[j] ** 2 * lengths[j] + count_part**2)
    weight = ROUNDING / np.sqrt(squares)
    share = ROUNDING / (np.sqrt(total * columns.size) * longest)
    if not (np.isfinite(squares) and np.isfinite(total) and np.isfinite(weight) and np.isfinite(share)):
        return
    for j in range(columns.size):
        item_weight = weight * item_weights[columns[j]]
        counts[columns[j]] += _cut(item_weight * count_part)
        line, factor = sums[columns[j]], item_weight * residuals[j]
        for a in range(size):
            line[a] += _cut(factor * own[a, j])
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
    """Add the contributions of a range of rows; a user without ratings or finite numbers adds nothing."""
    size, most = features.shape[1], 0
    for row in range(start, stop):
        most = max(most, indptr[row + 1] - indptr[row])
    lines, own = np.empty((size, most)), np.empty((size, most))
    residuals, lengths = np.empty(most), np.empty(most)
    products, inverse = np.empty((size, size)), np.empty((size, size))
    for row in range(start, stop):
        items = columns[indptr[row] : indptr[row + 1]]
        if items.size == 0:
            continue
        for j in range(items.size):
            residuals[j] = values[indptr[row] + j] - offsets[items[j]]
            for a in range(size):
                lines[a, j] = features[items[j], a]
        _products(lines, items.size, products)
        for a in range(size):
            products[a, a] += ridge[a]
        if not _invert(products, inverse):
            continue
        _own_factors(lines, residuals, items.size, inverse, scale, longest, own, lengths)
        _products(own, items.size, products)
        _add_contribution(
            items, own, residuals, lengths, products, longest, item_weights, count_part, sums, counts, moment
        )
