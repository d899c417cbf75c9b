"""Share a budget between the biases and equally noisy rounds after them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from discreet.models.biases import SHARES
from discreet.models.low_rank.frank_wolfe import BIAS_SHARE
from discreet.privacy.accounting.gaussian import gaussian_multiplier, split_gaussian
from discreet.privacy.mechanisms.additive import Gaussian


def shared_multipliers(epsilon: float, delta: float, rounds: int) -> tuple[float, tuple[float, ...]]:
    """Return the multipliers of the biases and of equally noisy rounds after them."""
    if math.isinf(epsilon):
        return 0.0, (0.0,) * rounds
    weights = [BIAS_SHARE, *([(1 - BIAS_SHARE) / rounds] * rounds)]
    biases, *each = split_gaussian(gaussian_multiplier(epsilon, delta), weights)
    return biases, tuple(each)


def events_of_rounds(epsilon: float, delta: float, rounds: int) -> Sequence[Any]:
    """Return the events of the biases and of the rounds."""
    if math.isinf(epsilon):
        return ()
    biases, each = shared_multipliers(epsilon, delta, rounds)
    multipliers = (*split_gaussian(biases, SHARES), *each)
    return [Gaussian(sigma=multiplier, l2_sensitivity=1.0).event() for multiplier in multipliers]
