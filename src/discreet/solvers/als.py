"""Solve ridge problems for many rows at once: one half of an iteration of alternating least squares.

The cost is linear in the stored values, and the answer does not depend on the number of threads
(NUMBA_NUM_THREADS).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.checks import DataError, ParameterError
from discreet.randomness import experiment_generator
from discreet.solvers.kernels import als as als_kernels
from discreet.solvers.rows import Array, Rows, require_fit, run_over_rows

# Typical length of a starting vector: small, so that the first answers come from the data.
_START = 0.1


def solve_rows(
    rows: Rows,
    features: Array,
    *,
    ridge: float | Array,
    scales: Array | None = None,
    prior_mean: Array | None = None,
    offsets: Array | None = None,
) -> Array:
    """Return for every row the `x` that minimizes a weighted squared error plus a ridge around a prior mean.

    Raises:
        DataError: A row has no finite answer.
    """
    out = ridge_solutions(rows, features, ridge=ridge, scales=scales, prior_mean=prior_mean, offsets=offsets)
    if not np.isfinite(out).all():
        raise DataError("A row has no finite answer: the values are not finite or the ridge is too weak.")
    return out


def ridge_solutions(
    rows: Rows,
    features: Array,
    *,
    ridge: float | Array,
    scales: Array | None = None,
    prior_mean: Array | None = None,
    offsets: Array | None = None,
) -> Array:
    """Return the same without looking at it: a row without a finite answer holds numbers that are not finite.

    The error is `sum w (value - offset - feature . x)^2`, the ridge `scale (x - m)' R (x - m)`. Rows without
    values get the prior mean. Works in the type of `features`, float32 or float64.

    Parameters
        ridge: R as a number, a diagonal or a positive definite matrix.
        scales: one factor a row on the ridge; 1 if not given.
        prior_mean: m, one vector for all rows or one for each; zero if not given.
        offsets: what each column contributes by itself; zero if not given.
    """
    require_fit(rows, features.shape[0])
    size, dtype = features.shape[1], features.dtype
    diagonal = np.asarray(ridge, dtype=dtype)
    precision = diagonal if diagonal.ndim == 2 else np.diag(np.broadcast_to(diagonal, size))
    mean = np.zeros(size, dtype) if prior_mean is None else np.asarray(prior_mean, dtype=dtype)
    out = np.broadcast_to(mean, (rows.n_rows, size)).copy()
    linear = rows.values.astype(dtype, copy=False)
    if rows.weights is not None:
        linear = linear * rows.weights
    run_over_rows(
        als_kernels.ridge_rows,
        rows,
        linear,
        np.empty(0, np.float32) if rows.weights is None else rows.weights,
        np.zeros(features.shape[0], dtype) if offsets is None else np.asarray(offsets, dtype=dtype),
        features,
        precision,
        np.ones(rows.n_rows, dtype) if scales is None else np.asarray(scales, dtype=dtype),
        np.atleast_2d(mean @ precision),
        out,
    )
    return out


def starting_factors(n_items: int, factors: int, seed: int, dtype: np.dtype[Any]) -> Array:
    """Return small random item vectors: enough to break the symmetry between factors."""
    generator = experiment_generator(seed, "als")
    start: Array = generator.standard_normal((n_items, factors)) * (_START / max(factors, 1) ** 0.5)
    return start.astype(dtype)


def require_twins(by_user: Rows, by_item: Rows) -> None:
    """Refuse two matrices that cannot be each other's transpose."""
    require_fit(by_user, by_item.n_rows)
    require_fit(by_item, by_user.n_rows)
    counts = np.bincount(by_user.columns, minlength=by_item.n_rows)
    if np.any(counts != np.diff(by_item.indptr)) or (by_user.weights is None) != (by_item.weights is None):
        raise ParameterError("by_item is not the transpose of by_user; build both from the same ratings.")
