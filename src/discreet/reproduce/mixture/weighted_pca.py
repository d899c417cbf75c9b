"""The paper's own fit: a mixture of Gaussians whose factors come from weighted principal components.

The paper hands equation (13) to a weighted PCA; `local-mixture` hands it to one ridge sweep of alternating
least squares instead. Both are run. Directions are the leading eigenvectors of the weighted covariance of the
items, people's coordinates a weighted least-squares fit to them; nothing is centered, as the model is U V'.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import eigsh

from discreet.collect.estimate import collect_from
from discreet.core.arrays import Floats
from discreet.core.randomness import PrivacyRandom
from discreet.core.rows import Rows
from discreet.data.splits import Split
from discreet.papers.mixture.mixture import LocalMixture
from discreet.solvers.als import solve_rows
from discreet.solvers.mixture import FactorStep, fit_mixture

# So little that it only keeps a person's equations solvable who has fewer ratings than there are factors.
_SOLVABLE = 1e-6
# Catalogs up to here are decomposed whole; beyond, a few vectors are found by iteration.
_SMALL = 200


def weighted_pca(factors: int) -> FactorStep:
    """Return the factor step that the paper names: eigenvectors, then people's coordinates."""

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


def pca_error(split: Split, epsilon: float, seed: int, factors: int) -> float:
    """Return the error of the paper's fit on held-out ratings; the reports are those of local-mixture."""
    settings = LocalMixture(epsilon=epsilon, factors=factors)
    collected = collect_from(split.train, settings.mechanism(split.train.facts), PrivacyRandom.simulate(seed))
    reports, turned = collected.reports, collected.reports.by_item
    low, width = collected.mechanism.low, collected.width
    values = ((reports.values - low) / width).astype(np.float32)
    fit = fit_mixture(
        Rows(reports.indptr, reports.items, values),
        Rows(turned.indptr, turned.users, values[turned.order]),
        turned.order,
        factors=factors,
        components=settings.components,
        iterations=settings.iterations,
        step=weighted_pca(factors),
    )
    cells = split.test.rows(), split.test.items
    guess = np.sum(fit.user_factors[cells[0]] * fit.item_factors[cells[1]], axis=1)
    wrong = np.clip(low + width * guess, low, low + width) - split.test.values
    return float(np.sqrt(np.mean(wrong**2)))
