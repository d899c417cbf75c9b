"""Compile the one-bit losses: value and slope of every observed cell, with safe tails."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from discreet.solvers.kernels.shared import compiled

Array = npt.NDArray[Any]

_SQRT_HALF = math.sqrt(0.5)
_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
_LOG_DENSITY_AT_0 = math.log(_DENSITY_AT_0)
# From here on the complementary error function loses digits and a continued fraction has them all.
_TAIL = -5.0
_FRACTION_TERMS = 60


@compiled
def logistic_pair(x: float) -> tuple[float, float]:
    """Return -log h(x) and its slope for the logistic link."""
    small = math.exp(-abs(x))
    value = math.log1p(small) + (0.0 if x > 0 else -x)
    slope = -small / (1 + small) if x > 0 else -1 / (1 + small)
    return value, slope


@compiled
def probit_pair(x: float) -> tuple[float, float]:
    """Return -log h(x) and its slope for the probit link."""
    log_density = _LOG_DENSITY_AT_0 - 0.5 * x * x
    if x > _TAIL:
        chance = 0.5 * math.erfc(-x * _SQRT_HALF)
        return -math.log(chance), -math.exp(log_density) / chance
    # Mills' ratio: density / chance = t + 1/(t + 2/(t + 3/(t + ...))) with t = -x.
    ratio = -x
    for term in range(_FRACTION_TERMS, 0, -1):
        ratio = -x + term / ratio
    return math.log(ratio) - log_density, -ratio


@compiled
def plain_pair(x: float, probit: bool) -> tuple[float, float]:
    """Return -log h(x) and its slope for either link."""
    if probit:
        return probit_pair(x)
    return logistic_pair(x)


@compiled
def flipped_pair(x: float, probit: bool, told: float, lied: float) -> tuple[float, float]:
    """Return -log c(x) and its slope, c(x) = told h(x) + lied (1 - h(x)), for what was reported."""
    value, slope = plain_pair(x, probit)
    chance = math.exp(-value)
    mixed = lied + (told - lied) * chance
    return -math.log(mixed), (told - lied) * chance * slope / mixed


@compiled
def one_bit_range(
    start: int,
    stop: int,
    scores: Array,
    verdicts: Array,
    linear: Array,
    probit: bool,
    scale: float,
    flip_positive: float,
    flip_negative: float,
    ridge: float,
    straight_beyond: float,
    out: Array,
) -> None:
    """Write the loss and the slope of a range of cells into the two rows of `out`."""
    flipped = flip_positive > 0 or flip_negative > 0
    for cell in range(start, stop):
        score = scores[cell]
        sign = 1.0 if verdicts[cell] > 0 else -1.0
        inside = min(max(score, -straight_beyond), straight_beyond)
        x = sign * inside / scale
        if flipped:
            lied = flip_negative if sign > 0 else flip_positive
            told = 1 - (flip_positive if sign > 0 else flip_negative)
            value, slope = flipped_pair(x, probit, told, lied)
        else:
            value, slope = plain_pair(x, probit)
        slope *= sign / scale
        extra = linear[cell] if linear.size else 0.0
        out[0, cell] = value + slope * (score - inside) + (extra + 0.5 * ridge * score) * score
        out[1, cell] = slope + extra + ridge * score
