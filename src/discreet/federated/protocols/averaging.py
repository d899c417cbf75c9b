"""What protocols share in which parties send profiles that the coordinator averages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.checks import integer, require
from discreet.federated.noise import OwnNoise
from discreet.models.estimator import check_budget
from discreet.privacy.accounting.gaussian import gaussian_multiplier, split_gaussian
from discreet.privacy.mechanisms.additive import Gaussian


def check_averaging(epsilon: float, delta: float, rounds: int, factors: int, noise: OwnNoise) -> None:
    """Refuse settings that no averaging protocol can run with."""
    check_budget(epsilon, delta, gaussian=True)
    integer("rounds", rounds, least=1, most=100)
    integer("factors", factors, least=1, most=256)
    require(not noise.masked, "noise", noise, "must be OwnNoise()", "Averages are not sums.")


def noises_by_share(epsilon: float, delta: float, shares: Sequence[float]) -> list[Gaussian]:
    """Return noises for releases that one person moves by at most 1, together (epsilon, delta)."""
    if math.isinf(epsilon):
        multipliers: Sequence[float] = [0.0] * len(shares)
    else:
        multipliers = split_gaussian(gaussian_multiplier(epsilon, delta), shares)
    return [Gaussian(sigma=multiplier, l2_sensitivity=1.0) for multiplier in multipliers]
