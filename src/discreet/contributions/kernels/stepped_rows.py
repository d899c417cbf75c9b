"""Compile the loops that walk every row through published rounds, and add up what it has left."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.solvers.kernels.shared import compiled, dot

Array = npt.NDArray[Any]


@compiled
def shorten(row: Array, bound: float) -> float:
    """Return the factor that makes a row at most `bound` long."""
    length = np.sqrt(dot(row, row))
    return bound / length if length > bound else 1.0


@compiled
def walk(columns: Array, values: Array, directions: Array, paces: Array, bound: float, own: Array) -> Array:
    """Write a row's own mean and places on the directions to `own`; return what is left on its cells.

    Round t turns the completed row y to (1 - 1/T) y - pace_t (e . v_t) v_t with e = y - x, and shortens it to
    `bound` on its own cells; `own` has 1 + T places, and rounds that are not there yet stay at zero.
    """
    rounds = own.size - 1
    mean = 0.0
    for j in range(values.size):
        mean += values[j]
    mean /= max(values.size, 1)
    own[:] = 0.0
    own[0] = mean
    target = np.empty(values.size)
    for j in range(values.size):
        target[j] = values[j] - mean
    target *= shorten(target, bound)
    row = np.zeros(values.size)
    beside = np.empty(values.size)
    for t in range(paces.size):
        along = 0.0
        for j in range(values.size):
            beside[j] = directions[np.uint32(columns[j]), t]
            along += (row[j] - target[j]) * beside[j]
        own[1 : t + 1] *= 1 - 1 / rounds
        own[t + 1] = -paces[t] * along
        for j in range(values.size):
            row[j] = (1 - 1 / rounds) * row[j] - paces[t] * along * beside[j]
        factor = shorten(row, bound)
        row *= factor
        own[1 : t + 2] *= factor
    return row - target


@compiled
def place_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    directions: Array,
    paces: Array,
    bound: float,
    out: Array,
) -> None:
    """Write each row's own mean and places."""
    for row in range(start, stop):
        cells = slice(indptr[row], indptr[row + 1])
        walk(columns[cells], values[cells], directions, paces, bound, out[row])


@compiled
def leave_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    directions: Array,
    paces: Array,
    rounds: int,
    bound: float,
    unit: float,
    out: Array,
) -> None:
    """Write what each row has left, over twice the bound, in whole steps cut toward zero.

    Both the row and its target are at most `bound` long, so what is left is at most twice that; `unit` steps
    make 1. A row whose numbers are not finite becomes zero.
    """
    own = np.empty(1 + rounds)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        left = walk(columns[first:last], values[first:last], directions, paces, bound, own)
        usable = np.isfinite(left).all()
        for j in range(left.size):
            out[first + j] = np.int16(left[j] * (unit / (2 * bound))) if usable else np.int16(0)


@compiled
def add_moment(start: int, stop: int, indptr: Array, columns: Array, steps: Array, totals: Array) -> None:
    """Add the products of every pair of columns of a row, the diagonal too, to the upper triangle."""
    for row in range(start, stop):
        own_columns = columns[indptr[row] : indptr[row + 1]]
        own_steps = steps[indptr[row] : indptr[row + 1]]
        for j in range(own_columns.size):
            here = np.int64(own_steps[j])
            line = totals[np.uint32(own_columns[j])]
            for other in range(j, own_columns.size):
                line[np.uint32(own_columns[other])] += here * np.int64(own_steps[other])


@compiled
def add_products(
    start: int, stop: int, indptr: Array, columns: Array, steps: Array, vector: Array, totals: Array
) -> None:
    """Add every row times its product with the vector, in steps as fine as those of products."""
    for row in range(start, stop):
        own_columns = columns[indptr[row] : indptr[row + 1]]
        own_steps = steps[indptr[row] : indptr[row + 1]]
        along = 0.0
        for j in range(own_columns.size):
            along += np.float64(own_steps[j]) * vector[np.uint32(own_columns[j])]
        for j in range(own_columns.size):
            totals[np.uint32(own_columns[j])] += np.int64(np.float64(own_steps[j]) * along)


@compiled
def add_stretch(
    start: int, stop: int, indptr: Array, columns: Array, steps: Array, vector: Array, totals: Array
) -> None:
    """Add the square of every row's product with the vector."""
    for row in range(start, stop):
        along = 0.0
        for cell in range(indptr[row], indptr[row + 1]):
            along += np.float64(steps[cell]) * vector[np.uint32(columns[cell])]
        totals[0] += np.int64(along * along)
