"""Compile what a person tells about item vectors: leave-one-out residuals times that person's own factors.

A person's numbers are computed by these loops alone, in an order that depends on that person's row only.
Features are laid out factor by factor, so that the innermost loops run along the row.
"""

from __future__ import annotations

import numpy as np

from discreet.contributions.grid import ROUNDING, VECTOR_STEPS
from discreet.solvers.kernels.shared import Array, compiled

# A rating that decides its own prediction almost alone says little about anything else.
_MOST_LEVERAGE = 0.9


@compiled
def _cut(value: float) -> int:
    """Return a number in whole steps, cut toward zero."""
    return np.int64(value * VECTOR_STEPS)  # type: ignore[return-value]


@compiled
def _products(lines: Array, count: int, out: Array) -> None:
    """Set the lower triangle of `out` to the inner products of lines, each `count` long."""
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
    """Invert a positive definite matrix given by its lower triangle, which is overwritten by its root."""
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
        pull, line = own[a], lines[a]
        for j in range(count):
            pull[j] = 0.0
        for b in range(size):
            other, weight = lines[b], inverse[a, b]
            for j in range(count):
                pull[j] += weight * other[j]
        for j in range(count):
            leverage[j] += pull[j] * line[j]
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
def _tell(
    columns: Array,
    own: Array,
    residuals: Array,
    lengths: Array,
    products: Array,
    longest: float,
    pull: Array,
    count_part: float,
    sums: Array,
    counts: Array,
    moment: Array,
) -> None:
    """Add a vector (sums and counts) and a matrix (moment), each at most 1 long; nothing if not finite."""
    size = products.shape[0]
    squares = 0.0
    total = 0.0
    for j in range(columns.size):
        total += lengths[j]
        squares += pull[columns[j]] ** 2 * (residuals[j] ** 2 * lengths[j] + count_part**2)
    weight = ROUNDING / np.sqrt(squares)
    share = ROUNDING / (np.sqrt(total * columns.size) * longest)
    if not (np.isfinite(squares) and np.isfinite(total) and np.isfinite(weight) and np.isfinite(share)):
        return
    for j in range(columns.size):
        item_weight = weight * pull[columns[j]]
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
    pull: Array,
    count_part: float,
    sums: Array,
    counts: Array,
    moment: Array,
) -> None:
    """Add what the people of a range of rows tell; one without ratings or finite numbers tells nothing."""
    size, most = features.shape[1], 0
    for row in range(start, stop):
        most = max(most, indptr[row + 1] - indptr[row])
    lines, own = np.empty((size, most)), np.empty((size, most))
    residuals, lengths = np.empty(most), np.empty(most)
    products, inverse = np.empty((size, size)), np.empty((size, size))
    for row in range(start, stop):
        cells = columns[indptr[row] : indptr[row + 1]]
        if cells.size == 0:
            continue
        for j in range(cells.size):
            residuals[j] = values[indptr[row] + j] - offsets[cells[j]]
            for a in range(size):
                lines[a, j] = features[cells[j], a]
        _products(lines, cells.size, products)
        for a in range(size):
            products[a, a] += ridge[a]
        if not _invert(products, inverse):
            continue
        _own_factors(lines, residuals, cells.size, inverse, scale, longest, own, lengths)
        _products(own, cells.size, products)
        _tell(cells, own, residuals, lengths, products, longest, pull, count_part, sums, counts, moment)
