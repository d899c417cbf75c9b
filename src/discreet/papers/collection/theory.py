"""Theorems 1 to 3 of the collection paper: what a user's row costs, the bound rho, and the recovery error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from discreet.collect.estimate import rho_bound, rho_expected
from discreet.core import failure_probability, integer, non_negative, require
from discreet.papers.bounds import Bound, PublicSizes, printed, proved
from discreet.privacy.mechanisms.cells import CellMechanism
from discreet.privacy.mechanisms.local import hidden_numbers, hidden_stars


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSettings:
    """Settings of the collection theory: levels d, tolerance gamma, and rho_0, the noise of ratings."""

    levels: int = 5
    gamma: float = 0.05
    intrinsic: float = 0.0

    def __post_init__(self) -> None:
        integer("levels", self.levels, least=2)
        require(failure_probability("gamma", self.gamma) > 0, "gamma", self.gamma, must="be greater than 0")
        non_negative("intrinsic", self.intrinsic)


def reported_share(mechanism: CellMechanism, sizes: PublicSizes) -> float:
    """Return p: the expected share of cells that come back with a number."""
    rated = sizes.ratings / sizes.cells
    return rated * mechanism.keep + (1 - rated) * mechanism.fake


def fake_share(mechanism: CellMechanism, sizes: PublicSizes) -> float:
    """Return the expected share of reports that no rating is behind."""
    rated = sizes.ratings / sizes.cells
    return (1 - rated) * mechanism.fake / reported_share(mechanism, sizes)


def recovery_error(rho: float, share: float, cells: int) -> float:
    """Return equation 5 as a root mean squared error per cell, with constant C_0 = 1."""
    return rho / math.sqrt(share * cells)


def bounds(sizes: PublicSizes, settings: CollectionSettings) -> list[Bound]:
    """Return rho of Theorem 3, the expected misfit, and the error of equation 5 for both mechanisms.

    The middle of the scale is at most half the scale away from every rating, so an error bound above half the
    scale is vacuous. Stars count in levels, numbers in half the scale.
    """
    stars = hidden_stars(epsilon=sizes.epsilon, low=1.0, high=float(settings.levels), step=1.0)
    numbers = hidden_numbers(epsilon=sizes.epsilon, low=-1.0, high=1.0)
    cost = f"{sizes.items:,} cells of epsilon {sizes.epsilon:g} each."
    found = [proved("epsilon of one user", "Theorems 1 and 2", sizes.items * sizes.epsilon, cost)]
    for mechanism, name, half in (
        (stars, "randomized response", (settings.levels - 1) / 2),
        (numbers, "modified Laplace", 1.0),
    ):
        size = {"people": sizes.users, "items": sizes.items, "rated": sizes.ratings}
        rho = rho_bound(mechanism, **size, intrinsic=settings.intrinsic, gamma=settings.gamma)
        expected = rho_expected(mechanism, **size, intrinsic=settings.intrinsic)
        share, fakes = reported_share(mechanism, sizes), fake_share(mechanism, sizes)
        misfit = f"Expected misfit {expected:.4g}. {fakes:.0%} of the reports are invented."
        back = f"C_0 taken as 1; {share:.1%} of all cells come back."
        error = recovery_error(rho, share, sizes.cells)
        found += [
            proved(f"{name}: rho", "Theorem 3", rho, misfit),
            printed(f"{name}: error per cell", "Equation 5", error, back, half),
        ]
    return found
