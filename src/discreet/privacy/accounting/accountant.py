"""Account for a series of releases: compose events, compute epsilon or delta, calibrate noise.

The accountant computes several bounds and uses the best: basic composition of pure losses, the closed form
for Gaussians, Renyi divergences, and dp-accounting's privacy-loss distributions (imported only when an event
needs them, because the import takes over a second). All of them round to the safe side; proofs/accounting.md
has the proofs. Multipliers are noise over sensitivity, so they already reflect the neighbors of the privacy
definition. The cost of Poisson sampling is between datasets in which a record was added or removed.

The parameters of the composed events must not have been chosen after seeing earlier results; use the ledger
for adaptive spending.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from discreet.core import failure_probability, non_negative, positive_finite
from discreet.privacy.accounting.events import (
    Leaf,
    describe,
    event_from_json,
    event_to_json,
    event_types,
    pure_event,
    supported_events,
    tally,
)
from discreet.privacy.accounting.gaussian import (
    compose_gaussians,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_multiplier,
    least,
    split_gaussian,
)
from discreet.privacy.accounting.loss_bounds import DistributionBound, pure_loss, renyi_delta, renyi_epsilon
from discreet.privacy.accounting.rounding import left_over, sum_up, times_up
from discreet.privacy.errors import NoiseInsufficient

if TYPE_CHECKING:
    from dp_accounting import DpEvent

__all__ = [
    "calibrate",
    "compose",
    "compose_gaussians",
    "delta_at",
    "describe",
    "epsilon_at",
    "event_from_json",
    "event_to_json",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_multiplier",
    "pure_event",
    "split_gaussian",
    "supported_events",
]

# If this much noise is not enough, the target is out of reach.
_MOST_NOISE = 2.0**60


def compose(events: Iterable[DpEvent]) -> DpEvent:
    """Return the event of all releases together. Events without a known cost are rejected.

    Raises:
        PrivacyError: The privacy loss of an event is unknown.
    """
    parts = list(events)
    tally(parts)
    return parts[0] if len(parts) == 1 else event_types().ComposedDpEvent(parts)


def epsilon_at(events: DpEvent | Iterable[DpEvent], delta: float) -> float:
    """Return an epsilon, never too small, such that all releases together are (epsilon, delta)-private.

    At `delta=0` pure losses add up; the result is infinite if a release is not pure.

    Raises:
        PrivacyError: The privacy loss of an event is unknown.
    """
    failure_probability("delta", delta)
    parts, failing = _failures_apart(tally(events))
    if failing > delta:
        return math.inf
    delta = left_over(delta, failing)
    multiplier, rest = _gaussians_apart(parts)
    pure = _pure(rest)
    if not rest:
        return gaussian_epsilon(multiplier, delta)
    if delta == 0:
        return pure if math.isinf(multiplier) else math.inf
    parts = {**rest, Leaf("GaussianDpEvent", (multiplier,)): 1}
    best = min(sum_up([pure, gaussian_epsilon(multiplier, delta)]), renyi_epsilon(parts, delta))
    return min(best, DistributionBound(parts, scale=best).epsilon(delta))


def delta_at(events: DpEvent | Iterable[DpEvent], epsilon: float) -> float:
    """Return a delta, never too small, such that all releases together are (epsilon, delta)-private.

    Raises:
        PrivacyError: The privacy loss of an event is unknown.
    """
    non_negative("epsilon", epsilon)
    parts, failing = _failures_apart(tally(events))
    if failing:
        return min(sum_up([_delta_of(parts, epsilon), failing]), 1.0)
    return _delta_of(parts, epsilon)


def _delta_of(parts: dict[Leaf, int], epsilon: float) -> float:
    multiplier, rest = _gaussians_apart(parts)
    pure = _pure(rest)
    if not rest:
        return gaussian_delta(multiplier, epsilon)
    left = math.nextafter(epsilon - pure, -math.inf) if not math.isinf(multiplier) else epsilon - pure
    best = gaussian_delta(multiplier, left) if left >= 0 else 1.0
    if best == 0:
        return 0.0
    parts = {**rest, Leaf("GaussianDpEvent", (multiplier,)): 1}
    best = min(best, renyi_delta(parts, epsilon))
    return min(best, DistributionBound(parts, scale=renyi_epsilon(parts, 1e-6)).delta(epsilon))


def calibrate(
    make_event: Callable[[float], DpEvent], epsilon: float, delta: float, *, precision: float = 1e-6
) -> float:
    """Return the smallest noise multiplier whose event costs at most `epsilon` at `delta`.

    The result itself meets the target and is at most a relative `precision` above the smallest.

    Example:
        >>> from dp_accounting import LaplaceDpEvent, SelfComposedDpEvent
        >>> round(calibrate(lambda noise: SelfComposedDpEvent(LaplaceDpEvent(noise), 4), 2.0, 0.0), 3)
        2.0
    """
    positive_finite("epsilon", epsilon)
    failure_probability("delta", delta)
    positive_finite("precision", precision)

    def enough(multiplier: float) -> bool:
        return epsilon_at(make_event(multiplier), delta) <= epsilon

    if not enough(_MOST_NOISE):
        raise NoiseInsufficient(epsilon=epsilon, delta=delta)
    return least(enough, guess=1.0, precision=precision)


def _failures_apart(parts: dict[Leaf, int]) -> tuple[dict[Leaf, int], float]:
    """Return the parts without failure events, and a bound on the probability of any failure."""
    rest = {leaf: times for leaf, times in parts.items() if leaf.kind != "FailureEvent"}
    chances = (times_up(leaf.values[0], times) for leaf, times in parts.items() if leaf not in rest)
    return rest, sum_up(chances)


def _gaussians_apart(parts: dict[Leaf, int]) -> tuple[float, dict[Leaf, int]]:
    """Return the multiplier of all Gaussians composed, and the other parts."""
    rest = {leaf: times for leaf, times in parts.items() if leaf.kind != "GaussianDpEvent"}
    gaussians = (leaf.values[0] / math.sqrt(times) for leaf, times in parts.items() if leaf not in rest)
    return compose_gaussians(gaussians), rest


def _pure(parts: dict[Leaf, int]) -> float:
    """Return the sum of pure losses by basic composition, rounded up."""
    return sum_up(times_up(pure_loss(leaf), times) for leaf, times in parts.items())
