"""Solve ridge problems for many rows at once, and factor implicit feedback by alternating least squares.

The cost is linear in the stored values, and the answer does not depend on the number of threads
(NUMBA_NUM_THREADS). In implicit feedback all entries count, also those without an interaction; one Gram
matrix shared by all rows represents them. Training takes a few conjugate-gradient steps a row from the
previous solution, which ranks as well as exact solves do; fold-in solves exactly.

References:
    Hu, Koren, Volinsky. Collaborative filtering for implicit feedback datasets. ICDM 2008.
    Takács, Pilászy, Tikk. Applications of the conjugate gradient method for implicit feedback collaborative
    filtering. RecSys 2011.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import (
    Array,
    Rows,
    experiment_generator,
    integer,
    non_negative,
    one_algebra_thread,
    positive_finite,
    require_fit,
    run_over_rows,
)
from discreet.core.kernels import compiled, dot, inner, sum_features
from discreet.solvers.errors import NegativeWeights, NoFiniteAnswer, NotTransposed

# Typical norm of a starting vector: small, so that the data dominate the first sweep.
_START = 0.1


def solve_rows(
    rows: Rows,
    features: Array,
    *,
    ridge: float | Array,
    scales: Array | None = None,
    prior_mean: Array | None = None,
    offsets: Array | None = None,
    finite: bool = True,
) -> Array:
    """Return for every row the `x` that minimizes a weighted squared error plus a ridge around a prior mean.

    The error is `sum w (value - offset - feature . x)^2`, the ridge `scale (x - m)' R (x - m)`. Rows without
    values get the prior mean. Works in the type of `features`, float32 or float64.

    Parameters
        ridge: R as a number, a diagonal or a positive definite matrix.
        scales: one factor a row on the ridge; 1 if not given.
        prior_mean: m, one vector for all rows or one for each; zero if not given.
        offsets: the own effect of each column; zero if not given.
        finite: whether every row must have a finite answer; otherwise, some have numbers that aren't finite.

    Raises:
        DataError: A row has no finite answer.
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
        ridge_rows,
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
    if finite and not np.isfinite(out).all():
        raise NoFiniteAnswer()
    return out


def starting_factors(n_items: int, factors: int, seed: int, dtype: np.dtype[Any]) -> Array:
    """Return small random item vectors: enough to break the symmetry between factors."""
    generator = experiment_generator(seed, "als")
    start: Array = generator.standard_normal((n_items, factors)) * (_START / max(factors, 1) ** 0.5)
    return start.astype(dtype)


def require_twins(by_user: Rows, by_item: Rows) -> None:
    """Raise for two matrices that cannot be each other's transpose."""
    require_fit(by_user, by_item.n_rows)
    require_fit(by_item, by_user.n_rows)
    counts = np.bincount(by_user.columns, minlength=by_item.n_rows)
    if np.any(counts != np.diff(by_item.indptr)) or (by_user.weights is None) != (by_item.weights is None):
        raise NotTransposed()


# Entries whose features are copied to a block before their Gram matrix is summed: 64 factors of that many
# float32 numbers stay in the first-level cache.
_BLOCK = 96
# The vector width that blocks are padded to, and the tile of the Gram matrix summed at once.
_LANES = 8
_TILE = 4
# Squared residual below which conjugate gradients stop.
_SOLVED = 1e-20


@inner
def _begin(normal: Array, right: Array, scale: float, precision: Array, prior: Array) -> None:
    """Start the normal equations of a row with its prior; padded unknowns are fixed at zero."""
    for a in range(right.size):
        for b in range(a):
            normal[a, b] = 0
        normal[a, a] = 1
        right[a] = 0
    for a in range(prior.size):
        for b in range(a + 1):
            normal[a, b] = scale * precision[a, b]
        right[a] = scale * prior[a]


@inner
def _fill_block(
    block: Array, right: Array, columns: Array, linear: Array, weights: Array, offsets: Array, features: Array
) -> int:
    """Copy weighted features to a block, add their linear terms to `right`, return the padded width."""
    for j in range(columns.size):
        feature = features[columns[j]]
        weight = linear.dtype.type(weights[j] if weights.size else 1)
        slope = linear[j] - weight * offsets[columns[j]]
        root = np.sqrt(weight)
        for a in range(feature.size):
            right[a] += slope * feature[a]
            block[a, j] = root * feature[a]
    width = (columns.size + _LANES - 1) // _LANES * _LANES
    for a in range(block.shape[0]):
        for j in range(columns.size, width):
            block[a, j] = 0
    return width


