"""Compile the loops that read every rating once a round: scaled rows, their second moment, its products.

What people add up are whole numbers, so a sum does not depend on the order or on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.solvers.kernels.shared import compiled, dot

Array = npt.NDArray[Any]
# A sum of squares above this is right in all the digits that count.
_LEAST_SQUARES = 1e-200


@compiled
def solve_cholesky(matrix: Array, right: Array) -> None:
    """Solve a small positive definite system in place; only the lower triangle is read."""
    for a in range(right.size):
        for b in range(a + 1):
            total = matrix[a, b]
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            matrix[a, b] = np.sqrt(total) if a == b else total / matrix[b, b]
        for b in range(a):
            right[a] -= matrix[a, b] * right[b]
        right[a] /= matrix[a, a]
    for a in range(right.size - 1, -1, -1):
        for b in range(a + 1, right.size):
            right[a] -= matrix[b, a] * right[b]
        right[a] /= matrix[a, a]


@compiled
def lay_out(columns: Array, values: Array, offsets: Array, factors: Array, side: Array) -> None:
    """Write a row's features side by side, one line each, and last what it has beyond the offsets.

    The first line, of ones, is left as it is. Sums over the cells then run through memory in order.
    """
    size = side.shape[0] - 1
    for j in range(columns.size):
        # An index without a sign cannot count from the end, which spares a comparison a cell.
        side[size, j] = np.float64(values[j]) - offsets[np.uint32(columns[j])]
    for a in range(1, size):
        for j in range(columns.size):
            side[a, j] = factors[np.uint32(columns[j]), a - 1]


@compiled
def place(side: Array, cells: int, ridge: Array, normal: Array, out: Array) -> None:
    """Write the ridge solution of a row that is laid out; `normal` is scratch."""
    size = ridge.size
    target = side[size, :cells]
    for a in range(size):
        out[a] = dot(side[a, :cells], target)
        for b in range(a + 1):
            normal[a, b] = dot(side[a, :cells], side[b, :cells])
        normal[a, a] += ridge[a]
    solve_cholesky(normal, out)


@compiled
def longest_row(start: int, stop: int, indptr: Array) -> int:
    """Return the largest number of cells of a row."""
    longest = 0
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    return longest


@compiled
def place_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    offsets: Array,
    factors: Array,
    ridge: Array,
    out: Array,
) -> None:
    """Write each row's ridge solution on the constant and the factors."""
    side = np.ones((ridge.size + 1, longest_row(start, stop, indptr)))
    normal = np.empty((ridge.size, ridge.size))
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        lay_out(columns[first:last], values[first:last], offsets, factors, side)
        place(side, last - first, ridge, normal, out[row])


@compiled
def scale_residuals(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    offsets: Array,
    factors: Array,
    ridge: Array,
    part: float,
    clamp: float,
    least_length: float,
    unit: float,
    out: Array,
) -> None:
    """Write what each row's ridge solution leaves, over its length, in whole steps cut toward zero.

    A residual is at most `clamp` in size. The length counts `part` beside each; it is at least
    `least_length`. `unit` steps make 1. A row whose numbers are not finite, or so small that their squares
    vanish, becomes zero.
    """
    size = ridge.size
    side = np.ones((size + 1, longest_row(start, stop, indptr)))
    normal, own = np.empty((size, size)), np.empty(size)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        lay_out(columns[first:last], values[first:last], offsets, factors, side)
        place(side, last - first, ridge, normal, own)
        residuals = side[size, : last - first]
        for a in range(size):
            for j in range(residuals.size):
                residuals[j] -= own[a] * side[a, j]
        squares, usable = 0.0, True
        for j in range(residuals.size):
            # A comparison, as those of `clamp`, would turn NaN into a number.
            usable = usable and np.isfinite(residuals[j])
            residuals[j] = min(max(residuals[j], -clamp), clamp)
            squares += residuals[j] * residuals[j] + part * part
        if not (usable and squares > _LEAST_SQUARES and np.isfinite(squares)):
            out[first:last] = 0
            continue
        factor = unit / max(np.sqrt(squares), least_length)
        for j in range(residuals.size):
            out[first + j] = np.int16(residuals[j] * factor)


@compiled
def add_second_moment(
    start: int, stop: int, indptr: Array, columns: Array, steps: Array, totals: Array
) -> None:
    """Add the products of every pair of different columns of a row to the upper triangle."""
    for row in range(start, stop):
        own_columns = columns[indptr[row] : indptr[row + 1]]
        own_steps = steps[indptr[row] : indptr[row + 1]]
        for j in range(own_columns.size):
            here = np.int64(own_steps[j])
            line = totals[np.uint32(own_columns[j])]
            for other in range(j + 1, own_columns.size):
                line[np.uint32(own_columns[other])] += here * np.int64(own_steps[other])


@compiled
def add_products(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    steps: Array,
    vector: Array,
    fine: float,
    totals: Array,
) -> None:
    """Add every row's second moment without its diagonal times the vector; `fine` steps make 1."""
    for row in range(start, stop):
        own_columns = columns[indptr[row] : indptr[row + 1]]
        own_steps = steps[indptr[row] : indptr[row + 1]]
        along = 0.0
        for j in range(own_columns.size):
            along += np.float64(own_steps[j]) * vector[np.uint32(own_columns[j])]
        for j in range(own_columns.size):
            column = np.uint32(own_columns[j])
            step = np.float64(own_steps[j])
            totals[column] += np.int64(step * (along - step * vector[column]) * fine)


@compiled
def advance_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    left_over: Array,
    places: Array,
    turn: Array,
    basis: Array,
    kept: Array,
    out: Array,
) -> None:
    """Write each row's place on a new basis: its place on the old one turned, and its own errors added."""
    for row in range(start, stop):
        target = out[row]
        for a in range(target.size):
            target[a] = 0.0
        for b in range(places.shape[1]):
            for a in range(target.size):
                target[a] += places[row, b] * turn[b, a]
        for cell in range(indptr[row], indptr[row + 1]):
            for a in range(target.size):
                target[a] += left_over[cell] * basis[columns[cell], a]
        for a in range(target.size):
            target[a] *= kept[a]


@compiled
def fill_moved_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    left_over: Array,
    places: Array,
    basis: Array,
    bound: float,
    unit: float,
    out: Array,
) -> None:
    """Write rows moved by their own errors over their length, or over `bound` if shorter, in whole steps."""
    for row in range(start, stop):
        target = out[row - start]
        squares = 0.0
        for column in range(target.size):
            target[column] = 0.0
            for b in range(places.shape[1]):
                target[column] += places[row, b] * basis[column, b]
        for cell in range(indptr[row], indptr[row + 1]):
            target[columns[cell]] += left_over[cell]
        for column in range(target.size):
            squares += target[column] * target[column]
        factor = unit / max(np.sqrt(squares), bound)
        for column in range(target.size):
            target[column] = np.trunc(target[column] * factor)
