"""Factor implicit feedback by alternating least squares with confidence weights.

All entries count, also those without an interaction; one Gram matrix shared by all rows represents them, so
an iteration stays linear in the interactions. Training takes a few conjugate-gradient steps a row from the
previous solution, which ranks as well as exact solves do; fold-in solves exactly.

References:
    Hu, Koren, Volinsky. Collaborative filtering for implicit feedback datasets. ICDM 2008.
    Takács, Pilászy, Tikk. Applications of the conjugate gradient method for implicit feedback collaborative
    filtering. RecSys 2011.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array
from discreet.core.checks import integer, non_negative, positive_finite
from discreet.core.rows import Rows, one_algebra_thread, require_fit, run_over_rows
from discreet.solvers import als as als_kernels
from discreet.solvers.als import require_twins, starting_factors
from discreet.solvers.errors import NegativeWeights


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
        run_over_rows(als_kernels.conjugate_rows, rows, *shared, out)
        return
    out[:] = 0
    no_offsets, no_prior = np.zeros(len(features), dtype), np.zeros((1, gram.shape[0]), dtype)
    precision = gram + regularization * np.eye(gram.shape[0], dtype=dtype)
    shared_exact = (features, precision, np.ones(rows.n_rows, dtype), no_prior)
    run_over_rows(als_kernels.ridge_rows, rows, linear, rows.weights, no_offsets, *shared_exact, out)
