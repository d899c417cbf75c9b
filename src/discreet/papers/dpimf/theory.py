"""Theorems 2 to 5 and Algorithm 3 of the DPIMF paper: sampling weights, gammas, and real costs.

The paper claims its epsilon for a user's whole row by parallel composition over items. One user is in every
item's problem, so that claim doesn't hold (proofs/importance_sampling.md and papers/dpimf/NOTES.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from discreet.core import integer, non_negative, positive_finite, require
from discreet.papers.bounds import Bound, PublicSizes, printed, proved, refuted
from discreet.privacy import largest_weights, sampling_scale

Loss = Literal["strawman", "complementary", "symmetric", "optimal"]
LOSSES: tuple[Loss, ...] = ("strawman", "complementary", "symmetric", "optimal")
# Shares of the largest |p_u|_1 for which weights are printed.
_SHARES = (1.0, 0.5, 0.25)
_DELTA = 1e-5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DpimfSettings:
    """Settings of the DPIMF theory: d, lambda, alpha_0, the largest |p_uj| and the budget parts beta.

    `rounds` and `local` count the queries of a party. `max_weight` bounds the corrected sampling weights and
    is the mean of the printed ones.
    """

    factors: int = 20
    regularization: float = 0.07
    alpha0: float = 0.8
    largest: float = 1.0
    beta1: float = 0.1
    beta2: float = 0.8
    rounds: int = 100
    local: int = 20
    max_weight: float = 16.0

    def __post_init__(self) -> None:
        for name in ("factors", "rounds", "local"):
            integer(name, getattr(self, name), least=1)
        for name in ("regularization", "largest", "beta1", "beta2"):
            positive_finite(name, getattr(self, name))
        require(non_negative("alpha0", self.alpha0) <= 1, "alpha0", self.alpha0, must="be at most 1")
        parts = self.beta1 + self.beta2
        require(parts <= 1, "beta1 + beta2", parts, must="be at most 1")
        require(1 <= self.max_weight <= 2**32, "max_weight", self.max_weight, must="be in [1, 2^32]")

    @property
    def radius(self) -> float:
        """Return N = sqrt(1 / lambda), the radius of the ball of profiles."""
        return math.sqrt(1 / self.regularization)


def gamma(loss: Loss, epsilon: float, settings: DpimfSettings) -> float:
    """Return Theorem 5's bound on the loss that noise adds to one item's problem (equations 25 to 28)."""
    d, radius = settings.factors, settings.radius
    front = math.sqrt(2) * settings.largest * d * radius / epsilon
    linear = 4 * math.sqrt(d) / settings.beta1
    matrix = radius * (1 - settings.alpha0) / settings.beta2
    inside = {
        "strawman": (radius + 2 / math.sqrt(d)) * (d + 1) ** 2,
        "complementary": matrix * d**2 + linear,
        "symmetric": matrix * d * (d + 1) / 2 + linear,
        "optimal": 4 * math.sqrt(d),
    }
    return front * inside[loss]


def redesign_bound(ratings_of_item: float, settings: DpimfSettings) -> float:
    """Return Theorem 4's bound on what the complementary loss changes."""
    inside = settings.regularization + 2 * settings.factors * settings.largest**2
    return settings.alpha0 * ratings_of_item / settings.regularization * inside


def corollary_holds(settings: DpimfSettings) -> bool:
    """Return whether gamma_2 >= gamma_3 >= gamma_4 and gamma_1 > gamma_4, as Corollary 1 states."""
    first, second, third, fourth = (gamma(loss, 1.0, settings) for loss in LOSSES)
    return second >= third >= fourth and first > fourth


def room_to_learn(density: float, regularization: float) -> float:
    """Return sqrt(density) / lambda; at 1 or below, zero profiles minimize the loss with alpha_0 = 1.

    With the weights of equation 12 the loss is |R - P Q'|^2 + lambda (m |P|^2 + n |Q|^2) for n users and m
    items, at least |R - X|^2 + 2 lambda sqrt(n m) |X|_* with X = P Q'. Zero minimizes that if lambda
    sqrt(n m) is at least the largest singular value of R, which is at most |R| = sqrt(density n m).
    """
    return math.sqrt(density) / regularization


def corrected_weights(epsilon: float, shares: tuple[float, ...], max_weight: float) -> list[float]:
    """Return Algorithm 3's weights for norms as shares of the largest, with noise for the weighted sum."""
    scale = sampling_scale(epsilon=epsilon, largest_norm=1.0)
    weights = largest_weights(np.asarray(shares), epsilon=epsilon, scale=scale, max_weight=max_weight)
    return [float(weight) for weight in weights]