@inner
def _add_gram(normal: Array, block: Array, width: int) -> None:
    """Add the Gram matrix of the first `width` columns to the lower triangle of `normal`, in tiles."""
    for a in range(0, block.shape[0], _TILE):
        x0, x1, x2, x3 = block[a], block[a + 1], block[a + 2], block[a + 3]
        for b in range(a, block.shape[0], 2):
            y0, y1 = block[b], block[b + 1]
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = block.dtype.type(0)
            for j in range(width):
                s00 += x0[j] * y0[j]
                s01 += x1[j] * y0[j]
                s02 += x2[j] * y0[j]
                s03 += x3[j] * y0[j]
                s10 += x0[j] * y1[j]
                s11 += x1[j] * y1[j]
                s12 += x2[j] * y1[j]
                s13 += x3[j] * y1[j]
            low, high = normal[b, a : a + _TILE], normal[b + 1, a : a + _TILE]
            low[0] += s00
            low[1] += s01
            low[2] += s02
            low[3] += s03
            high[0] += s10
            high[1] += s11
            high[2] += s12
            high[3] += s13


@inner
def _solve_in_place(normal: Array, right: Array) -> None:
    """Solve by Cholesky from the lower triangle; `normal` is overwritten, `right` becomes the answer."""
    for i in range(right.size):
        row = normal[i]
        for j in range(i):
            above = normal[j]
            entry = row[j]
            for k in range(j):
                entry -= row[k] * above[k]
            row[j] = entry * above[j]  # the diagonal has inverse pivots
        pivot, known = row[i], right[i]
        for k in range(i):
            pivot -= row[k] * row[k]
            known -= row[k] * right[k]
        row[i] = row.dtype.type(1) / np.sqrt(pivot)
        right[i] = known * row[i]
    for i in range(right.size - 1, -1, -1):
        row = normal[i]
        right[i] *= row[i]
        for k in range(i):
            right[k] -= right[i] * row[k]


@compiled
def ridge_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    linear: Array,
    weights: Array,
    offsets: Array,
    features: Array,
    precision: Array,
    scales: Array,
    prior: Array,
    out: Array,
) -> None:
    """Solve `(scale P + sum w f f') x = scale prior + sum (linear - w offset) f` for non-empty rows.

    Empty `weights` stand for ones; `prior` has one row for all or one for each. Empty rows are left as they
    are.
    """
    size = features.shape[1]
    padded = (size + _TILE - 1) // _TILE * _TILE
    block = np.zeros((padded, _BLOCK), features.dtype)
    normal = np.empty((padded, padded), features.dtype)
    right = np.empty(padded, features.dtype)
    for row in range(start, stop):
        if indptr[row] == indptr[row + 1]:
            continue
        _begin(normal, right, scales[row], precision, prior[row if prior.shape[0] > 1 else 0])
        for first in range(indptr[row], indptr[row + 1], _BLOCK):
            part = slice(first, min(first + _BLOCK, indptr[row + 1]))
            width = _fill_block(block, right, columns[part], linear[part], weights[part], offsets, features)
            _add_gram(normal, block, width)
        _solve_in_place(normal, right)
        for a in range(size):
            out[row, a] = right[a]


@inner
def _times_gram(gram: Array, ridge: float, vector: Array, out: Array) -> None:
    """Set `out` to `(gram + ridge I) @ vector` for a symmetric `gram`, four rows at a time."""
    whole = vector.size - vector.size % 4
    for b in range(vector.size):
        out[b] = ridge * vector[b]
    for a in range(0, whole, 4):
        v0, v1, v2, v3 = vector[a], vector[a + 1], vector[a + 2], vector[a + 3]
        for b in range(vector.size):
            out[b] += v0 * gram[a, b] + v1 * gram[a + 1, b] + v2 * gram[a + 2, b] + v3 * gram[a + 3, b]
    for a in range(whole, vector.size):
        for b in range(vector.size):
            out[b] += vector[a] * gram[a, b]


@inner
def _add_entries(features: Array, columns: Array, weights: Array, vector: Array, out: Array) -> None:
    """Add `sum w f (f . vector)` over the entries of one row to `out`, four at a time."""
    whole = columns.size - columns.size % 4
    for j in range(0, whole, 4):
        f0, f1 = features[columns[j]], features[columns[j + 1]]
        f2, f3 = features[columns[j + 2]], features[columns[j + 3]]
        s0 = s1 = s2 = s3 = vector.dtype.type(0)
        for a in range(vector.size):
            s0 += f0[a] * vector[a]
            s1 += f1[a] * vector[a]
            s2 += f2[a] * vector[a]
            s3 += f3[a] * vector[a]
        s0 *= weights[j]
        s1 *= weights[j + 1]
        s2 *= weights[j + 2]
        s3 *= weights[j + 3]
        for a in range(vector.size):
            out[a] += s0 * f0[a] + s1 * f1[a] + s2 * f2[a] + s3 * f3[a]
    for j in range(whole, columns.size):
        feature = features[columns[j]]
        s0 = vector.dtype.type(0)
        for a in range(vector.size):
            s0 += feature[a] * vector[a]
        s0 *= weights[j]
        for a in range(vector.size):
            out[a] += s0 * feature[a]


