"""Compile the two loops of a factorization that knows how sure it is: sum up cells, solve rows.

A row of one side predicts by `(bias, 1, factors) . (1, own bias, own factors)` of the other side. What is
believed of a row is one line of numbers: the expected `(bias, 1, factors)`, then its expected square, packed
by its lower triangle. Sums have one number more, the squared values.
"""

from __future__ import annotations

import numpy as np

from discreet.solvers.kernels.shared import Array, compiled, dot

_FEW = 256


@compiled
def _add_few(
    columns: Array, values: Array, mean: float, first: int, size: int, beliefs: Array, out: Array
) -> None:
    """Add up a few cells, two at a time: sums are loaded and stored half as often."""
    # Loops over slices from their start are compiled to vector instructions, those from `size` on are not.
    places, squares = out[:size], out[size : out.size - 1]
    for cell in range(0, columns.size - 1, 2):
        one, other = beliefs[columns[cell] - first], beliefs[columns[cell + 1] - first]
        left, right = values[cell] - mean, values[cell + 1] - mean
        for a in range(places.size):
            places[a] += left * one[a] + right * other[a]
        one, other = one[size:], other[size:]
        for a in range(squares.size):
            squares[a] += one[a] + other[a]
        out[out.size - 1] += left * left + right * right
    if columns.size % 2:
        one, left = beliefs[columns[columns.size - 1] - first], values[columns.size - 1] - mean
        for a in range(places.size):
            places[a] += left * one[a]
        one = one[size:]
        for a in range(squares.size):
            squares[a] += one[a]
        out[out.size - 1] += left * left


@compiled
def add_cells(
    start: int,
    stop: int,
    begins: Array,
    ends: Array,
    columns: Array,
    values: Array,
    mean: float,
    first: int,
    size: int,
    beliefs: Array,
    sums: Array,
) -> None:
    """Add to each row's sums what is believed of its columns, the first `size` numbers times the value.

    `beliefs` starts with the one of column `first`; a row's cells are those from `begins` to `ends`.
    """
    # Cells are added in single precision where they stay in the cache, a few at a time, then to the sums.
    few = np.empty(beliefs.shape[1] + 1, beliefs.dtype)
    for row in range(start, stop):
        total = sums[row]
        for part in range(begins[row], ends[row], _FEW):
            few[:] = 0
            cells = slice(part, min(part + _FEW, ends[row]))
            _add_few(columns[cells], values[cells], mean, first, size, beliefs, few)
            for a in range(few.size):
                total[a] += few[a]


@compiled
def _invert(normal: Array, triangle: Array, inverse: Array) -> None:
    """Set `inverse` to that of a positive definite matrix, whose lower triangle is overwritten."""
    size = normal.shape[0]
    for i in range(size):
        row = normal[i]
        for j in range(i):
            above = normal[j]
            entry = row[j]
            for k in range(j):
                entry -= row[k] * above[k]
            row[j] = entry * above[j]  # the diagonal holds inverse pivots
        pivot = row[i]
        for k in range(i):
            pivot -= row[k] * row[k]
        row[i] = 1 / np.sqrt(pivot)
    # The transpose of the triangle's inverse: its rows are what the inner loops run along.
    for j in range(size):
        triangle[j, j] = normal[j, j]
        for i in range(j + 1, size):
            triangle[j, i] = -dot(normal[i, j:i], triangle[j, j:i]) * normal[i, i]
    for i in range(size):
        for j in range(i + 1):
            inverse[i, j] = inverse[j, i] = dot(triangle[i, i:], triangle[j, i:])


@compiled
def _pack(answer: Array, spread: Array, belief: Array) -> None:
    """Write a belief from the expected bias and factors of a row and their covariance."""
    size = answer.size + 1
    belief[0], belief[1] = answer[0], 1
    belief[size] = answer[0] * answer[0] + spread[0, 0]
    belief[size + 1], belief[size + 2] = answer[0], 1
    at = size + 3
    for a in range(1, answer.size):
        belief[a + 1] = answer[a]
        belief[at], belief[at + 1] = answer[a] * answer[0] + spread[a, 0], answer[a]
        at += 2
        for b in range(1, a + 1):
            belief[at] = answer[a] * answer[b] + spread[a, b]
            at += 1


@compiled
def _missed(total: Array, answer: Array, spread: Array) -> float:
    """Return what a row's predictions are expected to miss, squared and summed over its cells."""
    size = answer.size + 1
    missed, at = total[total.size - 1] + total[size] - 2 * total[0], size + 1
    for a in range(answer.size):
        missed += 2 * answer[a] * (total[at] - total[a + 1])
        at += 1
        for b in range(a + 1):
            twice = 1 if a == b else 2
            missed += twice * total[at] * (answer[a] * answer[b] + spread[a, b])
            at += 1
    return missed  # type: ignore[no-any-return]


@compiled
def solve_rows(start: int, stop: int, sums: Array, precision: Array, noise: float, beliefs: Array) -> None:
    """Write what is to be believed of each row, and behind it what its predictions are expected to miss."""
    size = precision.shape[0]
    normal, triangle = np.empty((size, size)), np.empty((size, size))
    spread, right, answer = np.empty((size, size)), np.empty(size), np.empty(size)
    for row in range(start, stop):
        total, belief = sums[row], beliefs[row]
        at = size + 2
        for a in range(size):
            right[a] = (total[a + 1] - total[at]) / noise
            at += 1
            for b in range(a + 1):
                normal[a, b] = total[at] / noise + precision[a, b]
                at += 1
        _invert(normal, triangle, spread)
        for a in range(size):
            answer[a] = 0.0
            for b in range(size):
                answer[a] += spread[a, b] * right[b]
        _pack(answer, spread, belief)
        belief[belief.size - 1] = _missed(total, answer, spread)
