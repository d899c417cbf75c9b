"""Calculate the constants of Theorem 1, which the paper prints as bounds: L and beta of both links.

For a link f they are L = sup |f'| / (f (1 - f)) and beta = sup f (1 - f) / f'^2 over |x| <= alpha. With
flipped verdicts the link is c = (1 - p) h + p (1 - h), so c' = (1 - 2p) h' and p = 1 / (1 + e^epsilon).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr

Floats = npt.NDArray[np.float64]
ALPHA, SIGMA = 1.0, 1.0
EPSILONS = (1.0, 2.0, 4.0)
# Suprema of even, smooth functions on [0, alpha]; so many points leave less than 1e-8.
_POINTS = 20_001


class Constants(NamedTuple):
    """Hold L and beta."""

    steepness: float
    flatness: float


def link(name: str, x: Floats) -> tuple[Floats, Floats]:
    """Return h and its derivative."""
    if name == "logistic":
        return expit(x), expit(x) * expit(-x)
    return ndtr(x / SIGMA), np.exp(-((x / SIGMA) ** 2) / 2) / (SIGMA * math.sqrt(2 * math.pi))


def constants(name: str, epsilon: float = math.inf) -> Constants:
    """Return L and beta of a link whose verdicts are flipped with probability 1 / (1 + e^epsilon)."""
    flip = 0.0 if math.isinf(epsilon) else 1 / (1 + math.exp(epsilon))
    plain, slope = link(name, np.linspace(-ALPHA, ALPHA, _POINTS))
    told, slope = (1 - flip) * plain + flip * (1 - plain), (1 - 2 * flip) * slope
    spread = told * (1 - told)
    return Constants(float(np.max(np.abs(slope) / spread)), float(np.max(spread / slope**2)))


def printed(name: str, epsilon: float) -> Constants:
    """Return the bounds that stand behind Theorem 1."""
    told = math.tanh(epsilon / 2)  # 1 - 2p
    if name == "logistic":
        return Constants(told, 1 / (2 * told**2) + math.exp(ALPHA) / 2)
    steepness = 8 * told * (ALPHA / SIGMA + 1) / SIGMA
    return Constants(
        steepness, 1 / (2 * told**2) + math.pi * SIGMA**2 * math.exp(ALPHA**2 / (2 * SIGMA**2)) / 2
    )


def theorem_1_claims() -> dict[str, list[float]]:
    """Return every constant over its printed bound (at most 1 is printed), and the constants themselves."""
    found: dict[str, list[float]] = {}
    for name in ("logistic", "probit"):
        for epsilon in EPSILONS:
            true, bound = constants(name, epsilon), printed(name, epsilon)
            found[f"theorem1-L-{name}-{epsilon:g}"] = [true.steepness / bound.steepness]
            found[f"theorem1-beta-{name}-{epsilon:g}"] = [true.flatness / bound.flatness]
            found[f"theorem1-beta-{name}-{epsilon:g}-is"] = [true.flatness]
    plain = {name: constants(name).flatness for name in ("logistic", "probit")}
    # Appendix A: e^alpha for the logistic link, at most pi sigma^2 e^(alpha^2 / 2 sigma^2) for probit.
    found["theorem1-beta-h-logistic"] = [plain["logistic"]]
    found["theorem1-beta-h-probit"] = [plain["probit"]]
    return found
