"""Estimate amounts that are never negative from the same with known normal noise.

How amounts are spread (a few large, most next to nothing) is learned from all of them: the weights of a grid
of possible amounts maximize the likelihood. Each amount is then its posterior mean. Neither a normal spread
nor cutting off at zero does justice to popularity: one shrinks the largest, the other raises the rest.

References:
    Kiefer and Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of infinitely many
    incidental parameters", 1956.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats

_POINTS, _STEPS = 30, 40
# The grid, in units of the noise: its smallest amount above zero, and its largest.
_SMALLEST, _LARGEST = 0.02, 8.0
# From the first on an amount is more and more what was seen, from the second on it is that alone.
_SURE, _CERTAIN = 4.0, 6.0
# Numbers at a time, so that memory stays bounded.
_CHUNK = 1 << 16


def posterior_amounts(noisy: Floats, noise: float) -> Floats:
    """Return the posterior mean of each amount; it grows with the noisy one, and is above zero."""
    noise = max(noise, 1e-9 * max(float(np.abs(noisy).max(initial=0.0)), 1e-9))
    seen = noisy / noise
    grid = np.concatenate([[0.0], np.geomspace(_SMALLEST, _LARGEST, _POINTS - 1)])
    weights = np.full(_POINTS, 1 / _POINTS)
    chunks = [np.minimum(seen[start : start + _CHUNK], _LARGEST) for start in range(0, seen.size, _CHUNK)]
    for _ in range(_STEPS):
        held = sum((_posterior(chunk, grid, weights).sum(axis=0) for chunk in chunks), np.zeros(_POINTS))
        weights = held / max(seen.size, 1)
    found = np.concatenate([*(_posterior(chunk, grid, weights) @ grid for chunk in chunks), np.zeros(0)])
    sure = np.clip((seen - _SURE) / (_CERTAIN - _SURE), 0, 1)
    amounts: Floats = noise * np.maximum((1 - sure) * found + sure * seen, 1e-6)
    return amounts


def _posterior(seen: Floats, grid: Floats, weights: Floats) -> Floats:
    """Return the chance of every grid point, for each number a row; the noise is the unit."""
    logarithm = np.log(np.maximum(weights, 1e-300)) - (seen[:, None] - grid) ** 2 / 2
    logarithm -= logarithm.max(axis=1, keepdims=True)
    chances: Floats = np.exp(logarithm)
    chances /= chances.sum(axis=1, keepdims=True)
    return chances
