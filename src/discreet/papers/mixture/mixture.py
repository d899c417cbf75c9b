"""Factor perturbed reports with a mixture of Gaussians as noise model, as in its paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import eigsh

from discreet.collect.estimate import Collected
from discreet.core.arrays import Floats, Rows
from discreet.core.checks import integer, one_of, positive_finite
from discreet.core.progress import Progress
from discreet.models.local import LocalEstimator, check_local
from discreet.models.scorers.local import factor_scorer
from discreet.models.scorers.scorer import Scorer
from discreet.solvers.als import solve_rows
from discreet.solvers.mixture import FactorStep, fit_mixture

Solver = Literal["als", "weighted-pca"]
# So little that it only keeps the equations of a user solvable who has fewer ratings than there are factors.
_SOLVABLE = 1e-6
# Catalogs up to here are decomposed whole; beyond, a few vectors are found by iteration.
_SMALL = 200


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMixture(LocalEstimator):
    """Perturb each rating on its own device, then factor the reports with a mixture of Gaussians as noise.

    The Gaussians have mean zero although bounded noise moves reports to the middle of the scale, and the fit
    has no biases: both are as printed. local-channel corrects both. Each step fits factors by one sweep of
    ridge-regularized alternating least squares, where the paper has a weighted PCA; at rank 1 the two agree.

    Guarantee
        Pure `epsilon` for the value of one rating against anyone, the collector included; which items were
        rated is public (proofs/local_collection.md). n ratings of one user cost n times epsilon.

    Noise
        A rating r becomes a report with density proportional to exp(-|report - r| / b) on the scale itself; b
        is the smallest for which no two ratings differ by more than e^epsilon (proofs/bounded_laplace.md).

    Parameters:
        epsilon: The loss of one rating.
        factors: The rank; the paper does not print its own. One factor was best on validation data.
        components: The number of Gaussians at the start.
        regularization: Precision of the factors' prior; the paper has none, so it is small.
        iterations: The most steps of expectation-maximization.
        solver: The factor step: `als`, one sweep of alternating least squares, or `weighted-pca` as printed.
        ratings_per_user: A public number of ratings for which the label spells out the guarantee for a user.

    References:
        Neera, Chen, Aslam and Shu, Local Differentially Private Matrix Factorization with MoG for
        Recommendations (2020).

    Example:
        >>> from discreet import LocalMixture, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = LocalMixture(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('value', 'proofs/local_collection.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "local-mixture"
    source: ClassVar[str] = "Neera et al. 2020"

    epsilon: float
    factors: int = 1
    components: int = 3
    regularization: float = 0.1
    iterations: int = 30
    ratings_per_user: int | None = None
    seed: int = 0
    solver: Solver = "als"

    def __post_init__(self) -> None:
        check_local(self)
        one_of("solver", self.solver, ("als", "weighted-pca"))
        integer("factors", self.factors, least=1)
        integer("components", self.components, least=1)
        integer("iterations", self.iterations, least=1)
        positive_finite("regularization", self.regularization)

    def _learn(self, collected: Collected, progress: Progress) -> Scorer:
        reports, turned = collected.reports, collected.reports.by_item
        low, width = collected.mechanism.low, collected.width
        values = ((reports.values - low) / width).astype(np.float32)
        fit = fit_mixture(
            Rows(reports.indptr, reports.items, values),
            Rows(turned.indptr, turned.users, values[turned.order]),
            turned.order,
            factors=self.factors,
            components=self.components,
            regularization=self.regularization,
            iterations=self.iterations,
            seed=self.seed,
            step=weighted_pca(self.factors) if self.solver == "weighted-pca" else None,
        )
        progress(self.name, 1, 1)
        ridge = width**2 * self.regularization * float(fit.mixture.shares @ fit.mixture.variances)
        return factor_scorer(collected, fit.user_factors, fit.item_factors, ridge, origin=low, unit=width)


def weighted_pca(factors: int) -> FactorStep:
    """Return the factor step that the paper names for its equation (13): a weighted PCA.

    Directions are the leading eigenvectors of the weighted covariance of the items, users' coordinates a
    weighted least-squares fit to them; nothing is centered, as the model is U V'.
    """

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
