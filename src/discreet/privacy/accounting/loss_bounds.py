"""Bound each mechanism's privacy loss: pure, at every Renyi order, and as a distribution.

A loss is looked up by the kind of a `Leaf`. A kind that isn't listed raises, so an unknown mechanism is
never free. Bounds are proved in proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.privacy.accounting.events import Leaf
from discreet.privacy.accounting.rounding import round_up

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Orders = npt.NDArray[np.float64]

_SLACK = 16 * 2.0**-53
# With a sampled Gaussian only integer orders are used: its divergence has a stable closed form there.
_WHOLE_ORDERS = np.concatenate([np.arange(2.0, 65.0), np.round(np.geomspace(65, 512, 12))])
_ALL_ORDERS = 1 + np.geomspace(1e-4, 1e7, 900)
# Fewer points are never assumed in the error bound of a distribution.
_LEAST_POINTS = 1024
# Above this sensitivity, a discrete Laplace mechanism costs as much as the continuous one that dominates it.
_LARGE_SENSITIVITY = 200
_RESPONSES = ("RandomizedResponseDpEvent", "ZCDpEvent")


def pure_loss(leaf: Leaf) -> float:
    """Return the mechanism's pure epsilon, rounded up. Infinite if it has none."""
    kind, values = leaf
    if kind.startswith("PoissonSampled"):
        return _sampled_pure(values[0], pure_loss(Leaf(kind.removeprefix("PoissonSampled"), values[1:])))
    match kind, values:
        case "GaussianDpEvent", (multiplier,):
            return 0.0 if math.isinf(multiplier) else math.inf
        case "LaplaceDpEvent", (multiplier,):
            return 0.0 if math.isinf(multiplier) else round_up(1 / Fraction(multiplier))
        case "DiscreteLaplaceDpEvent", (parameter, sensitivity):
            return round_up(Fraction(parameter) * Fraction(sensitivity))
        case "RandomizedResponseDpEvent", (noise, buckets):
            return math.log1p(buckets * (1 - noise) / noise) * (1 + _SLACK) if buckets > 1 else 0.0
        case "ZCDpEvent", (rho, xi):
            return xi if rho == 0 else math.inf
        case "FailureEvent", (chance,):
            return math.inf if chance else 0.0
    raise KeyError(kind)


def _sampled_pure(share: float, epsilon: float) -> float:
    """Return log(1 + share (e^epsilon - 1)): the amplified pure loss under Poisson sampling."""
    if math.isinf(epsilon):
        return math.inf
    if epsilon > 30:
        return (epsilon + math.log(share + (1 - share) * math.exp(-epsilon))) * (
            1 + _SLACK
        ) + _SLACK * epsilon
    return math.log1p(share * math.expm1(epsilon)) * (1 + _SLACK)


def _renyi(leaf: Leaf, orders: Orders) -> Orders:
    """Return the mechanism's Renyi divergence at each order, never too small."""
    kind, values = leaf
    if kind == "GaussianDpEvent":
        return orders / 2 * (values[0] ** -2 * (1 + _SLACK))
    if kind == "ZCDpEvent" and values[0] > 0:
        return (values[1] + values[0] * orders) * (1 + _SLACK)
    if kind == "PoissonSampledGaussianDpEvent":
        return np.array(_sampled_gaussian_renyi(*values, tuple(orders)))
    loss = pure_loss(leaf)
    bound = _pure_renyi(loss, orders)
    if kind in ("LaplaceDpEvent", "DiscreteLaplaceDpEvent"):
        bound = np.minimum(bound, _laplace_renyi(_laplace_loss(leaf), orders))
    # A pure loss is also zero-concentrated with half its square, and the divergence is never above the loss.
    safest: Orders = np.minimum(np.minimum(bound, orders * loss * loss / 2), loss)
    return np.multiply(safest, 1 + _SLACK)


def _laplace_loss(leaf: Leaf) -> float:
    """Return the pure loss of a continuous Laplace mechanism that reveals at least as much."""
    if leaf.kind == "LaplaceDpEvent":
        return pure_loss(leaf)
    parameter = leaf.values[0]
    return pure_loss(leaf) + (parameter + 2 * (math.log1p(math.exp(-parameter)) - math.log(2))) + _SLACK


