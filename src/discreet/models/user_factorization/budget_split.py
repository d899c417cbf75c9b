"""Split the budget into shares; released numbers decide what they are spent on, never the total."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from discreet.models.user_factorization.settings import FactorizationSettings
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
    def of(
        cls, settings: FactorizationSettings, purpose: str = "both", ratings_per_person: float = math.inf
    ) -> BudgetShares:
        """Return the shares for a purpose, and users with about this many ratings."""
        usual, lists = share(settings.lists_share), share(settings.lists_share)
        question, part = share(settings.question_share), share(settings.directions_part)
        pairs = part_of_pairs(ratings_per_person, settings)
        if purpose == "ratings":
            lists, pairs = share(settings.lists_share_ratings), part
        return cls(
            # Effects get the more, the less lists get.
            effects=share(settings.first_share) * usual / lists,
            pilot_moment=question,
            co_occurrences=pairs * lists,
            embeddings=(1 - pairs) * lists,
            moment=part,
            factor_moment=question,
        )

    def scaled(self, factor: Fraction) -> BudgetShares:
        """Return the shares of the budget times a factor; the parts of what is left stay as they are."""
        return replace(
            self,
            effects=factor * self.effects,
            pilot_moment=factor * self.pilot_moment,
            co_occurrences=factor * self.co_occurrences,
            embeddings=factor * self.embeddings,
        )

    def for_strong_factors(self, settings: FactorizationSettings) -> BudgetShares:
        """Return the shares where ratings are more informative than co-occurrences."""
        part, lists = share(settings.directions_part), share(settings.lists_share_strong)
        return replace(self, co_occurrences=part * lists, embeddings=(1 - part) * lists)


def part_of_pairs(ratings_per_person: float, settings: FactorizationSettings) -> Fraction:
    """Return the part of co-occurrences in what they and embeddings get together.

    It is larger if histories are short, because embeddings add little then.
    """
    short = settings.enough_ratings / (settings.enough_ratings + max(ratings_per_person, 1.0))
    return share(round(max(short, settings.directions_part), 3))


def users_per_noise(people: float, multiplier: float) -> float:
    """Return the number of users per unit of noise in one release of the whole budget."""
    return people / multiplier if multiplier else math.inf


def detail(ratio: float, settings: FactorizationSettings) -> float:
    """Return how near a fit is to one without noise: 0 if noise rules, 1 without noise."""
    return ratio / (ratio + settings.detail_users_per_noise) if math.isfinite(ratio) else 1.0


def refits(strong: bool, ratio: float, settings: FactorizationSettings) -> int:
    """Return how often item vectors are refitted: once with much noise, three times without."""
    return max(1 + strong, 1 + round(2 * detail(ratio, settings)))


def part_rated(ratings_per_person: float, settings: FactorizationSettings) -> float:
    """Return the ratings of a user as a part of enough ratings; at most 1."""
    return min(ratings_per_person / settings.enough_ratings, 1.0)


def are_many(ratio: float, ratings_per_person: float, settings: FactorizationSettings) -> bool:
    """Return whether item vectors are worth a release, by users per unit of noise and ratings per user.

    A user with few ratings counts for a part of one.
    """
    return ratio * part_rated(ratings_per_person, settings) >= settings.many_users_per_noise
