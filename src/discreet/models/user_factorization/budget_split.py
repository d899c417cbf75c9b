"""Hand out the budget share by share; released numbers decide on what, never how much there is in all."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from discreet.core.checks import ParameterError
from discreet.privacy.accounting.gaussian import split_gaussian

# What comes first: the overall mean and number of people, and a first look at the items.
MEAN, LOOK = 0.02, 0.08
# With this many people for each unit of noise item vectors are worth a release of their own.
# A person with fewer ratings than these counts for a part of one.
_MANY_PEOPLE = 2500.0
ENOUGH_RATINGS = 32.0


@final
class BudgetSplit:
    """Hold what is left of one Gaussian release with this multiplier; 0 stands for no noise at all."""

    def __init__(self, multiplier: float) -> None:
        self.multiplier = multiplier
        self.left = 1.0

    def take(self, share: float) -> float:
        """Return the multiplier of a release that costs this share of the whole."""
        if not 0 < share <= self.left + 1e-12:
            raise ParameterError(f"A share of {share:g} is asked for and {self.left:g} are left.")
        self.left -= share
        if not self.multiplier:
            return 0.0
        rest = 1 - share
        return split_gaussian(self.multiplier, (share, rest) if rest > 0 else (1.0,))[0]

    def take_rest(self) -> float:
        """Return the multiplier of a release that costs all that is left."""
        return self.take(self.left)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShares:
    """Hold shares of the budget for a fit from ratings, after the mean and the first look.

    `effects` go to the items' effects, `glance` to a rough second moment of ratings, `choices` to which items
    are chosen together, `places` to what follows if that shows crowds. Of all that is then left, `moment` (if
    the glance showed taste, or a second look is worth it) and `scales` are parts, and the rest goes to the
    refit, or to effects once more.
    """

    effects: float = 0.28
    glance: float = 0.03
    choices: float = 0.22
    places: float = 0.20
    moment: float = 0.35
    scales: float = 0.03

    @classmethod
    def of(cls, many: bool) -> BudgetShares:
        """Return the shares for few or many people for each unit of noise."""
        return cls(effects=0.14, choices=0.18, places=0.28) if many else cls()

    def for_strong_factors(self) -> BudgetShares:
        """Return the shares where ratings tell more than choices do."""
        return replace(self, choices=0.05, places=0.07)


def users_per_noise(people: float, multiplier: float) -> float:
    """Return how many people there are for each unit of noise in one release of the whole budget."""
    return people / multiplier if multiplier else math.inf


def are_many(ratio: float, ratings_per_person: float) -> bool:
    """Tell whether item vectors are worth a release, by people for each unit of noise and ratings of each."""
    return ratio * min(ratings_per_person / ENOUGH_RATINGS, 1.0) >= _MANY_PEOPLE
