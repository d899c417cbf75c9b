"""Name the methods of the figures and fit them with the paper's radius."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.models.fitted import FittedModel
from discreet.papers.one_bit.estimators import OneBitGradient, OneBitInput, OneBitObjective
from discreet.papers.one_bit.task import OneBit
from discreet.privacy.experiments import simulated_laplace

Floats = npt.NDArray[np.float64]
CLEAR, OUTPUT = "clear", "output"
# The paper does not say how many gradient steps it takes. One step of a fixed length is ours, and best.
KINDS: dict[str, tuple[type[OneBit], dict[str, Any]]] = {
    "input": (OneBitInput, {}),
    "objective": (OneBitObjective, {}),
    "gradient": (OneBitGradient, {"rounds": 1}),
    "gradient-printed": (OneBitGradient, {"rounds": 5, "step": "barzilai-borwein"}),
}
PRIVATE = (*KINDS, OUTPUT)
LABELS = {
    "input": "input",
    "objective": "objective",
    "gradient": "gradient, K = 1 (ours)",
    "gradient-printed": "gradient, K = 5 (K is not printed)",
    OUTPUT: "output (a cell)",
    CLEAR: "clear",
}


def fit(data: Interactions, method: str, epsilon: float, seed: int, **settings: Any) -> FittedModel:
    """Fit a method with radius sqrt(d1 d2); the output's noise comes on top of Clear."""
    shared = {"radius": math.sqrt(data.n_users * data.n_items), "leveling": 0.0, **settings}
    kind, own = KINDS.get(method, (OneBitInput, {}))
    level = epsilon if method in KINDS else math.inf
    return kind(epsilon=level, **own, **shared).fit(data, random=PrivacyRandom.simulate(seed))


def with_printed_noise(answers: Floats, bound: float, epsilon: float, seed: int) -> Floats:
    """Add the printed noise to every answer; this protects single entries, NOT the matrix."""
    random = PrivacyRandom.simulate(seed)
    return simulated_laplace(np.clip(answers, -bound, bound), epsilon=epsilon, bound=2 * bound, random=random)
