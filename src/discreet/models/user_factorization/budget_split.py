"""Split the budget into shares; released numbers decide what they are spent on, never the total."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from discreet.models.user_factorization import constants as tuned
from discreet.privacy.session import share

#: What a budget may be spent on.
PURPOSES = ("lists", "ratings", "both")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShares:
    """Shares of the budget of a fit from ratings, after the mean and the pilot release of the items.

    `effects` is for the items' effects, `pilot_moment` for a pilot release of the second moment of ratings,
    `co_occurrences` for these and `embeddings` for item embeddings, if co-occurrences are above the noise. Of
    all that is then left, `moment` is the part of the second moment (if the pilot shows latent factors, or
    a second release is worth it) and `factor_moment` that of the factors' second moment. The rest goes to the
    refit, or to effects once more.
    """

    effects: Fraction
    pilot_moment: Fraction
    co_occurrences: Fraction
    embeddings: Fraction
    moment: Fraction
    factor_moment: Fraction

    @classmethod
    def of(cls, many: bool, purpose: str = "both") -> BudgetShares:
        """Return the shares for few or many users per unit of noise."""
        if purpose == "ratings":
            return replace(cls.of(many), **cls._for_ratings(many))
        return cls(
            effects=share(tuned.EFFECTS_SHARE_MANY if many else tuned.EFFECTS_SHARE),
            pilot_moment=share(tuned.PILOT_MOMENT_SHARE),
            co_occurrences=share(tuned.CO_OCCURRENCE_SHARE_MANY if many else tuned.CO_OCCURRENCE_SHARE),
            embeddings=share(tuned.EMBEDDING_SHARE_MANY if many else tuned.EMBEDDING_SHARE),
            moment=share(tuned.MOMENT_PART),
            factor_moment=share(tuned.FACTOR_MOMENT_PART),
        )

    @staticmethod
    def _for_ratings(many: bool) -> dict[str, Fraction]:
        """Return the shares that differ where lists are not paid for."""
        if many:
            return {
                "effects": share(tuned.RATINGS_EFFECTS_SHARE_MANY),
                "co_occurrences": share(tuned.RATINGS_CO_OCCURRENCE_SHARE_MANY),
                "embeddings": share(tuned.RATINGS_EMBEDDING_SHARE_MANY),
            }
        return {
            "effects": share(tuned.RATINGS_EFFECTS_SHARE),
            "co_occurrences": share(tuned.RATINGS_CO_OCCURRENCE_SHARE),
            "embeddings": share(tuned.RATINGS_EMBEDDING_SHARE),
        }

    def for_strong_factors(self) -> BudgetShares:
        """Return the shares where ratings are more informative than co-occurrences."""
        return replace(
            self,
            co_occurrences=share(tuned.CO_OCCURRENCE_SHARE_STRONG),
            embeddings=share(tuned.EMBEDDING_SHARE_STRONG),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWeights:
    """Hold how items and pairs of items are weighted in the releases of a fit, by its purpose.

    `pair_near` and `pair_apart` are the weights of co-occurrences by order (`CoOccurrence`), `near` those of
    embeddings (`ItemContext`); 1 where the order does not count. `refit_power` and `count_part` are for a
    single refit.
    """

    pair_near: float
    pair_apart: float
    near: float
    items_per_root: float
    embedding_power: float
    embedding_count_part: float
    embedding_ridge: float
    most_refits: int
    refit_power: float
    count_part: float

    @property
    def ordered(self) -> bool:
        """Return whether the order of interactions counts."""
        return self.pair_apart < 1

    def without_order(self) -> ReleaseWeights:
        """Return the weights for data whose order does not inform: those of data without times."""
        return replace(self, pair_near=1.0, pair_apart=1.0, near=1.0)

    def refits(self, strong: bool, ratio: float) -> int:
        """Return how often item vectors are refitted, by the strength of factors and the users per noise."""
        worth = 1 + (strong or ratio >= tuned.REFIT_TWICE) + (ratio >= tuned.REFIT_THRICE)
        return min(worth, self.most_refits)

    @classmethod
    def of(cls, purpose: str, many: bool = False) -> ReleaseWeights:
        """Return the weights for a purpose; with many users ratings do not need the order of interactions."""
        if purpose == "ratings" and many:
            return cls(
                pair_near=1.0,
                pair_apart=1.0,
                near=1.0,
                items_per_root=tuned.RATINGS_ITEMS_PER_ROOT,
                embedding_power=tuned.RATINGS_EMBEDDING_POWER,
                embedding_count_part=tuned.RATINGS_EMBEDDING_COUNT_PART,
                embedding_ridge=tuned.RATINGS_EMBEDDING_RIDGE,
                most_refits=3,
                refit_power=tuned.RATINGS_REFIT_POWER,
                count_part=tuned.RATINGS_COUNT_PART,
            )
        return cls(
            pair_near=tuned.CO_OCCURRENCE_NEAR,
            pair_apart=tuned.CO_OCCURRENCE_APART,
            near=tuned.EMBEDDING_NEAR,
            items_per_root=tuned.CO_OCCURRENCE_ITEMS_PER_ROOT,
            embedding_power=tuned.EMBEDDING_POWER,
            embedding_count_part=tuned.EMBEDDING_COUNT_PART,
            embedding_ridge=tuned.EMBEDDING_RIDGE,
            most_refits=1,
            refit_power=tuned.REFIT_POWER,
            count_part=tuned.COUNT_PART,
        )


def users_per_noise(people: float, multiplier: float) -> float:
    """Return the number of users per unit of noise in one release of the whole budget."""
    return people / multiplier if multiplier else math.inf


def part_rated(ratings_per_person: float) -> float:
    """Return the ratings of a user as a part of enough ratings; at most 1."""
    return min(ratings_per_person / tuned.ENOUGH_RATINGS, 1.0)


def counted_users(ratio: float, ratings_per_person: float) -> float:
    """Return users per unit of noise, where a user with few ratings counts for a part of one."""
    return ratio * part_rated(ratings_per_person)


def are_many(ratio: float, ratings_per_person: float) -> bool:
    """Return whether item vectors are worth a release, by users per unit of noise and ratings per user."""
    return counted_users(ratio, ratings_per_person) >= tuned.MANY_USERS_PER_NOISE
