"""Split the budget into shares; released numbers decide what they are spent on, never the total."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from discreet.core.checks import ParameterError
from discreet.privacy.accounting.gaussian import split_gaussian

# The first shares: the overall mean with the number of users, and the pilot release of the items.
MEAN, LOOK = 0.02, 0.08
# With this many users per unit of noise item vectors are worth a release of their own. Where users have fewer
# ratings than the second number, each counts for a part of a user.
_MANY_USERS = 2500.0
ENOUGH_RATINGS = 32.0


@final
class BudgetSplit:
    """Hold what is left of the budget of one Gaussian release with this multiplier; 0 means no noise."""

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
        """Return the multiplier of a release that costs the rest of the budget."""
        return self.take(self.left)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShares:
    """Hold shares of the budget for a fit from ratings, after the mean and the pilot release of the items.

    `effects` is for the items' effects, `glance` for a pilot release of the second moment of ratings,
    `choices` for co-occurrences and `places` for item embeddings, if co-occurrences are above the noise. Of
    all that is then left, `moment` is the part of the second moment (if the pilot shows latent factors, or
    a second release is worth it) and `scales` that of the factors' second moment. The rest goes to the refit,
    or to effects once more.
    """

    effects: float = 0.28
    glance: float = 0.03
    choices: float = 0.22
    places: float = 0.20
    moment: float = 0.35
    scales: float = 0.03

    @classmethod
    def of(cls, many: bool) -> BudgetShares:
        """Return the shares for few or many users per unit of noise."""
        return cls(effects=0.14, choices=0.18, places=0.28) if many else cls()

    def for_strong_factors(self) -> BudgetShares:
        """Return the shares where ratings are more informative than co-occurrences."""
        return replace(self, choices=0.05, places=0.07)


def users_per_noise(people: float, multiplier: float) -> float:
    """Return the number of users per unit of noise in one release of the whole budget."""
    return people / multiplier if multiplier else math.inf


def are_many(ratio: float, ratings_per_person: float) -> bool:
    """Return whether item vectors are worth a release, by users per unit of noise and ratings per user."""
    return ratio * min(ratings_per_person / ENOUGH_RATINGS, 1.0) >= _MANY_USERS
