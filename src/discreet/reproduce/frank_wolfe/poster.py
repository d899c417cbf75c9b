"""The printed procedure in dense algebra, without means taken off: what the theorems speak of.

`discreet.PrintedFrankWolfe` is the same for ratings; this one knows the whole truth and may be wasteful.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.experiments import simulated_gaussian

FAILURE = 0.05  # beta: how often the bound on the noise may fail


@dataclass(frozen=True, kw_only=True)
class Poster:
    """Hold the settings: row bound L, nuclear norm k and number of rounds T, all assumed public."""

    row_bound: float
    radius: float
    rounds: int
    delta: float = 1e-6

    def honest_noise(self, epsilon: float) -> float:
        """Return the deviation that the accountant asks for: rows of residuals reach 2 L, squares 4 L^2."""
        if math.isinf(epsilon):
            return 0.0
        return 4 * self.row_bound**2 * gaussian_multiplier(epsilon, self.delta) * math.sqrt(self.rounds)

    def complete(self, values, seen, noise: float, seed: int):
        """Return the completed matrix; `values` are zero where nothing was seen, and rows at most L long."""
        n_items, random = values.shape[1], PrivacyRandom.simulate(seed)
        bound = self.row_bound
        matrix = np.zeros_like(values)
        raised = math.sqrt(noise * math.log(n_items / FAILURE)) * n_items**0.25
        for _ in range(self.rounds):
            errors = seen * matrix - values
            moment = (errors.T @ errors).astype(np.float64)
            if noise:
                moment = simulated_gaussian(
                    moment, sigma=noise, bound=4 * bound**2, random=random, symmetric=True
                )
            eigenvalues, vectors = np.linalg.eigh(moment)
            direction = vectors[:, -1].astype(values.dtype)
            places = errors @ direction / (math.sqrt(max(eigenvalues[-1], 0.0)) + raised)
            matrix *= 1 - 1 / self.rounds
            matrix -= (self.radius / self.rounds) * np.outer(places, direction)
            lengths = np.linalg.norm(seen * matrix, axis=1)
            matrix *= np.minimum(1, bound / np.maximum(lengths, 1e-12))[:, None].astype(values.dtype)
        return matrix