@compiled
def conjugate_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    linear: Array,
    weights: Array,
    features: Array,
    gram: Array,
    ridges: Array,
    steps: int,
    out: Array,
) -> None:
    """Move each row of `out` towards the solution of `(gram + ridge I + sum w f f') x = sum linear f`.

    Takes `steps` conjugate-gradient steps from the present `out`; empty rows become zero.
    """
    size = features.shape[1]
    residual = np.empty(size, features.dtype)
    direction = np.empty(size, features.dtype)
    image = np.empty(size, features.dtype)
    for row in range(start, stop):
        answer, ridge = out[row], ridges[row]
        entries = slice(indptr[row], indptr[row + 1])
        items, own = columns[entries], weights[entries]
        if items.size == 0:
            for a in range(size):
                answer[a] = 0
            continue
        _times_gram(gram, ridge, answer, image)
        _add_entries(features, items, own, answer, image)
        sum_features(features, items, linear[entries], residual)
        for a in range(size):
            residual[a] -= image[a]
            direction[a] = residual[a]
        error = dot(residual, residual)
        for _ in range(steps):
            if error < _SOLVED:
                break
            _times_gram(gram, ridge, direction, image)
            _add_entries(features, items, own, direction, image)
            length = error / dot(direction, image)
            for a in range(size):
                answer[a] += length * direction[a]
                residual[a] -= length * image[a]
            previous, error = error, dot(residual, residual)
            for a in range(size):
                direction[a] = residual[a] + error / previous * direction[a]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """Confidence of an interaction, `1 + alpha * value`. An entry without an interaction has 1.

    The loss is the confidence times the squared distance to 1 (to 0 without an interaction), plus
    `regularization` times the squared norm of every vector.
    """

    alpha: float = 1.0
    regularization: float = 1.0

    def __post_init__(self) -> None:
        non_negative("alpha", self.alpha)
        positive_finite("regularization", self.regularization)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitFactorization:
    """Scores `user factors . item factors` of users and items."""

    user_factors: Array
    item_factors: Array


def implicit_als(
    by_user: Rows,
    by_item: Rows,
    *,
    confidence: Confidence,
    factors: int = 64,
    iterations: int = 15,
    steps: int | None = 3,
    seed: int = 0,
    initial: ImplicitFactorization | None = None,
    dtype: npt.DTypeLike = np.float32,
) -> ImplicitFactorization:
    """Fit factors to interactions, given by user and, transposed, by item.

    `steps` conjugate-gradient steps update a row; `None` solves it exactly, and then the loss never rises.
    Only the items' starting factors are random. `initial` continues from an earlier fit.
    """
    factors = integer("factors", factors, least=1)
    require_twins(by_user, by_item)
    model = initial or ImplicitFactorization(
        user_factors=np.zeros((by_user.n_rows, factors), dtype),
        item_factors=starting_factors(by_item.n_rows, factors, seed, np.dtype(dtype)),
    )
    users, items = model.user_factors.copy(), model.item_factors.copy()
    sides = [(_weighted(by_user, confidence), items, users), (_weighted(by_item, confidence), users, items)]
    with one_algebra_thread():
        for _ in range(integer("iterations", iterations, least=0)):
            for interactions, features, out in sides:
                _update(interactions, features, confidence.regularization, steps, out)
    return ImplicitFactorization(user_factors=users, item_factors=items)


def fold_in_implicit(histories: Rows, item_factors: Array, confidence: Confidence) -> Array:
    """Return the vectors of many users at once, each exactly and from their own interactions only."""
    require_fit(histories, item_factors.shape[0])
    out = np.zeros((histories.n_rows, item_factors.shape[1]), item_factors.dtype)
    _update(_weighted(histories, confidence), item_factors, confidence.regularization, None, out)
    return out


def _weighted(interactions: Rows, confidence: Confidence) -> Rows:
    """Return each interaction's confidence as its value, and its excess over 1 as its weight."""
    extra = np.float32(confidence.alpha) * interactions.values
    weighted = interactions._replace(values=1 + extra, weights=extra)
    if extra.size and not extra.min() >= 0:
        raise NegativeWeights()
    return weighted


def _update(rows: Rows, features: Array, regularization: float, steps: int | None, out: Array) -> None:
    """Move `out` to, or towards, the best vectors for fixed `features`; empty rows become zero."""
    dtype = features.dtype
    gram, linear = features.T @ features, rows.values.astype(dtype, copy=False)
    if steps is not None:
        ridges = np.full(rows.n_rows, regularization, dtype)
        shared = (linear, rows.weights, features, gram, ridges, integer("steps", steps, least=1))
        run_over_rows(conjugate_rows, rows, *shared, out)
        return
    out[:] = 0
    no_offsets, no_prior = np.zeros(len(features), dtype), np.zeros((1, gram.shape[0]), dtype)
    precision = gram + regularization * np.eye(gram.shape[0], dtype=dtype)
    shared_exact = (features, precision, np.ones(rows.n_rows, dtype), no_prior)
    run_over_rows(ridge_rows, rows, linear, rows.weights, no_offsets, *shared_exact, out)
