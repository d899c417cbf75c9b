"""Compile alternating ridge regression on matrices so small that a call costs more than its sums."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Array
from discreet.core.kernels import compiled
from discreet.solvers.als import ridge_rows


@compiled
def alternate(
    indptr: Array,
    columns: Array,
    linear: Array,
    weights: Array,
    turned_indptr: Array,
    turned_columns: Array,
    turned_linear: Array,
    turned_weights: Array,
    price: float,
    sweeps: int,
    left: Array,
    right: Array,
) -> None:
    """Solve for all rows, then for all columns, so many times; `left` and `right` are overwritten."""
    precision = price * np.eye(left.shape[1])
    prior = np.zeros((1, left.shape[1]))
    ones = np.ones(max(left.shape[0], right.shape[0]))
    offsets = np.zeros(ones.size)
    for _ in range(sweeps):
        ridge_rows(
            0,
            left.shape[0],
            indptr,
            columns,
            linear,
            weights,
            offsets,
            right,
            precision,
            ones,
            prior,
            left,
        )
        ridge_rows(
            0,
            right.shape[0],
            turned_indptr,
            turned_columns,
            turned_linear,
            turned_weights,
            offsets,
            left,
            precision,
            ones,
            prior,
            right,
        )
