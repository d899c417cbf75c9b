"""Add noise in experiments that repeat a paper's numbers, and compute weights of importance samples.

These functions take simulated sources only, so nothing they return protects or claims to protect a user.
Everything that leaves real data under a guarantee goes through a session.
"""

from __future__ import annotations

import numpy.typing as npt

from discreet.core import Floats, PrivacyRandom
from discreet.privacy.errors import RealNoiseInExperiment
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.mechanisms.subsampling import ImportanceSampling


def simulated_laplace(
    values: npt.ArrayLike, *, epsilon: float, bound: float, random: PrivacyRandom
) -> Floats:
    """Return values with the Laplace noise of this epsilon and l1 sensitivity."""
    _refuse_real(random)
    return Laplace.calibrated(epsilon=epsilon, l1_sensitivity=bound).release(values, random)


def simulated_gaussian(
    values: npt.ArrayLike, *, sigma: float, bound: float, random: PrivacyRandom, symmetric: bool = False
) -> Floats:
    """Return values with Gaussian noise of this deviation; `bound` is the l2 sensitivity it is meant for."""
    _refuse_real(random)
    noise = Gaussian(sigma=sigma, l2_sensitivity=bound)
    return noise.release_symmetric(values, random) if symmetric else noise.release(values, random)


def largest_weights(
    norms: npt.ArrayLike, *, epsilon: float, scale: float, max_weight: float = 1024.0
) -> Floats:
    """Return the largest weight of each norm in an importance sample with Laplace noise of this scale."""
    return ImportanceSampling(epsilon=epsilon, scale=scale, max_weight=max_weight).weights(norms)


def sampling_loss(norms: npt.ArrayLike, weights: npt.ArrayLike, *, epsilon: float, scale: float) -> Floats:
    """Return the privacy loss of each norm at its weight."""
    return ImportanceSampling(epsilon=epsilon, scale=scale).loss(norms, weights)


def sampling_scale(*, epsilon: float, largest_norm: float) -> float:
    """Return the smallest scale of noise with which importance sampling accepts vectors of this l1 norm."""
    return ImportanceSampling.calibrated(epsilon=epsilon, largest_norm=largest_norm).scale


def _refuse_real(random: PrivacyRandom) -> None:
    if not random.simulated:
        raise RealNoiseInExperiment()
