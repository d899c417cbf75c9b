"""The noise that a session will add: events, scales, and deviations of planned releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.accounting.rounding import root_above, round_down, round_up
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.mechanisms.selection import NoisyThreshold
from discreet.privacy.queries import Noise

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def share(number: float) -> Fraction:
    """Return the exact fraction of a decimal number: 1/50 for 0.02.

    Example:
        >>> share(0.02) + share(0.25) + share(0.73)
        Fraction(1, 1)
    """
    return Fraction(repr(float(number)))


def gaussian_event(epsilon: float, delta: float) -> DpEvent:
    """Return the event of all releases of a Gaussian session with this budget."""
    return Gaussian.calibrated(epsilon=epsilon, delta=delta, l2_sensitivity=1.0).event()


def laplace_event(epsilon: float) -> DpEvent:
    """Return the event of one Laplace release of this epsilon."""
    return Laplace.calibrated(epsilon=epsilon, l1_sensitivity=1.0).event()


def laplace_scale(*, epsilon: float, bound: float, rounds: int = 1) -> float:
    """Return the scale of each of `rounds` equal Laplace releases that cost this epsilon together.

    Raises:
        ParameterError: No such noise can be drawn. An estimator calls this before any budget is spent.
    """
    return laplace_noise(Fraction(epsilon) / rounds, bound).scale


def gaussian_deviation(*, epsilon: float, delta: float, bound: float, rounds: int = 1) -> float:
    """Return the deviation of each of `rounds` equal Gaussian releases that cost (epsilon, delta) together.

    Raises:
        ParameterError: No such noise can be drawn. An estimator calls this before any budget is spent.
    """
    sigma = gaussian_sigma(gaussian_multiplier(epsilon, delta), bound, Fraction(1, rounds))
    return Gaussian(sigma=sigma, l2_sensitivity=bound).sigma


def planned_noise(epsilon: float, delta: float, shares: Sequence[Fraction]) -> list[Noise]:
    """Return the noise of one release per share for sensitivity 1, as a session would draw it."""
    if math.isinf(epsilon):
        return [Gaussian(sigma=0.0, l2_sensitivity=1.0) for _ in shares]
    if delta == 0:
        parts = [round_down(Fraction(epsilon) * share) for share in shares]
        return [Laplace.calibrated(epsilon=part, l1_sensitivity=1.0) for part in parts]
    whole = gaussian_multiplier(epsilon, delta)
    return [Gaussian(sigma=gaussian_sigma(whole, 1.0, share), l2_sensitivity=1.0) for share in shares]


def threshold_events(*, epsilon: float, delta: float, most: int) -> Sequence[Any]:
    """Return the events of `Session.names`. Raise for a budget that it can't spend."""
    return NoisyThreshold(epsilon=epsilon, delta=delta, most=most).events()


def laplace_noise(epsilon: Fraction, bound: float) -> Laplace:
    """Return the noise of a pure release of this epsilon. A part that no float can state isn't spent."""
    return Laplace.calibrated(epsilon=round_down(epsilon), l1_sensitivity=bound)


def gaussian_sigma(multiplier: float, bound: float, share: Fraction) -> float:
    """Return the smallest float with (bound / sigma)^2 at most share / multiplier^2."""
    exact = Fraction(multiplier) * Fraction(bound)
    if share == 1:
        return round_up(exact)
    return round_up(root_above(exact**2 / share))
