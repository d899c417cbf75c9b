"""Factor ratings by alternating least squares with biases; solve ridge problems for many rows at once.

Each half of an iteration solves one small ridge problem for every row while the other side stands still; its
cost is linear in the stored values. The answer does not depend on the number of threads (NUMBA_NUM_THREADS).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.checks import DataError, ParameterError, integer, non_negative, positive_finite
from discreet.randomness import experiment_generator
from discreet.solvers.kernels import als as als_kernels
from discreet.solvers.rows import Array, Rows, predict_cells, require_fit, residuals, run_over_rows

# Typical length of a starting vector: small, so that the first answers come from the data.
_START = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Factorization:
    """Predict `mean + user bias + item bias + user factors . item factors`."""

    mean: float
    user_biases: Array
    item_biases: Array
    user_factors: Array
    item_factors: Array

    def predict(self, users: Array, items: Array) -> Array:
        """Return the prediction at every pair of user and item."""
        scores = predict_cells(self.user_factors, self.item_factors, users, items)
        scores += self.user_biases[users] + self.item_biases[items] + scores.dtype.type(self.mean)
        return scores

    def residuals(self, by_user: Rows) -> Array:
        """Return what the model leaves of every rating, in the order of `by_user`."""
        offsets = self.user_biases + self.user_biases.dtype.type(self.mean)
        return residuals(by_user, self.user_factors, self.item_factors, offsets, self.item_biases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge:
    """Say how strongly rows are pulled to zero.

    A row pays `total weight ** count_power * (factors * |vector|^2 + biases * bias^2)`: at 0 every row pays
    the same, at 1 once for each of its values. The defaults suit ratings from 1 to 5; on a scale c times as
    wide, c times `factors` with the same `biases` give the same model in that scale.
    """

    factors: float = 1.2
    biases: float = 0.2
    count_power: float = 0.5

    def __post_init__(self) -> None:
        positive_finite("factors", self.factors)
        positive_finite("biases", self.biases)
        non_negative("count_power", self.count_power)


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
    if not np.isfinite(out).all():
        raise DataError("A row has no finite answer: the values are not finite or the ridge is too weak.")
    return out


def fold_in_explicit(
    histories: Rows, item_factors: Array, item_biases: Array, mean: float, ridge: Ridge
) -> tuple[Array, Array]:
    """Return biases and factors of many people at once, each from their own ratings only."""
    features = np.column_stack((item_factors, np.ones(len(item_factors), item_factors.dtype)))
    strength = np.append(np.full(item_factors.shape[1], ridge.factors), ridge.biases)
    solved = solve_rows(
        histories,
        features,
        ridge=strength,
        scales=histories.row_weights() ** ridge.count_power,
        offsets=item_biases + item_biases.dtype.type(mean),
    )
    return solved[:, -1].copy(), solved[:, :-1].copy()


def explicit_als(
    by_user: Rows,
    by_item: Rows,
    *,
    ridge: Ridge,
    factors: int = 64,
    iterations: int = 15,
    seed: int = 0,
    initial: Factorization | None = None,
    dtype: npt.DTypeLike = np.float32,
) -> Factorization:
    """Fit biases and factors to ratings, by user and, the same ones, by item.

    Every half-iteration minimizes the penalized squared error exactly over one side, so that it never rises.
    Only the items' starting factors are random. `initial` continues from an earlier answer.
    """
    factors = integer("factors", factors, least=0)
    require_twins(by_user, by_item)
    model = initial or _cold_start(by_user, by_item, factors, seed, np.dtype(dtype))
    mean, item_biases, item_factors = model.mean, model.item_biases, model.item_factors
    user_biases, user_factors = model.user_biases, model.user_factors
    for _ in range(integer("iterations", iterations, least=0)):
        user_biases, user_factors = fold_in_explicit(by_user, item_factors, item_biases, mean, ridge)
        item_biases, item_factors = fold_in_explicit(by_item, user_factors, user_biases, mean, ridge)
    return Factorization(
        mean=mean,
        user_biases=user_biases,
        item_biases=item_biases,
        user_factors=user_factors,
        item_factors=item_factors,
    )


def _cold_start(by_user: Rows, by_item: Rows, factors: int, seed: int, dtype: np.dtype[Any]) -> Factorization:
    if not by_user.row_weights().any():
        raise DataError("There are no ratings to learn from.")
    return Factorization(
        mean=_mean(by_user),
        user_biases=np.zeros(by_user.n_rows, dtype),
        item_biases=np.zeros(by_item.n_rows, dtype),
        user_factors=np.zeros((by_user.n_rows, factors), dtype),
        item_factors=starting_factors(by_item.n_rows, factors, seed, dtype),
    )


def _mean(rows: Rows) -> float:
    if rows.weights is None:
        return float(rows.values.mean(dtype=np.float64))
    total = rows.weights.sum(dtype=np.float64)
    return float(np.einsum("i,i->", rows.values, rows.weights, dtype=np.float64) / total)


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
