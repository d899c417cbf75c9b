"""Factor perturbed reports with a mixture of Gaussians as noise model, as in its paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import eigsh

from discreet.collect.estimate import Collected
from discreet.core import (
    Floats,
    Progress,
    Rows,
    experiment_generator,
    integer,
    one_of,
    positive_finite,
    residuals,
    run_over_rows,
)
from discreet.core.exports import Later
from discreet.models import LocalEstimator, Scorer, check_local, factor_scorer
from discreet.solvers import REPEATABLE, require_twins, solve_rows

if TYPE_CHECKING:
    from discreet.solvers import report_kernels
else:
    report_kernels = Later("discreet.solvers.report_kernels")


# A Gaussian that explains fewer entries than this is dropped.
_LEAST_COUNT = 1e-6
# Widths stay above this part of the largest: a Gaussian must not collapse onto a single entry.
_LEAST_WIDTH = 1e-3
_CONVERGED = 1e-4

#: Fit factors to weighted entries, given by user, by item, and with the item factors so far.
FactorStep = Callable[[Rows, Rows, Floats], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """The Gaussians: each one's share of the entries and its variance."""

    shares: Floats
    variances: Floats

    def log_heights(self) -> Floats:
        """Return each Gaussian's log-density at 0, its share included."""
        return np.asarray(np.log(self.shares) - 0.5 * np.log(2 * np.pi * self.variances))


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureFit:
    """Predictions `user factors . item factors`.

    `objective` has every iteration's penalized log-likelihood.
    """

    user_factors: Floats
    item_factors: Floats
    mixture: Mixture
    objective: tuple[float, ...] = field(default=())
    converged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The result of the E-step: each entry's component probabilities, and their sums."""

    likely: npt.NDArray[np.float32]
    log_likelihood: float
    counts: Floats
    squares: Floats


def expect(rows: Rows, left: Floats, right: Floats, mixture: Mixture) -> Expectation:
    """Return how likely each Gaussian made each residual, summed as the M-step needs it."""
    nothing = np.zeros(left.shape[0]), np.zeros(right.shape[0])
    errors = residuals(rows, left, right, *nothing)
    size = mixture.shares.size
    likely = np.empty((errors.size, size), dtype=np.float32)
    sums = np.empty((rows.n_rows, 1 + 2 * size))
    run_over_rows(
        report_kernels.mixture_rows,
        rows,
        errors,
        mixture.log_heights(),
        1 / mixture.variances,
        (likely, sums),
    )
    totals = sums.sum(axis=0)
    return Expectation(
        likely=likely,
        log_likelihood=float(totals[0]),
        counts=totals[1 : 1 + size],
        squares=totals[1 + size :],
    )


def fit_mixture(
    by_user: Rows,
    by_item: Rows,
    order: npt.NDArray[np.int64],
    *,
    factors: int,
    components: int = 3,
    regularization: float = 1.0,
    iterations: int = 30,
    seed: int = 0,
    initial: MixtureFit | None = None,
    step: FactorStep | None = None,
) -> MixtureFit:
    """Fit factors and noise to numbers given by user and, transposed, by item.

    Parameters
        order: position in `by_user` of every entry of `by_item`.
        regularization: precision of the normal prior on every factor; half of it is the price of a square.
        initial: continue from an earlier fit instead of a random start.
        step: how factors are fitted to weighted entries; one sweep of alternating least squares if not given.
    """
    require_twins(by_user, by_item)
    ridge = positive_finite("regularization", regularization)
    fit_factors = step or _sweep(ridge)
    fit = initial or _cold_start(by_user, by_item, factors, components, seed)
    left, right, mixture = fit.user_factors, fit.item_factors, fit.mixture
    objective = list(fit.objective)
    converged = False
    for _ in range(integer("iterations", iterations, least=0)):
        expected = expect(by_user, left, right, mixture)
        objective.append(expected.log_likelihood - 0.5 * ridge * float((left**2).sum() + (right**2).sum()))
        mixture, weights = _update(mixture, expected)
        before = left
        weighted = by_user._replace(weights=weights), by_item._replace(weights=weights[order])
        left, right = fit_factors(*weighted, right)
        converged = float(np.abs(left - before).max()) < _CONVERGED
        if converged:
            break
    return MixtureFit(
        user_factors=left,
        item_factors=right,
        mixture=mixture,
        objective=tuple(objective),
        converged=converged,
    )


def _sweep(ridge: float) -> FactorStep:
    """Return one sweep of weighted alternating least squares: users by the items so far, then items."""

    def sweep(by_user: Rows, by_item: Rows, right: Floats) -> tuple[Floats, Floats]:
        left = solve_rows(by_user, right, ridge=ridge)
        return left, solve_rows(by_item, left, ridge=ridge)

    return sweep


def _update(mixture: Mixture, expected: Expectation) -> tuple[Mixture, npt.NDArray[np.float32]]:
    """Return shares and variances without empty Gaussians, and the precision of every entry."""
    kept = expected.counts >= _LEAST_COUNT
    shares = expected.counts[kept] / expected.counts[kept].sum()
    least = _LEAST_WIDTH**2 * mixture.variances.max()
    variances = np.maximum(expected.squares[kept] / expected.counts[kept], least)
    precisions = expected.likely[:, kept] @ (1 / variances).astype(np.float32)
    return Mixture(shares=shares, variances=variances), precisions


def _cold_start(by_user: Rows, by_item: Rows, factors: int, components: int, seed: int) -> MixtureFit:
    integer("factors", factors, least=1)
    integer("components", components, least=1)
    generator = experiment_generator(seed, "mixture")
    typical = np.sqrt(max(float(np.mean(np.abs(by_user.values), dtype=np.float64)), 1e-6) / factors)
    left, right = (
        typical * (1 + 0.1 * generator.standard_normal((n_rows, factors)))
        for n_rows in (by_user.n_rows, by_item.n_rows)
    )
    variance = max(float(np.var(by_user.values, dtype=np.float64)), 1e-12)
    widths: Floats = np.exp2(2.0 * np.arange(components) - (components - 1)) * variance
    mixture = Mixture(shares=np.full(components, 1 / components), variances=widths)
    return MixtureFit(user_factors=left, item_factors=right, mixture=mixture)


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
    return np.ascontiguousarray(eigsh(covariance, k=factors, which="LA", v0=start, **REPEATABLE)[1])
