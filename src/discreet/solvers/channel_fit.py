"""Fit biases and factors to reports by the likelihood of the channel that made them.

Ratings are in units in which their scale is [0, 1]. A rating spreads around its expectation, and the channel
gives the probability of each report for each rating. So every report has a score, the slope of its
log-likelihood in the expected rating, and every expected rating has a Fisher information, that of one report.

Rows are moved by Fisher scoring, with a normal prior whose spread is learned from the reports. Where reports
carry no information, the prior remains and factors vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Rows, Singles, experiment_generator, integer, require_fit, run
from discreet.core.exports import Later
from discreet.solvers.errors import NothingToLearn

if TYPE_CHECKING:
    from discreet.solvers import report_kernels
else:
    report_kernels = Later("discreet.solvers.report_kernels")

# Everything below is in units in which the scale of ratings is [0, 1].
_OFFSET = 0.5
# Prior standard deviations: of the overall mean around the middle, and of the effect of a public feature.
_MEAN_SPREAD, _FEATURE_SPREAD = 0.125, 0.05
_START_SPREAD = 0.1
_LEAST_SPREAD = 1e-3
_START_FACTORS = 0.3
# A factor that moves predictions by less than this (standard deviation) is dropped.
_LEAST_FACTOR = 2e-3
# Passes before factors join: they explain the residuals of the biases.
_BIAS_ITERATIONS = 6


class Reports(NamedTuple):
    """The codes of reports by row: `columns` is the other side, `codes` the index of the output."""

    indptr: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    codes: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side's posterior: E[x x'] of every row, and the prior that was learned for it.

    A vector is (own bias, 1, factors) for users and (1, own bias, factors) for items.
    """

    second: Floats
    bias: int
    features: Floats
    theta: Floats
    spreads: Floats

    @classmethod
    def start(cls, n_rows: int, bias: int, features: Floats) -> Self:
        """Start without bias and factors."""
        second = np.zeros((n_rows, 2, 2))
        second[:, 1 - bias, 1 - bias] = 1.0
        spreads = np.full(2, _START_SPREAD)
        theta = np.zeros(features.shape[1])
        return cls(second=second, bias=bias, features=features, theta=theta, spreads=spreads)

    def extended(self, factors: Floats, spread: float) -> Side:
        """Return this side with factors of these means and no variance appended to its biases."""
        size = 2 + factors.shape[1]
        second = np.zeros((len(factors), size, size))
        second[:, :2, :2] = self.second
        second[:, 2:, :2] = factors[:, :, None] * self.means[:, None, :2]
        second[:, :2, 2:] = second[:, 2:, :2].transpose(0, 2, 1)
        second[:, 2:, 2:] = factors[:, :, None] * factors[:, None, :]
        return replace(self, second=second, spreads=np.append(self.spreads, np.full(size - 2, spread)))

    @property
    def known(self) -> int:
        """Return the coordinate that is 1 in every vector of this side."""
        return 1 - self.bias

    @property
    def means(self) -> Floats:
        """Return the posterior means."""
        return np.asarray(self.second[:, :, self.known])

    @property
    def variances(self) -> Floats:
        """Return the posterior variances of all coordinates."""
        return np.asarray(np.einsum("iaa->ia", self.second) - self.means**2)

    def learn_prior(self, theta_spreads: Floats, *, fixed_factors: bool) -> Side:
        """Return this side with the prior fitted to its posterior, rows weighted by their information."""
        mean, variance = self.means[:, self.bias], self.variances[:, self.bias]
        prior, spread = self.features @ self.theta, self.spreads[self.bias] ** 2
        information = np.clip(1 / np.maximum(variance, 1e-12) - 1 / spread, 0.0, None)
        target = mean / np.maximum(variance, 1e-12) - prior / spread
        discount = 1 / (1 + information * spread)
        weighted = self.features * (information * discount)[:, None]
        theta = np.linalg.solve(
            weighted.T @ self.features + np.diag(theta_spreads**-2), self.features.T @ (target * discount)
        )
        moved = mean + (variance / spread) * (self.features @ (theta - self.theta))
        spreads = self.spreads.copy()
        share = information * spread * discount
        off = (moved - self.features @ theta) ** 2 + variance
        spreads[self.bias] = max(np.sqrt(share @ off / max(share.sum(), 1e-9)), _LEAST_SPREAD)
        if not fixed_factors:
            # The fixed point of the evidence: squares over the number of directions that reports determine.
            decided = np.sum(1 - self.variances[:, 2:] / self.spreads[2:] ** 2, axis=0)
            squares = np.sum(self.means[:, 2:] ** 2, axis=0)
            spreads[2:] = np.sqrt(np.maximum(squares, 1e-12) / np.maximum(decided, 1e-6))
        return replace(self, theta=theta, spreads=spreads)

    def keep(self, which: npt.NDArray[np.int64]) -> Side:
        """Return this side with only these coordinates."""
        return replace(
            self, second=self.second[:, which][:, :, which].copy(), spreads=self.spreads[which].copy()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelFit:
    """Predictions `1/2 + user . item` in units of the scale."""

    people: Side
    items: Side

    @property
    def factors(self) -> int:
        """Return how many factors the reports supported."""
        return int(self.people.second.shape[1]) - 2


def fit_channel(
    by_user: Reports,
    by_item: Reports,
    response: Response,
    *,
    factors: int,
    iterations: int,
    seed: int = 0,
    user_features: Floats | None = None,
    item_features: Floats | None = None,
    report: Callable[[int], None] = lambda done: None,
) -> ChannelFit:
    """Fit by variational Fisher scoring; spreads of effects and factors are learned along the way.

    The reports by item are the same as by user. Features are public and move the prior means of the biases.
    """
    n_users, n_items = by_user.indptr.size - 1, by_item.indptr.size - 1
    for reports, others in ((by_user, n_items), (by_item, n_users)):
        _require_reports(reports, others, response)
    people = Side.start(n_users, 0, _features(user_features, n_users))
    items = Side.start(n_items, 1, np.column_stack([np.ones(n_items), _features(item_features, n_items)]))
    theta_users = np.full(people.features.shape[1], _FEATURE_SPREAD)
    theta_items = np.append(_MEAN_SPREAD, np.full(items.features.shape[1] - 1, _FEATURE_SPREAD))
    for done in range(integer("iterations", iterations, least=1)):
        if done == _BIAS_ITERATIONS and factors:
            generator = experiment_generator(seed, "channel fit")
            people = people.extended(np.zeros((n_users, factors)), _START_SPREAD)
            items = items.extended(_START_FACTORS * generator.standard_normal((n_items, factors)), 1.0)
        people = _move(by_user, people, items, response).learn_prior(theta_users, fixed_factors=False)
        items = _move(by_item, items, people, response).learn_prior(theta_items, fixed_factors=True)
        people, items = _prune(people, items)
        report(done + 1)
    return ChannelFit(people=people, items=items)


def _require_reports(reports: Reports, n_columns: int, response: Response) -> None:
    """Raise for reports whose arrays are inconsistent: compiled loops do not check bounds."""
    require_fit(Rows(*reports[:2], reports.codes.astype(np.float32)), n_columns)
    codes = reports.codes
    if codes.size == 0 or codes.min() < 0 or codes.max() >= response.score.shape[1]:
        raise NothingToLearn()


def _features(features: Floats | None, rows: int) -> Floats:
    return np.zeros((rows, 0)) if features is None else features


def _move(reports: Reports, own: Side, other: Side, response: Response) -> Side:
    out = own.second.copy()
    # The other side is read again and again: in single precision more of it stays in the cache.
    others = other.second.reshape(len(other.second), -1).astype(np.float32)
    grid = np.array([_OFFSET, response.grid[0], response.grid[1] - response.grid[0]])
    coordinates = np.array([own.bias, own.known, other.known])
    run(
        report_kernels.channel_rows,
        reports.indptr + 20 * np.arange(reports.indptr.size),
        reports.indptr,
        reports.columns,
        reports.codes,
        others,
        coordinates,
        own.spreads**-2,
        own.features @ own.theta,
        grid,
        response.information,
        response.score,
        out,
    )
    return replace(own, second=out)


def _prune(people: Side, items: Side) -> tuple[Side, Side]:
    """Drop the factors that no longer move predictions."""
    strength = np.sqrt(np.mean(people.means[:, 2:] ** 2, axis=0) * np.mean(items.means[:, 2:] ** 2, axis=0))
    if np.all(strength >= _LEAST_FACTOR):
        return people, items
    which = np.concatenate([[0, 1], 2 + np.flatnonzero(strength >= _LEAST_FACTOR)])
    return people.keep(which), items.keep(which)


# A rating's typical distance from its expectation.
SPREAD = 0.22
_GRID = 129
_MARGIN = 0.02
_BISECTIONS = 60


class Response(NamedTuple):
    """Tabulate, over a grid of expected ratings, the score of every report and its moments."""

    grid: Floats
    score: Singles
    information: Floats
    mean: Floats
    variance: Floats


def respond(
    levels: Floats,
    transition: Floats,
    outputs: Floats,
    *,
    spread: float = SPREAD,
    rated: float = 1.0,
    background: Floats | None = None,
) -> Response:
    """Tabulate a channel for ratings that spread around their expectation.

    `levels` are the possible ratings in units of the scale, `transition[level, output]` the channel. Where
    missing ratings are reported too, only a share `rated` of the reports represents ratings and the others
    follow `background`.
    """
    grid = np.linspace(_MARGIN, 1 - _MARGIN, _GRID)
    shares = _spread_levels(levels, grid, spread)
    # Weights shifted to a mean are an exponential family: their logarithm rises by (level - mean) / variance.
    away = levels[None, :] - grid[:, None]
    slopes = shares * away / np.sum(shares * away**2, axis=1, keepdims=True)
    likelihood, slope = shares @ transition, slopes @ transition
    if background is not None:
        likelihood, slope = rated * likelihood + (1 - rated) * background, rated * slope
    likelihood = np.maximum(likelihood, np.finfo(np.float64).tiny)
    score = slope / likelihood
    mean = likelihood @ outputs
    return Response(
        grid=grid,
        score=score.astype(np.float32),
        information=np.einsum("mo,mo->m", likelihood, score**2),
        mean=mean,
        variance=likelihood @ outputs**2 - mean**2,
    )


def _spread_levels(levels: Floats, means: Floats, spread: float) -> Floats:
    """Return normal weights over the levels, shifted so that their mean is exactly each of `means`."""
    low = np.full(means.size, levels[0] - 4.0)
    high = np.full(means.size, levels[-1] + 4.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_low = _normal_weights(levels, middle, spread) @ levels < means
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    return _normal_weights(levels, (low + high) / 2, spread)


def _normal_weights(levels: Floats, centers: Floats, spread: float) -> Floats:
    exponent = -0.5 * ((levels[None, :] - centers[:, None]) / spread) ** 2
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
