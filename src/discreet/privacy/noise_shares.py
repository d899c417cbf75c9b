"""Shares of noise: each of several parties adds a part, and even the fewest parties of a sum add enough.

Numbers are whole multiples of 2^-bits in a ring of 64 bits, so that masks can hide them. A sum of discrete
Gaussians hides as much as one Gaussian of their joint variance, less 4 per share (proofs/federated.md).

Training plans with the noise that all parties add together. The fewest parties that a sum may have must add
enough for the guarantee, so all of them together add more. A question states the planned deviation. Its cost
is the square of the statistic's bound over that deviation, an exact fraction. All costs together are at most
the precision that the guarantee allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import PrivacyRandom
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.accounting.rounding import round_up
from discreet.privacy.mechanisms.additive import FixedPoint, Gaussian, gaussian_sigma
from discreet.privacy.sampling.draws import LARGEST_SCALE, add_discrete_gaussian

if TYPE_CHECKING:
    from dp_accounting import DpEvent


class ShareUnits(NamedTuple):
    """How noise is shared: by how many parties at least, in units of 2^-bits."""

    least: int
    bits: int

    def width(self, sigma: float, part: Fraction = Fraction(1)) -> float:
        """Return the deviation of one share of `part` of the variance sigma^2, in units."""
        if sigma == 0:
            return 0.0
        variance = part * Fraction(sigma) ** 2 * 4**self.bits / self.least + 4
        return round_up(Fraction(math.isqrt(math.ceil(variance)) + 1))

    def deviation(self, sigma: float) -> float:
        """Return the deviation of one share of noise with this total deviation."""
        return math.ldexp(self.width(sigma), -self.bits)

    def draws(self, deviation: float) -> bool:
        """Return whether the sampler can draw a share of this deviation."""
        return math.ldexp(deviation, self.bits) <= LARGEST_SCALE


def with_share(
    sums: FixedPoint, sigma: float, units: ShareUnits, random: PrivacyRandom, *, symmetric: bool
) -> npt.NDArray[np.uint64]:
    """Return exact sums with one share of the noise, in the ring.

    For a symmetric matrix, return one triangle.
    """
    counts = upper(sums.counts) if symmetric else sums.counts.ravel()
    numbers = counts.astype(np.int64) << (units.bits - sums.bits)
    if not symmetric:
        return _added(numbers, units.width(sigma), random).view(np.uint64)
    diagonal = upper(np.eye(len(sums.counts), dtype=np.bool_))
    numbers[diagonal] = _added(numbers[diagonal], units.width(sigma), random)
    # An entry off the diagonal counts twice in the Frobenius norm.
    numbers[~diagonal] = _added(numbers[~diagonal], units.width(sigma, Fraction(1, 2)), random)
    return numbers.view(np.uint64)


def _added(numbers: npt.NDArray[np.int64], width: float, random: PrivacyRandom) -> npt.NDArray[np.int64]:
    """Return the caller's numbers with noise added in place."""
    if width:
        add_discrete_gaussian(numbers, width, random)
    return numbers


def upper(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the upper triangle with the diagonal, row by row."""
    return np.asarray(matrix)[np.triu_indices(len(matrix))]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBudget:
    """The answers of one party under (`epsilon`, `delta`) if `least` of `parties` shares of noise suffice.

    Example:
        >>> budget = SharedBudget(epsilon=1.0, delta=1e-6, parties=4, least=2)
        >>> whole = budget.planned_multiplier
        >>> budget.covers([budget.price(1.0, whole)])
        True
        >>> budget.covers([budget.price(1.0, whole), budget.price(1.0, 1e6)])
        False
    """

    epsilon: float
    delta: float
    parties: int
    least: int
    #: The multiplier of one release that keeps the guarantee.
    multiplier: float = field(init=False, default=0.0)
    #: The epsilon of the noise that all parties add together. Training plans with it.
    planned_epsilon: float = field(init=False, default=math.inf)
    #: The multiplier of one release with the noise of all parties.
    planned_multiplier: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        if self.is_private:
            multiplier = gaussian_multiplier(self.epsilon, self.delta)
            wide = multiplier * math.sqrt(self.parties / self.least)
            planned = min(gaussian_epsilon(wide, self.delta), self.epsilon)
            object.__setattr__(self, "multiplier", multiplier)
            object.__setattr__(self, "planned_epsilon", planned)
            object.__setattr__(self, "planned_multiplier", gaussian_multiplier(planned, self.delta))

    @property
    def is_private(self) -> bool:
        """Return whether there is a guarantee. At an infinite epsilon nothing is metered."""
        return math.isfinite(self.epsilon)

    def price(self, bound: float, sigma: float) -> Fraction | float:
        """Return the exact cost of a sum with this bound and planned deviation. Infinite without noise."""
        if not self.is_private:
            return Fraction(0)
        return (Fraction(bound) / Fraction(sigma)) ** 2 if sigma > 0 else math.inf

    def part(self, price: Fraction | float) -> Fraction:
        """Return the exact part of the budget for a cost. The whole budget is 1."""
        return Fraction(price) * Fraction(self.planned_multiplier) ** 2

    def covers(self, prices: Iterable[Fraction | float]) -> bool:
        """Return whether the guarantee covers answers with these costs together."""
        if not self.is_private:
            return True
        listed = list(prices)
        if not all(0 <= price < math.inf for price in listed):
            return False
        spent = sum((Fraction(price) for price in listed), Fraction(0))
        return self.part(spent) <= 1

    def deviation(self, bound: float, sigma: float) -> float:
        """Return the deviation that the fewest parties add together to a sum with this planned deviation."""
        if not self.is_private or sigma <= 0:
            return 0.0
        return gaussian_sigma(self.multiplier, bound, self.part(self.price(bound, sigma)))

    def events(self) -> list[DpEvent]:
        """Return one Gaussian release: all answers of a party cost no more."""
        return [Gaussian(sigma=self.multiplier, l2_sensitivity=1.0).event()] if self.is_private else []
