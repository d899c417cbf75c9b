"""Figures 1, 4 and 5: the average relative error on synthetic matrices, as the paper sets them up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.data.datasets.synthetic import OneBitSample, one_bit
from discreet.reproduce.one_bit.methods import CLEAR, KINDS, OUTPUT, fit, with_printed_noise

Floats = npt.NDArray[np.float64]


def complete(
    sample: OneBitSample, method: str, epsilon: float, link: str, seed: int, iterations: int
) -> Floats:
    """Return the completed matrix with the paper's bound of 1."""
    settings = {"link": link, "bound": 1.0, "tolerance": 1e-4, "iterations": iterations}
    model = fit(sample.data, method, epsilon, seed, **settings)
    return model.scorer.left @ model.scorer.right.T


def relative_error(matrix: Floats, truth: Floats) -> float:
    """Return |matrix - truth|^2 / |truth|^2."""
    return float(np.sum((matrix - truth) ** 2) / np.sum(truth**2))


def errors(
    link: str, epsilons: Sequence[float], seed: int, *, observed: float = 0.15, side: int, iterations: int
) -> dict[str, list[float]]:
    """Return, for one draw, the error of each method at each epsilon."""
    sample = one_bit(n_users=side, n_items=side, link=link, observed=observed, seed=seed)
    clear = complete(sample, CLEAR, math.inf, link, seed, iterations)
    found = {
        method: [
            relative_error(complete(sample, method, epsilon, link, seed, iterations), sample.truth)
            for epsilon in epsilons
        ]
        for method in KINDS
    }
    found[OUTPUT] = [
        relative_error(with_printed_noise(clear, 1.0, epsilon, seed), sample.truth) for epsilon in epsilons
    ]
    found[CLEAR] = [relative_error(clear, sample.truth)] * len(epsilons)
    return found