def printed_weights(shares: tuple[float, ...], mean: float) -> list[float]:
    """Return weights c / |p_u|_1 as Figure 6 shows them, with this mean over the shares and at least 1."""
    inverse = [1 / share for share in shares]
    front = mean * len(inverse) / sum(inverse)
    return [max(1.0, front * each) for each in inverse]


def printed_epsilon_before(epsilon: float, weight: float) -> float:
    """Return Theorem 2's epsilon before sampling if a user moves the sum by Delta, without the weight."""
    return math.log1p(weight * math.expm1(epsilon))


def true_sampled_epsilon(before: float, weight: float, share: float = 1.0) -> float:
    """Return what a printed weight really costs a user whose norm is this share of the largest.

    The noise is for a sum that a user moves by at most Delta, at a loss of `before`. The weighted sum moves
    by `weight * share` times Delta.
    """
    moved = weight * share * before
    return moved + math.log(1 / weight + (1 - 1 / weight) * math.exp(-moved))


def composed(epsilon: float, n_items: int, rounds: int, local: int) -> float:
    """Return the epsilon of a user's whole row over all queries of a party, at delta 1e-5.

    Every query solves every item with a pure loss of epsilon. The result is the smaller of their sum and of
    zero-concentrated composition with epsilon^2 / 2 each.
    """
    queries = rounds * local * n_items
    rho = queries * epsilon**2 / 2
    return min(queries * epsilon, rho + 2 * math.sqrt(rho * math.log(1 / _DELTA)))


def bounds(sizes: PublicSizes, settings: DpimfSettings) -> list[Bound]:
    """Return the gammas, Theorem 4's bound, sampling weights, and what the printed procedure costs a user.

    The zero profile's loss exceeds the least one by at most the number of ratings of the item, so a gamma
    above the mean number of ratings per item is vacuous.
    """
    per_item = sizes.ratings / sizes.items
    loss_of = f"Excess loss of one item, which has {per_item:.1f} ratings on average."
    stated = "holds" if corollary_holds(settings) else "fails"
    room = room_to_learn(sizes.ratings / sizes.cells, settings.regularization)
    return [
        *(
            printed(
                f"gamma_{place}, {loss} loss",
                "Theorem 5",
                gamma(loss, sizes.epsilon, settings),
                loss_of,
                per_item,
            )
            for place, loss in enumerate(LOSSES, start=1)
        ),
        printed(
            "change by the complementary loss",
            "Theorem 4",
            redesign_bound(per_item, settings),
            f"Corollary 1 {stated} at these settings.",
            per_item,
        ),
        *_weight_bounds(sizes, settings),
        *_row_costs(sizes, settings),
        proved(
            "room to learn, sqrt(density) / lambda",
            "Equation 12",
            room,
            "At 1 or below, the zero profile has the least loss.",
        ),
    ]


def _weight_bounds(sizes: PublicSizes, settings: DpimfSettings) -> Iterator[Bound]:
    """Yield the corrected weight of each share of the largest norm, and what the printed weight costs."""
    before = printed_epsilon_before(sizes.epsilon, settings.max_weight)
    weights = corrected_weights(sizes.epsilon, _SHARES, settings.max_weight)
    stated = printed_weights(_SHARES, settings.max_weight)
    for share, weight, other in zip(_SHARES, weights, stated, strict=True):
        real = true_sampled_epsilon(before, other, share)
        note = f"Printed weight {other:.3g} really costs epsilon {real:.3g}."
        yield proved(f"sampling weight at {share:g} of the largest norm", "Algorithm 3", weight, note)


def _row_costs(sizes: PublicSizes, settings: DpimfSettings) -> Iterator[Bound]:
    """Yield what the printed procedure costs a user, whose row is in every item's problem."""
    once = f"Printed: {sizes.epsilon:g}, by parallel composition; one user is in every item's problem."
    often = f"{settings.rounds} rounds of {settings.local} solves each; delta {_DELTA:g}."
    counts = {"one solve": (1, 1, once), "all queries": (settings.rounds, settings.local, often)}
    for queries, (rounds, local, note) in counts.items():
        cost = composed(sizes.epsilon, sizes.items, rounds, local)
        yield refuted(f"epsilon of a user's row, {queries}", "Theorem 3", cost, note)
