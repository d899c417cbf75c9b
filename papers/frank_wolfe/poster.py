"""The poster's own procedure, step by step, at the noise it needs or at the noise its experiments used.

Dense and slow on purpose: it is here to be compared with, not to be used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.randomness import PrivacyRandom

FAILURE = 0.05  # beta: how often the bound on the noise may fail
# The experiments used this much less noise than the algorithm states.
THEIR_SAVING = 8.0


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

    def their_noise(self, epsilon: float) -> float:
        """Return what the experiments used: the stated deviation over 8. NOT PRIVATE at this epsilon."""
        stated = self.row_bound**2 * math.sqrt(64 * self.rounds * math.log(1 / self.delta)) / epsilon
        return stated / THEIR_SAVING

    def complete(self, values, seen, noise: float, seed: int):
        """Return the completed matrix; `values` are zero where nothing was seen."""
        n_items, random = values.shape[1], PrivacyRandom.simulate(seed)
        bound = self.row_bound
        target = values * np.minimum(1, bound / np.maximum(np.linalg.norm(values, axis=1), 1e-12))[:, None]
        matrix = np.zeros_like(target)
        raised = math.sqrt(noise * math.log(n_items / FAILURE)) * n_items**0.25
        for _ in range(self.rounds):
            errors = seen * (matrix - target)
            moment = (errors.T @ errors).astype(np.float64)
            if noise:
                moment = Gaussian(sigma=noise, l2_sensitivity=4 * bound**2).release_symmetric(moment, random)
            eigenvalues, vectors = np.linalg.eigh(moment)
            direction = vectors[:, -1].astype(target.dtype)
            places = errors @ direction / (math.sqrt(max(eigenvalues[-1], 0.0)) + raised)
            matrix *= 1 - 1 / self.rounds
            matrix -= (self.radius / self.rounds) * np.outer(places, direction)
            lengths = np.linalg.norm(seen * matrix, axis=1)
            matrix *= np.minimum(1, bound / np.maximum(lengths, 1e-12))[:, None].astype(target.dtype)
        return matrix
