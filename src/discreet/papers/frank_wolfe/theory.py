"""The poster's error bounds E_emp and E_gen, its noise and its number of rounds, as functions.

The poster prints orders (O tilde): constants and logarithms are skipped, as there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from discreet.core import failure_probability, positive_finite, require
from discreet.papers.bounds import Bound, PublicSizes, printed, proved
from discreet.privacy import gaussian_multiplier


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FrankWolfeSettings:
    """Settings of the Frank-Wolfe theory; None means the value of the poster's example.

    `radius` is k, the bound on the nuclear norm (default: sqrt(users * items), rank one with entries in
    [-1, 1]). `row_bound` is L (default: the root of the mean number of ratings). `rounds` is T (default: the
    number that balances both terms of E_emp).
    """

    radius: float | None = None
    row_bound: float | None = None
    rounds: float | None = None
    delta: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("radius", "row_bound", "rounds"):
            value = getattr(self, name)
            if value is not None:
                positive_finite(name, value)
        require(failure_probability("delta", self.delta) > 0, "delta", self.delta, must="be greater than 0")


def empirical_error(
    sizes: PublicSizes, radius: float, row_bound: float, rounds: float
) -> tuple[float, float]:
    """Return both terms of E_emp: convergence, and noise."""
    seen = sizes.ratings
    noise = radius * row_bound * (sizes.items * rounds) ** 0.25 / (seen * math.sqrt(sizes.epsilon))
    return radius**2 / (seen * rounds), noise


def balanced_rounds(sizes: PublicSizes, radius: float, row_bound: float) -> float:
    """Return the T that makes E_emp least, at least 1."""
    best = 4 * radius * math.sqrt(sizes.epsilon) / (row_bound * math.pow(sizes.items, 0.25))
    return max(1.0, math.pow(best, 0.8))


def general_error(sizes: PublicSizes, radius: float, row_bound: float) -> tuple[float, float]:
    """Return both terms of E_gen, at the poster's T."""
    seen, sides = float(sizes.ratings), sizes.users + sizes.items
    first = (radius * math.sqrt(sides) / seen) ** (2 / 3)
    below = seen ** (13 / 6) * sizes.epsilon * sides ** (1 / 6)
    return first, radius ** (4 / 3) * row_bound * sizes.items**0.25 / math.sqrt(below)


def general_rounds(sizes: PublicSizes, radius: float) -> float:
    """Return the T that the poster prints with E_gen."""
    return max(1.0, math.cbrt(radius**4 / (sizes.ratings * (sizes.users + sizes.items))))


def printed_noise(sizes: PublicSizes, row_bound: float, rounds: float, delta: float) -> float:
    """Return the deviation of the noise on the covariance as the full method states it."""
    return row_bound**2 * math.sqrt(64 * rounds * math.log(1 / delta)) / sizes.epsilon


def honest_noise(epsilon: float, row_bound: float, rounds: float, delta: float) -> float:
    """Return the deviation that the accountant needs: rows of residuals reach 2 L, their squares 4 L^2."""
    return 4 * row_bound**2 * gaussian_multiplier(epsilon, delta) * math.sqrt(rounds)


def bounds(sizes: PublicSizes, settings: FrankWolfeSettings) -> list[Bound]:
    """Return E_emp, E_gen and the noise for public sizes.

    The zero matrix has E_emp and E_gen of at most users L^2 / ratings if cells are observed uniformly, so a
    bound above that is vacuous.
    """
    radius = settings.radius or math.sqrt(sizes.cells)
    row_bound = settings.row_bound or math.sqrt(sizes.ratings / sizes.users)
    rounds = settings.rounds or balanced_rounds(sizes, radius, row_bound)
    zero = sizes.users * row_bound**2 / sizes.ratings
    emp, gen = empirical_error(sizes, radius, row_bound, rounds), general_error(sizes, radius, row_bound)
    emp_terms = f"Convergence {emp[0]:.3g} + noise {emp[1]:.3g} at T = {rounds:.1f}; order only."
    gen_terms = f"{gen[0]:.3g} + {gen[1]:.3g} at T = {general_rounds(sizes, radius):.1f}; order only."
    own = f"delta {settings.delta:g}; L = {row_bound:.3g}, k = {radius:.4g}."
    stated = printed_noise(sizes, row_bound, rounds, settings.delta)
    honest = honest_noise(sizes.epsilon, row_bound, rounds, settings.delta)
    noise, proof = "noise on the covariance", "proofs/printed_frank_wolfe.md"
    return [
        printed("E_emp", "Utility, E_emp", sum(emp), emp_terms, zero),
        printed("E_gen", "Utility, E_gen", sum(gen), f"{gen_terms} Assumes cells observed uniformly.", zero),
        printed(f"{noise}, printed", "Gauss_mat", stated, "The poster's experiments drew an eighth of it."),
        proved(f"{noise}, accounted", proof, honest, own),
    ]
