"""Shrink noisy averages toward what their fellows suggest, by as much as the known noise demands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STEPS = 50
_SPREAD_AT_START = 0.1
_SMALLEST_SPREAD = 1e-4
_RIDGE = 1e-6


class Shrunken(NamedTuple):
    """Hold the posterior mean and variance of every effect."""

    mean: Floats
    variance: Floats


def shrink(sums: Floats, counts: Floats, variance: Floats | float, features: Floats) -> Shrunken:
    """Estimate effects b from sums = counts * b + noise, with b spread normally around features @ theta.

    Theta and the spread are fitted by expectation-maximization in which every item counts by how much its
    sum tells (its signal's share of the variance): the plain likelihood would let a long tail of silent items
    decide how strongly the others vary.
    """
    variance = np.broadcast_to(np.asarray(variance, dtype=np.float64), sums.shape)
    theta: Floats = np.zeros(features.shape[1])
    spread = _SPREAD_AT_START
    for _ in range(_STEPS):
        posterior = _posterior(sums, counts, variance, features @ theta, spread)
        told = counts**2 * spread / (counts**2 * spread + variance)
        weighted = features * told[:, None]
        theta = np.linalg.solve(
            weighted.T @ features + _RIDGE * np.eye(features.shape[1]), weighted.T @ posterior.mean
        )
        off = (posterior.mean - features @ theta) ** 2 + posterior.variance
        spread = max(float(told @ off) / max(float(told.sum()), _RIDGE), _SMALLEST_SPREAD)
    return _posterior(sums, counts, variance, features @ theta, spread)


def _posterior(sums: Floats, counts: Floats, variance: Floats, prior: Floats, spread: float) -> Shrunken:
    total = counts**2 * spread + variance
    return Shrunken(
        mean=prior + spread * counts * (sums - counts * prior) / total, variance=spread * variance / total
    )
