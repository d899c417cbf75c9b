"""The budget of a party whose noise is shared: exact costs, and how much noise each answer needs.

Training plans with the noise that all parties add together. The fewest parties that a sum may have must add
enough for the guarantee, so all of them together add more. A question states the planned deviation. Its cost
is the square of the statistic's bound over that deviation, an exact fraction. All costs together are at
most the precision that the guarantee allows (proofs/federated.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.noise_plans import gaussian_sigma

if TYPE_CHECKING:
    from dp_accounting import DpEvent


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

    @property
    def is_private(self) -> bool:
        """Return whether there is a guarantee. At an infinite epsilon nothing is metered."""
        return math.isfinite(self.epsilon)

    @property
    def multiplier(self) -> float:
        """Return the multiplier of one release that keeps the guarantee."""
        return gaussian_multiplier(self.epsilon, self.delta)

    @property
    def planned_epsilon(self) -> float:
        """Return the epsilon of the noise that all parties add together. Training plans with it."""
        if not self.is_private:
            return self.epsilon
        wide = self.multiplier * math.sqrt(self.parties / self.least)
        return min(gaussian_epsilon(wide, self.delta), self.epsilon)

    @property
    def planned_multiplier(self) -> float:
        """Return the multiplier of one release with the noise of all parties."""
        return gaussian_multiplier(self.planned_epsilon, self.delta)

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
