"""Compile the loops that read every rating once a round: scaled rows, their second moment, its products.

What people add up are whole numbers, so a sum does not depend on the order or on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.solvers.kernels import compiled, dot

Array = npt.NDArray[Any]


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
    """Write each row's ridge solution on the constant and the factors.

    A row's features are laid side by side first, so that the sums over its cells run through memory in order.
    """
    size, longest = ridge.size, 0
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    side = np.ones((size + 1, longest))
    normal = np.empty((size, size))
    for row in range(start, stop):
        own_columns = columns[indptr[row] : indptr[row + 1]]
        own_values = values[indptr[row] : indptr[row + 1]]
        cells = own_columns.size
        target = side[size, :cells]
        for j in range(cells):
            target[j] = np.float64(own_values[j]) - offsets[np.uint32(own_columns[j])]
        for a in range(1, size):
            line = side[a, :cells]
            for j in range(cells):
                line[j] = factors[np.uint32(own_columns[j]), a - 1]
        for a in range(size):
            out[row, a] = dot(side[a, :cells], target)
            for b in range(a + 1):
                normal[a, b] = dot(side[a, :cells], side[b, :cells])
            normal[a, a] += ridge[a]
        solve_cholesky(normal, out[row])


@compiled
def scale_residuals(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    offsets: Array,
    factors: Array,
    own: Array,
    part: float,
    clamp: float,
    least_length: float,
    unit: float,
    out: Array,
) -> None:
    """Write each row's residuals over their length, in whole steps cut toward zero; `unit` steps make 1.

    A residual is at most `clamp` in size. The length counts `part` beside each; it is at least
    `least_length`.
    """
    longest = 0
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    residuals = np.empty(longest)
    for row in range(start, stop):
        own_columns = columns[indptr[row] : indptr[row + 1]]
        own_values = values[indptr[row] : indptr[row + 1]]
        own_out = out[indptr[row] : indptr[row + 1]]
        squares = 0.0
        for j in range(own_columns.size):
            column = np.uint32(own_columns[j])
            residual = np.float64(own_values[j]) - offsets[column] - own[row, 0]
            for a in range(factors.shape[1]):
                residual -= own[row, a + 1] * factors[column, a]
            residual = min(max(residual, -clamp), clamp)
            residuals[j] = residual
            squares += residual * residual + part * part
        length = max(np.sqrt(squares), least_length)
        factor = unit / length if length > 0 else 0.0
        for j in range(own_columns.size):
            own_out[j] = np.int16(residuals[j] * factor)


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
            # An index without a sign cannot count from the end, which spares a comparison a cell.
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
