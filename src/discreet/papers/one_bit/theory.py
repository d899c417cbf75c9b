"""Theorems 1 to 4 of the one-bit paper as functions: steepness, flatness, sensitivity and error bounds.

For a link f, L = sup |f'| / (f (1 - f)) and beta = sup f (1 - f) / f'^2 over |x| <= alpha. Flipped ratings
have the link c = (1 - p) h + p (1 - h), so c' = (1 - 2 p) h' with p = 1 / (1 + e^epsilon). The constants C of
the error bounds aren't printed; they are 1 here, so that values show the order only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.special import expit, ndtr

from discreet.core import Floats, integer, positive_finite, require
from discreet.papers.bounds import Bound, PublicSizes, printed, proved, refuted

# Suprema of even, smooth functions on [0, alpha]; with so many points the error is less than 1e-8.
_POINTS = 20_001
LINKS = ("logistic", "probit")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitSettings:
    """Settings of the one-bit theory: rank r, bound alpha, link, sigma of probit, steps K and clamp C."""

    rank: int = 1
    bound: float = 1.0
    link: str = "logistic"
    sigma: float = 1.0
    steps: int = 5
    clamp: float = 0.5

    def __post_init__(self) -> None:
        integer("rank", self.rank, least=1)
        integer("steps", self.steps, least=1)
        for name in ("bound", "sigma", "clamp"):
            positive_finite(name, getattr(self, name))
        require(self.link in LINKS, "link", self.link, must=f"be one of {', '.join(LINKS)}")


class LinkConstants(NamedTuple):
    """Steepness L and flatness beta of a link."""

    steepness: float
    flatness: float


def link_and_slope(name: str, x: Floats, sigma: float = 1.0) -> tuple[Floats, Floats]:
    """Return h and its derivative."""
    if name == "logistic":
        return expit(x), expit(x) * expit(-x)
    slope = np.exp(-((x / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))
    return np.asarray(ndtr(x / sigma)), np.asarray(slope)


def link_constants(
    name: str, epsilon: float = math.inf, *, bound: float = 1.0, sigma: float = 1.0
) -> LinkConstants:
    """Return L and beta of a link whose ratings are flipped with probability 1 / (1 + e^epsilon)."""
    flip = 0.0 if math.isinf(epsilon) else float(expit(-epsilon))
    plain, slope = link_and_slope(name, np.linspace(-bound, bound, _POINTS), sigma)
    flipped, slope = (1 - flip) * plain + flip * (1 - plain), (1 - 2 * flip) * slope
    spread = flipped * (1 - flipped)
    with np.errstate(divide="ignore", over="ignore"):
        return LinkConstants(float(np.max(np.abs(slope) / spread)), float(np.max(spread / slope**2)))


def printed_constants(name: str, epsilon: float, *, bound: float = 1.0, sigma: float = 1.0) -> LinkConstants:
    """Return the bounds on L and beta that the paper prints after Theorem 1."""
    reliable = math.tanh(epsilon / 2)  # 1 - 2p
    if name == "logistic":
        return LinkConstants(reliable, 1 / (2 * reliable**2) + math.exp(bound) / 2)
    flat = math.pi * sigma**2 * math.exp(bound**2 / (2 * sigma**2))
    return LinkConstants(8 * reliable * (bound / sigma + 1) / sigma, 1 / (2 * reliable**2) + flat / 2)


def printed_sensitivity(name: str, *, bound: float = 1.0, sigma: float = 1.0) -> float:
    """Return the Delta of Theorem 2 as printed: 1 for the logistic link, 2 h'(0) / h(-alpha) for probit."""
    if name == "logistic":
        return 1.0
    tail = float(ndtr(-bound / sigma))
    return 2 / (sigma * math.sqrt(2 * math.pi)) / tail if tail else math.inf


def common_error(sizes: PublicSizes, rank: int, steepness: float, flatness: float, bound: float) -> float:
    """Return the first term of Theorems 1, 2 and 4 with constant 1, as a mean squared error per cell."""
    n, sides = sizes.ratings, sizes.users + sizes.items
    observed = math.sqrt(n + sizes.cells * math.log(sides))
    return bound * steepness * flatness * math.sqrt(rank * sides / n) * math.sqrt(observed / n)


def objective_term(sizes: PublicSizes, sensitivity: float, flatness: float) -> float:
    """Return what Theorem 2 adds for the noise in the objective."""
    return 8 * math.sqrt(2) * sensitivity * flatness / (sizes.epsilon * math.cbrt(sizes.ratings))


def output_term(sizes: PublicSizes, bound: float) -> float:
    """Return what Theorem 4 adds for the noise on the output, with constant 1."""
    return bound**2 * math.log(sizes.users + sizes.items) ** 2 / sizes.epsilon**2


def bounds(sizes: PublicSizes, settings: OneBitSettings) -> list[Bound]:
    """Return L, beta, noise levels and error bounds of the four mechanisms.

    The zero matrix has a mean squared error of at most alpha^2, so a bound above alpha^2 is vacuous.
    """
    alpha, own = settings.bound, {"bound": settings.bound, "sigma": settings.sigma}
    flipped = link_constants(settings.link, sizes.epsilon, **own)
    stated = printed_constants(settings.link, sizes.epsilon, **own)
    plain = link_constants(settings.link, **own)
    first = common_error(sizes, settings.rank, *flipped, alpha)
    other = common_error(sizes, settings.rank, *plain, alpha)
    delta = printed_sensitivity(settings.link, **own)
    objective = other + objective_term(sizes, delta, plain.flatness)
    order = "Constant C of the theorem taken as 1: the order only."
    end = ", refuted." if flipped.flatness > stated.flatness * (1 + 1e-9) else "."
    gradient = f"{settings.steps} steps, gradients clamped to {settings.clamp:g}."
    cells = f"Protects one cell. All {sizes.cells:,} cells cost {sizes.cells * sizes.epsilon:,.0f}."
    return [
        proved(
            "L of flipped ratings", "Theorem 1", flipped.steepness, f"Printed bound: {stated.steepness:.4g}."
        ),
        proved(
            "beta of flipped ratings",
            "Theorem 1",
            flipped.flatness,
            f"Printed bound: {stated.flatness:.4g}{end}",
        ),
        printed("input: mean squared error", "Theorem 1", first, order, alpha**2),
        _sensitivity(settings.link, delta, plain.steepness),
        printed("objective: mean squared error", "Theorem 2", objective, order, alpha**2),
        proved(
            "gradient: Laplace scale per step",
            "Theorem 3",
            2 * settings.clamp * settings.steps / sizes.epsilon,
            gradient,
        ),
        proved("output: Laplace scale per cell", "Theorem 4", 2 * alpha / sizes.epsilon, cells),
        printed(
            "output: mean squared error", "Theorem 4", other + output_term(sizes, alpha), order, alpha**2
        ),
    ]


def _sensitivity(link: str, delta: float, exact: float) -> Bound:
    """Return Delta of Theorem 2, whose guarantee follows for the logistic link alone."""
    name, note = "objective: Delta", f"Exact supremum: {exact:.4g}."
    if link == "logistic":
        return printed(name, "Theorem 2", delta, note)
    return refuted(
        name, "Theorem 2", delta, f"{note} The proof skips the Jacobian, so the guarantee doesn't follow."
    )
