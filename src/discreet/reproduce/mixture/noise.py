"""Figure 2: noise of the plain and the bounded mechanism, and whether a mixture of Gaussians describes it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.privacy.experiments import simulated_laplace
from discreet.privacy.mechanisms.local import rating_mechanism

SAMPLES = 100_000
_GAUSSIANS, _STEPS = 3, 200
# Parts of the samples that are fitted apart, so that gains have a standard error.
_PARTS = 10
Floats = npt.NDArray[np.float64]


def draw_noise(data: Interactions) -> dict[float, tuple[Floats, Floats]]:
    """Return plain and bounded noise on MovieLens ratings at epsilon 0.1 and 1."""
    random = PrivacyRandom.simulate(2)
    ratings = data.values[:SAMPLES].astype(np.float64)
    drawn = {}
    for epsilon in (0.1, 1.0):
        plain = simulated_laplace(ratings, epsilon=epsilon, bound=4.0, random=random)
        mechanism = rating_mechanism("bounded-laplace", epsilon=epsilon, low=1, high=5, points=1025)
        drawn[epsilon] = plain - ratings, mechanism.release(ratings, random) - ratings
    return drawn


def noise_claims(drawn: Mapping[float, tuple[Floats, Floats]]) -> dict[str, list[float]]:
    """Return shares beyond the scale, and what a mixture gains over one Gaussian and over one with a mean."""
    found: dict[str, list[float]] = {}
    for epsilon, (plain, bounded) in drawn.items():
        key = f"{epsilon:g}"
        # Laplace noise of scale 4 / epsilon leaves [-4, 4] with probability e^-epsilon.
        found[f"laplace-outside-{key}"] = [float(np.mean(np.abs(plain) > 4))]
        found[f"bounded-outside-{key}"] = [float(np.mean(np.abs(bounded) > 4))]
        gains = [_gains(part[::2], part[1::2]) for part in np.array_split(bounded, _PARTS)]
        found[f"mixture-gain-{key}"] = [mixture for mixture, _ in gains]
        found[f"mean-gain-{key}"] = [mean for _, mean in gains]
    return found


def _gains(first: Floats, second: Floats) -> tuple[float, float]:
    """Return what a mixture, and one Gaussian with a mean, gain on the second half over one without."""
    plain = _gaussian(first, second, 0.0)
    return (
        _zero_mean_mixture(first, second) - plain,
        _gaussian(first, second, float(first.mean())) - plain,
    )


def _gaussian(first: Floats, second: Floats, mean: float) -> float:
    """Return the log-likelihood a rating of the second half under a Gaussian fitted to the first."""
    variance = float(np.mean((first - mean) ** 2))
    return float(-0.5 * np.log(2 * np.pi * variance) - np.mean((second - mean) ** 2) / (2 * variance))


def _zero_mean_mixture(first: Floats, second: Floats) -> float:
    """Return the same for a mixture of Gaussians of mean zero, fitted by expectation-maximization."""
    shares = np.full(_GAUSSIANS, 1 / _GAUSSIANS)
    variances = np.mean(first**2) * 4.0 ** np.arange(1 - _GAUSSIANS, 1)
    squares = first[:, None] ** 2
    for _ in range(_STEPS):
        density = _densities(squares, shares, variances)
        likely = density / density.sum(axis=1, keepdims=True)
        counts = likely.sum(axis=0)
        shares, variances = counts / counts.sum(), (likely * squares).sum(axis=0) / counts
    return float(np.mean(np.log(_densities(second[:, None] ** 2, shares, variances).sum(axis=1))))


def _densities(squares: Floats, shares: Floats, variances: Floats) -> Floats:
    heights: Floats = shares / np.sqrt(2 * np.pi * variances) * np.exp(-squares / (2 * variances))
    return heights
