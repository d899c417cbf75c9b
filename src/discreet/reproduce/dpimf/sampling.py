"""Figure 6: three ways to draw m people, by importance, uniformly, and with the least variance."""

from __future__ import annotations

import numpy as np

from discreet.papers.dpimf.printed import Floats
from discreet.privacy.experiments import largest_weights

_BISECTIONS = 60
_EPSILON = 1.0


def sampling_weights(users: Floats, sample: float) -> dict[str, Floats]:
    """Return the weights 1 / probability of every person for an expected sample of this size."""
    return {
        "importance": _by_importance(_norms(users), sample)[0],
        "uniform": np.full(len(users), len(users) / sample),
        "least variance": _least_variance(np.linalg.norm(users, axis=1), sample),
    }


def figure6(users: Floats, sample: int) -> dict[str, float]:
    """Return how near the weights are to those of least variance, and what each way costs.

    `close`: mean relative difference of the weights; `importance`, `uniform`: variance of the weighted sum
    over the least one; `noise`: the noise that importance needs for epsilon 1, over what uniform needs.
    """
    weights = sampling_weights(users, sample)
    squares = np.sum(users**2, axis=1)
    variance = {name: float(squares @ (weight - 1)) for name, weight in weights.items()}
    best = weights["least variance"]
    norms, plain = _norms(users), len(users) / sample
    uniform_scale = plain * norms.max() / np.log1p(plain * np.expm1(_EPSILON))
    return {
        "close": float(np.mean(np.abs(weights["importance"] / best - 1))),
        "importance": variance["importance"] / variance["least variance"],
        "uniform": variance["uniform"] / variance["least variance"],
        "noise": _by_importance(norms, sample)[1] / uniform_scale,
    }


def _norms(users: Floats) -> Floats:
    return 2 * np.abs(users).sum(axis=1)


def _by_importance(norms: Floats, sample: float) -> tuple[Floats, float]:
    """Find the scale of the noise at which Algorithm 3 draws so many; return weights and scale."""
    low, high = float(norms.max()) / _EPSILON * (1 + 1e-6), float(norms.max()) * 1e6
    for _ in range(_BISECTIONS):
        scale = np.sqrt(low * high)
        weights = largest_weights(norms, epsilon=_EPSILON, scale=scale, max_weight=2.0**32)
        low, high = (scale, high) if np.sum(1 / weights) > sample else (low, scale)
    return weights, float(scale)


def _least_variance(lengths: Floats, sample: float) -> Floats:
    """Return weights inverse to lengths; nobody is drawn more than always."""
    low, high = 0.0, 1 / float(lengths[lengths > 0].min())
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if np.minimum(middle * lengths, 1).sum() > sample else (middle, high)
    return 1 / np.clip(high * lengths, 1e-12, 1)
