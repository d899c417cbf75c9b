"""Compile the loops that read every rating once a round: scaled rows, their second moment, its products.

What people add up are whole numbers, so a sum does not depend on the order or on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.solvers.kernels import compiled

Array = npt.NDArray[Any]


@compiled
def scale_rows(
    start: int,
    stop: int,
    indptr: Array,
    values: Array,
    part: float,
    least_length: float,
    unit: float,
    out: Array,
) -> None:
    """Write each row over its length, in whole steps cut toward zero; `unit` steps are a length of 1.

    The length counts `part` beside every value and is at least `least_length`.
    """
    for row in range(start, stop):
        squares = 0.0
        for cell in range(indptr[row], indptr[row + 1]):
            value = np.float64(values[cell])
            squares += value * value + part * part
        length = max(np.sqrt(squares), least_length)
        factor = unit / length if length > 0 else 0.0
        for cell in range(indptr[row], indptr[row + 1]):
            out[cell] = np.int16(np.float64(values[cell]) * factor)


@compiled
def add_second_moment(
    start: int, stop: int, indptr: Array, columns: Array, steps: Array, totals: Array
) -> None:
    """Add the products of every pair of different columns of a row to the upper triangle."""
    for row in range(start, stop):
        end = indptr[row + 1]
        for cell in range(indptr[row], end):
            here = np.int64(steps[cell])
            if here == 0:
                continue
            line = totals[columns[cell]]
            for other in range(cell + 1, end):
                line[columns[other]] += here * np.int64(steps[other])


@compiled
def add_products(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    steps: Array,
    vector: Array,
    unit: float,
    fine: float,
    totals: Array,
) -> None:
    """Add every row's second moment without its diagonal times the vector, in steps of 1 / `fine`."""
    step = 1.0 / unit
    for row in range(start, stop):
        along = 0.0
        for cell in range(indptr[row], indptr[row + 1]):
            along += np.float64(steps[cell]) * vector[columns[cell]]
        along *= step
        for cell in range(indptr[row], indptr[row + 1]):
            share = np.float64(steps[cell]) * step
            column = columns[cell]
            totals[column] += np.int64(share * (along - share * vector[column]) * fine)


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
