"""Split the budget into shares; released numbers decide what they are spent on, never the total."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

from discreet.core.checks import ParameterError
from discreet.models.user_factorization import constants as tuned
from discreet.privacy.accounting.gaussian import split_gaussian


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

    `effects` is for the items' effects, `pilot_moment` for a pilot release of the second moment of ratings,
    `co_occurrences` for these and `embeddings` for item embeddings, if co-occurrences are above the noise. Of
    all that is then left, `moment` is the part of the second moment (if the pilot shows latent factors, or
    a second release is worth it) and `factor_moment` that of the factors' second moment. The rest goes to the
    refit, or to effects once more.
    """

    effects: float
    pilot_moment: float
    co_occurrences: float
    embeddings: float
    moment: float
    factor_moment: float

    @classmethod
    def of(cls, many: bool) -> BudgetShares:
        """Return the shares for few or many users per unit of noise."""
        return cls(
            effects=tuned.EFFECTS_SHARE_MANY if many else tuned.EFFECTS_SHARE,
            pilot_moment=tuned.PILOT_MOMENT_SHARE,
            co_occurrences=tuned.CO_OCCURRENCE_SHARE_MANY if many else tuned.CO_OCCURRENCE_SHARE,
            embeddings=tuned.EMBEDDING_SHARE_MANY if many else tuned.EMBEDDING_SHARE,
            moment=tuned.MOMENT_PART,
            factor_moment=tuned.FACTOR_MOMENT_PART,
        )

    def for_strong_factors(self) -> BudgetShares:
        """Return the shares where ratings are more informative than co-occurrences."""
        return replace(
            self,
            co_occurrences=tuned.CO_OCCURRENCE_SHARE_STRONG,
            embeddings=tuned.EMBEDDING_SHARE_STRONG,
        )


def users_per_noise(people: float, multiplier: float) -> float:
    """Return the number of users per unit of noise in one release of the whole budget."""
    return people / multiplier if multiplier else math.inf


def are_many(ratio: float, ratings_per_person: float) -> bool:
    """Return whether item vectors are worth a release, by users per unit of noise and ratings per user."""
    return ratio * min(ratings_per_person / tuned.ENOUGH_RATINGS, 1.0) >= tuned.MANY_USERS_PER_NOISE
