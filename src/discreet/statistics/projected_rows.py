"""Take projected-gradient steps for matrix completion, where the server sees only second moments.

Each row of the matrix stays with its owner. It moves by its own error on its own entries, and is then
multiplied by a small public map. The map comes from the second moment of all rows: it projects the singular
values of the whole matrix onto a nuclear-norm ball without access to the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.rows import Rows, residuals, run_over_rows
from discreet.solvers.low_rank.matrix import Projection
from discreet.statistics import scaled_rows as row_kernels
from discreet.statistics.fixed_point import ROOT_STEPS, ROUNDING

_ENTRIES_PER_BLOCK = 1 << 22


class LocalSteps(NamedTuple):
    """The state of every row: coordinates on a basis, and residuals on its own entries."""

    basis: Floats
    places: Floats
    left_over: Floats


def begin(rows: Rows, n_columns: int) -> LocalSteps:
    """Start every row at zero."""
    return LocalSteps(np.zeros((n_columns, 0)), np.zeros((rows.n_rows, 0)), rows.values.astype(np.float64))


def advance(rows: Rows, state: LocalSteps, projection: Projection) -> LocalSteps:
    """Move every row by its own error, with step size 1, then apply the map; rows stay independent."""
    basis = np.ascontiguousarray(projection.basis)
    coordinates = np.empty((rows.n_rows, basis.shape[1]))
    turn = state.basis.T @ basis
    arguments = (state.left_over, state.places, turn, basis, projection.kept, coordinates)
    run_over_rows(row_kernels.advance_rows, rows, *arguments)
    left_over = residuals(rows, coordinates, basis, np.zeros(rows.n_rows), np.zeros(len(basis)))
    return LocalSteps(basis, coordinates, left_over)


def bounded_moment(rows: Rows, state: LocalSteps, row_bound: float) -> Floats:
    """Return the exact second moment of the moved rows over `row_bound`, each clipped to norm 1.

    Products are whole fixed-point units, and sums over fewer than 2^27 rows stay below 2^53: they are exact
    in double precision, in any order of addition.
    """
    n_columns = len(state.basis)
    total = np.zeros((n_columns, n_columns))
    block = max(1, _ENTRIES_PER_BLOCK // n_columns)
    moved = np.empty((min(block, rows.n_rows), n_columns))
    for start in range(0, rows.n_rows, block):
        stop = min(start + block, rows.n_rows)
        # Row by row: a matrix product over a block could round a row differently depending on other rows.
        row_kernels.fill_moved_rows(
            start,
            stop,
            rows.indptr,
            rows.columns,
            state.left_over,
            state.places,
            state.basis,
            row_bound,
            ROOT_STEPS * ROUNDING,
            moved,
        )
        total += moved[: stop - start].T @ moved[: stop - start]
    return total / ROOT_STEPS**2
