"""The factor step that the mixture paper names: weighted principal components.

The paper solves equation (13) by a weighted PCA; by default `local-mixture` takes one ridge sweep of
alternating least squares instead. Directions are the leading eigenvectors of the weighted covariance of the
items, users' coordinates a weighted least-squares fit to them; nothing is centered, as the model is U V'.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import eigsh

from discreet.core.arrays import Floats
from discreet.core.rows import Rows
from discreet.solvers.als import solve_rows
from discreet.solvers.mixture import FactorStep

# So little that it only keeps the equations of a user solvable who has fewer ratings than there are factors.
_SOLVABLE = 1e-6
# Catalogs up to here are decomposed whole; beyond, a few vectors are found by iteration.
_SMALL = 200


def weighted_pca(factors: int) -> FactorStep:
    """Return the factor step that the paper names: eigenvectors, then users' coordinates."""

    def step(by_user: Rows, by_item: Rows, right: Floats) -> tuple[Floats, Floats]:
        directions = _directions(_covariance(by_user, by_item.n_rows), factors)
        return solve_rows(by_user, directions, ridge=_SOLVABLE), directions

    return step


def _covariance(rows: Rows, n_items: int) -> Floats:
    """Return for each two items the weighted mean product of the values of those who rated both."""
    assert rows.weights is not None
    shape = (rows.n_rows, n_items)
    weights = rows.weights.astype(np.float64)
    products = csr_matrix((weights * rows.values, rows.columns, rows.indptr), shape=shape)
    alone = csr_matrix((weights, rows.columns, rows.indptr), shape=shape)
    together = np.asarray((alone.T @ alone).todense())
    summed = np.asarray((products.T @ products).todense())
    covariance: Floats = np.divide(summed, together, out=np.zeros_like(summed), where=together > 0)
    return covariance


def _directions(covariance: Floats, factors: int) -> Floats:
    """Return the leading eigenvectors as columns."""
    if len(covariance) <= max(_SMALL, 2 * factors):
        return np.ascontiguousarray(np.linalg.eigh(covariance)[1][:, -factors:])
    start = np.ones(len(covariance))
    return np.ascontiguousarray(eigsh(covariance, k=factors, which="LA", v0=start)[1])