def _pure_renyi(loss: float, orders: Orders) -> Orders:
    """Return the divergence of randomized response over two answers, the worst of all pure mechanisms."""
    likely, unlikely = -np.log1p(np.exp(-loss)), -np.log1p(np.exp(-loss)) - loss
    log_moment: Orders = np.logaddexp(likely + (orders - 1) * loss, unlikely - (orders - 1) * loss)
    return (log_moment + _SLACK * (1 + orders * loss)) / (orders - 1)


def _laplace_renyi(loss: float, orders: Orders) -> Orders:
    first = np.log(orders / (2 * orders - 1)) + (orders - 1) * loss
    second = np.log((orders - 1) / (2 * orders - 1)) - orders * loss
    return (np.logaddexp(first, second) + _SLACK * (1 + orders * loss)) / (orders - 1)


@lru_cache(maxsize=64)
def _sampled_gaussian_renyi(share: float, multiplier: float, orders: tuple[float, ...]) -> tuple[float, ...]:
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    event = dp_event.PoissonSampledDpEvent(share, dp_event.GaussianDpEvent(multiplier))
    return tuple(RdpAccountant(orders).compose(event).rdp * (1 + 1e-9) + 1e-14)


def _total_renyi(parts: Mapping[Leaf, int]) -> tuple[Orders, Orders]:
    sampled = any(leaf.kind == "PoissonSampledGaussianDpEvent" for leaf in parts)
    orders = _WHOLE_ORDERS if sampled else _ALL_ORDERS
    total = np.zeros_like(orders)
    for leaf, times in parts.items():
        total += times * _renyi(leaf, orders)
    return orders, total * (1 + _SLACK * (1 + len(parts)))


def renyi_epsilon(parts: Mapping[Leaf, int], delta: float) -> float:
    """Return the epsilon at `delta` that the summed Renyi divergences imply, never too small."""
    orders, total = _total_renyi(parts)
    gain = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    epsilons = total + gain + _SLACK * (total + np.abs(gain) + abs(math.log(delta)) / (orders - 1))
    return max(float(np.min(epsilons)), 0.0)


def renyi_delta(parts: Mapping[Leaf, int], epsilon: float) -> float:
    """Return the delta at `epsilon` that the summed Renyi divergences imply, never too small."""
    orders, total = _total_renyi(parts)
    lost = (orders - 1) * (total - epsilon)
    gain = orders * np.log1p(-1 / orders) - np.log(orders - 1)
    best = float(np.min(lost + gain + _SLACK * (1 + np.abs(gain) + (orders - 1) * (total + epsilon))))
    # A delta below the smallest float must not become 0, which would mean a pure guarantee.
    return max(math.exp(best) * (1 + _SLACK), math.ulp(0.0)) if best < 0 else 1.0


class DistributionBound:
    """Bounds of a composition from its privacy-loss distribution, if every mechanism has one.

    `scale` is a rough guess of the resulting epsilon; it sets the discretization interval.
    """

    def __init__(self, parts: Mapping[Leaf, int], *, scale: float) -> None:
        self._parts = {leaf: times for leaf, times in parts.items() if _reach(leaf) > 0}
        self._known = all(leaf.kind != "ZCDpEvent" or leaf.values[0] == 0 for leaf in self._parts)
        self._scale = scale

    def epsilon(self, delta: float) -> float:
        """Return an epsilon at `delta`. Infinite if this bound doesn't apply."""
        if not self._known or delta <= 2 * self._error(_LEAST_POINTS):
            return math.inf
        distribution = self._distribution()
        error = self._error(_points(distribution))
        if delta <= 2 * error:
            return math.inf
        return max(float(distribution.get_epsilon_for_delta(delta - error)), 0.0) * (1 + 1e-12)

    def delta(self, epsilon: float) -> float:
        """Return a delta at `epsilon`. It is 1 if this bound doesn't apply."""
        if not self._known or self._error(_LEAST_POINTS) > 0.01:
            return 1.0
        distribution = self._distribution()
        computed = max(float(distribution.get_delta_for_epsilon(epsilon)), 0.0)
        return min(computed + self._error(_points(distribution)), 1.0)

    def _error(self, points: int) -> float:
        """Return a bound on the error of delta from rounding in tables and transforms of this size."""
        releases = sum(self._parts.values()) + len(self._parts)
        return releases * 2.0**-53 * (64 * math.log2(points) * math.sqrt(points) + 8 * points)

    def _distribution(self) -> PrivacyLossDistribution:
        from dp_accounting.pld import privacy_loss_distribution

        interval = _interval(self._parts, self._scale)
        total = privacy_loss_distribution.identity(interval)
        for leaf, times in self._parts.items():
            one = _distribution_of(leaf, interval, privacy_loss_distribution)
            total = total.compose(one if times == 1 else one.self_compose(times))
        return total


