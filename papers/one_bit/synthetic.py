"""Figures 1, 4 and 5: the average relative error on synthetic matrices, as the paper sets them up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from discreet.data.datasets.synthetic import OneBitSample, one_bit
from discreet.models.one_bit.estimators import OneBitGradient, OneBitInput, OneBitObjective
from discreet.privacy.mechanisms.additive import Laplace
from discreet.randomness import PrivacyRandom

Floats = npt.NDArray[np.float64]
METHODS = ("clear", "input", "objective", "gradient", "output")
# The paper does not say how many gradient steps it takes. At these epsilons one is best: every further one
# divides epsilon again and tells the same secret.
ROUNDS = 1


def complete(sample: OneBitSample, method: str, epsilon: float, link: str, seed: int) -> Floats:
    """Return the completed matrix with the paper's bound of 1 and radius sqrt(d1 d2)."""
    side = sample.truth.shape
    settings = {
        "link": link,
        "bound": 1.0,
        "radius": math.sqrt(side[0] * side[1]),
        "leveling": 0.0,
        "tolerance": 1e-4,
    }
    random = PrivacyRandom.simulate(seed)
    if method == "input":
        model = OneBitInput(epsilon=epsilon, **settings).fit(sample.data, random=random)
    elif method == "objective":
        model = OneBitObjective(epsilon=epsilon, **settings).fit(sample.data, random=random)
    elif method == "gradient":
        model = OneBitGradient(epsilon=epsilon, rounds=ROUNDS, **settings).fit(sample.data, random=random)
    else:
        model = OneBitInput(epsilon=math.inf, **settings).fit(sample.data, random=random)
    return model.scorer.left @ model.scorer.right.T


def with_printed_noise(matrix: Floats, epsilon: float, seed: int) -> Floats:
    """Add the printed noise to every entry; this protects single entries, NOT the matrix."""
    noise = Laplace.calibrated(epsilon=epsilon, l1_sensitivity=2.0)
    return noise.release(np.clip(matrix, -1, 1), PrivacyRandom.simulate(seed))


def relative_error(matrix: Floats, truth: Floats) -> float:
    """Return |matrix - truth|^2 / |truth|^2."""
    return float(np.sum((matrix - truth) ** 2) / np.sum(truth**2))


def errors(
    link: str, epsilons: Sequence[float], draws: Iterable[int], observed: float = 0.15, side: int = 100
) -> dict[str, list[list[float]]]:
    """Return, for each method and epsilon, the error of every draw."""
    found: dict[str, list[list[float]]] = {method: [[] for _ in epsilons] for method in METHODS}
    for seed in draws:
        sample = one_bit(n_users=side, n_items=side, link=link, observed=observed, seed=seed)
        clear = complete(sample, "clear", math.inf, link, seed)
        for place, epsilon in enumerate(epsilons):
            found["clear"][place].append(relative_error(clear, sample.truth))
            noised = with_printed_noise(clear, epsilon, seed)
            found["output"][place].append(relative_error(noised, sample.truth))
            for method in ("input", "objective", "gradient"):
                matrix = complete(sample, method, epsilon, link, seed)
                found[method][place].append(relative_error(matrix, sample.truth))
    return found
