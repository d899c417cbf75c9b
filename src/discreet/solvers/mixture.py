"""Factor numbers whose noise is unknown: zero-mean Gaussians of several widths, by expectation-maximization.

Each iteration asks how likely each Gaussian made each residual (E), then refits shares and widths and, with
the new widths, the factors by one sweep of weighted alternating least squares (M). Each part of M raises the
same lower bound, so the penalized log-likelihood never falls. A Gaussian that explains nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Rows, residuals, run_over_rows
from discreet.core.checks import integer, positive_finite
from discreet.core.exports import Later
from discreet.core.randomness import experiment_generator
from discreet.solvers.als import require_twins, solve_rows

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