def _points(distribution: PrivacyLossDistribution) -> int:
    """Return the number of points of a distribution (it keeps one table for each direction)."""
    sizes: list[int] = [table.size for table in vars(distribution).values() if hasattr(table, "size")]
    return max(*sizes, _LEAST_POINTS)


def _interval(parts: Mapping[Leaf, int], scale: float) -> float:
    """Return an interval much smaller than `scale`. The costliest response's loss is a multiple of it."""
    responses = {leaf: times for leaf, times in parts.items() if leaf.kind in _RESPONSES}
    costliest = max(responses, key=lambda leaf: responses[leaf] * pure_loss(leaf), default=None)
    rounded = sum(times for leaf, times in responses.items() if leaf != costliest)
    furthest = max((_reach(leaf) for leaf in parts), default=1.0)
    step = max(min(scale, 1e6) / (2000 + 200 * min(rounded, 500)), furthest / 20_000, 1e-7)
    loss = 0.0 if costliest is None else pure_loss(costliest)
    return step if loss < step else loss / math.ceil(loss / step) * (1 + _SLACK)


def _reach(leaf: Leaf) -> float:
    """Return roughly the largest loss of one release."""
    loss = pure_loss(leaf)
    if math.isfinite(loss):
        return loss
    shift = 1 / leaf.values[-1] if leaf.kind.endswith("GaussianDpEvent") else 1.0
    return shift * shift / 2 + 10 * shift


def _distribution_of(leaf: Leaf, interval: float, library: Any) -> PrivacyLossDistribution:
    options: dict[str, Any] = {"value_discretization_interval": interval}
    kind, values = leaf.kind, leaf.values
    if kind.startswith("PoissonSampled"):
        kind, values, options = (
            kind.removeprefix("PoissonSampled"),
            values[1:],
            {**options, "sampling_prob": values[0]},
        )
    match kind, values:
        case "GaussianDpEvent", (multiplier,):
            return library.from_gaussian_mechanism(multiplier, **options)
        case "LaplaceDpEvent", (multiplier,):
            return library.from_laplace_mechanism(multiplier, **options)
        case "DiscreteLaplaceDpEvent", (parameter, sensitivity):
            if sensitivity > _LARGE_SENSITIVITY:
                return library.from_laplace_mechanism(1 / _laplace_loss(Leaf(kind, values)), **options)
            return library.from_discrete_laplace_mechanism(
                parameter, int(sensitivity), use_connect_dots=True, **options
            )
        case "RandomizedResponseDpEvent", (_, buckets):
            return _response(pure_loss(leaf), buckets, interval, library)
        case "ZCDpEvent", _:
            return _response(pure_loss(leaf), 2, interval, library)
    raise KeyError(kind)


def _response(loss: float, buckets: float, interval: float, library: Any) -> PrivacyLossDistribution:
    """Return the distribution of randomized response, its loss rounded up to a multiple of `interval`.

    With two buckets no mechanism of this pure loss is worse.
    """
    steps = math.ceil(loss / interval)
    lie = math.exp(-steps * interval)
    masses = {steps: 1.0, 0: (buckets - 2) * lie, -steps: lie}
    total = math.fsum(masses.values())
    masses = {position: mass / total for position, mass in masses.items() if mass > 0}
    return library.PrivacyLossDistribution.create_from_rounded_probability(masses, 0.0, interval)
