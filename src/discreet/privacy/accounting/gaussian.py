"""Account for the Gaussian mechanism exactly: epsilon, delta, and noise in closed form, rounded safely.

A noise multiplier is the noise's standard deviation divided by the l2 sensitivity. Nothing here imports
dp-accounting, so calibration is instant. The error analysis is in proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.core import failure_probability, non_negative, positive, positive_finite, require
from discreet.core.exports import Later

if TYPE_CHECKING:
    from scipy import special
else:
    special = Later("scipy.special")

# The unit roundoff. scipy's special functions are accurate to a few of it; the bound below allows sixteen.
_ROUNDING = 2.0**-53
_ALLOWED = 16 * _ROUNDING
_SQRT_2 = math.sqrt(2)
_LOG_2 = math.log(2)
# Beyond this, simple tail bounds are good enough.
_FAR = 1e6


def log_delta_above(shift: float, epsilon: float) -> float:
    """Return an upper bound of log delta for N(0, 1) against N(shift, 1), tight to about 1e-9.

    The divergence is Phi(x) - e^epsilon Phi(x - shift) with x = shift/2 - epsilon/shift.
    """
    x = shift / 2 - epsilon / shift
    y = -shift / 2 - epsilon / shift
    if abs(x) > _FAR:
        return 0.0 if x > 0 else -x * x / 4
    # x and y inherit the rounding of their terms, and the density there magnifies it by as much again.
    slack = _ALLOWED * (1 - y) ** 2
    if x > 0:
        first, second = float(special.ndtr(x)), math.exp(min(epsilon + float(special.log_ndtr(y)), 0.0))
        return min(math.log(max(first - second, 0.0) + (first + second) * slack), 0.0)
    # In the tail both terms share the density at x; two Mills ratios of equal size remain.
    near, far = float(special.erfcx(-x / _SQRT_2)), float(special.erfcx(-y / _SQRT_2))
    difference = max(near - far, 0.0) + _ALLOWED * (1 + shift) * near
    return math.log(difference) - _LOG_2 - x * x / 2 + slack


def gaussian_delta(multiplier: float, epsilon: float) -> float:
    """Return the smallest delta of one Gaussian at `epsilon`, never too small."""
    positive("multiplier", multiplier)
    non_negative("epsilon", epsilon)
    if math.isinf(multiplier):
        return 0.0
    logarithm = log_delta_above(_above(1 / multiplier), epsilon)
    return min(math.nextafter(math.exp(logarithm) * (1 + _ALLOWED), math.inf), 1.0)


def gaussian_epsilon(multiplier: float, delta: float) -> float:
    """Return the smallest epsilon of one Gaussian at `delta`, never too small. Infinite at delta 0."""
    multiplier, delta = positive("multiplier", multiplier), failure_probability("delta", delta)
    if math.isinf(multiplier):
        return 0.0
    return math.inf if delta == 0 else _searched_epsilon(multiplier, delta)


# A search is a pure function of public numbers, and a run over parties repeats the same few searches.
@lru_cache(maxsize=4096)
def _searched_epsilon(multiplier: float, delta: float) -> float:
    shift, target = _above(1 / multiplier), _log_below(delta)
    if log_delta_above(shift, 0.0) <= target:
        return 0.0
    return least(lambda epsilon: log_delta_above(shift, epsilon) <= target, guess=shift)


def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """Return the smallest noise multiplier that makes one Gaussian (epsilon, delta)-private.

    An infinite epsilon needs no noise.

    References:
        Balle and Wang, "Improving the Gaussian mechanism for differential privacy", 2018, theorem 8.

    Example:
        >>> round(gaussian_multiplier(1.0, 1e-5), 4)
        3.7306
    """
    epsilon, delta = positive("epsilon", epsilon), failure_probability("delta", delta)
    require(
        delta > 0,
        "delta",
        delta,
        must="be greater than 0 for Gaussian noise",
        do="Use Laplace for a pure guarantee.",
    )
    return 0.0 if math.isinf(epsilon) else _searched_multiplier(epsilon, delta)


@lru_cache(maxsize=4096)
def _searched_multiplier(epsilon: float, delta: float) -> float:
    target = _log_below(delta)
    return least(
        lambda multiplier: log_delta_above(_above(1 / multiplier), epsilon) <= target, guess=1 / epsilon
    )


def compose_gaussians(multipliers: Iterable[float]) -> float:
    """Return the multiplier of the one Gaussian that equals all of them composed: 1/m^2 = sum of 1/m_i^2."""
    noisy = [value for value in multipliers if not math.isinf(positive("multiplier", value))]
    precision = math.fsum(_above(1 / value) ** 2 for value in noisy)
    return _below(_above(precision) ** -0.5) if noisy else math.inf


def split_gaussian(total_multiplier: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Return one multiplier per weight, so that together they cost the same as `total_multiplier` alone.

    A weight is the share of the precision 1/m^2: a release with twice the weight has 1/sqrt(2) of the noise.
    """
    positive_finite("total_multiplier", total_multiplier)
    require(len(weights) > 0, "weights", list(weights), must="not be empty")
    for weight in weights:
        positive_finite("weight", weight)
    total = math.fsum(weights)
    return tuple(total_multiplier * math.sqrt(total / weight) * (1 + _ALLOWED) for weight in weights)


def least(enough: Callable[[float], bool], *, guess: float, precision: float = 1e-14) -> float:
    """Return a positive float with `enough` true, less than `precision` above one where it is false.

    `enough` must be false, then true, as its argument grows. The returned value was itself tested.
    """
    high = guess
    while not enough(high):
        high *= 4
        if math.isinf(high):
            return math.inf
    low = high / 4
    while enough(low):
        high, low = low, low / 4
        if low < 1e-300:
            return high
    while high - low > precision * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _above(value: float) -> float:
    return math.nextafter(value * (1 + _ALLOWED), math.inf)


def _below(value: float) -> float:
    return math.nextafter(value * (1 - _ALLOWED), 0.0)


def _log_below(probability: float) -> float:
    logarithm = math.log(probability)
    return logarithm - _ALLOWED * (1 + abs(logarithm))
