"""Settings of user-factorization: value, meaning, how each was chosen, and how they split the budget.

One frozen value carries all of them through a fit (`UserFactorization.with_settings` passes a different
one). All are public. `benchmarks/ablation.py` measures each at half and at double; docs/constants.md has the
table.

Settings marked `BOUND`, `EDGE` or `STATED` are not tuned. The others are, and there are at most 30 of them
with `COUNT_PART` (`statistics/typical.py`, because it defines statistics) and two constants of all models
with counts (`models/scorers/factors.py`). Tolerances and starting values of iterations stay with their
solvers (`solvers/empirical_bayes.py`, `solvers/spectrum.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, final

from discreet.models.tuned_settings import UNRECORDED, ItemSettings, ListSettings, Tuned, tuned
from discreet.privacy import share
from discreet.solvers import OrderWeights

# How settings were chosen, as far as the history of the repository shows.
BOUND = "bound on time, memory, or sizes; not tuned"
EDGE = "theory: the edge of the noise's spectrum, with a small margin; not tuned"
STATED = "a cost that the documentation states, chosen before anything was measured; not tuned"
MERGED = (
    "one value for several settings of 0.2 that were tuned apart; checked on validation parts of MovieLens "
    "100K and 1M at epsilon 1, 5 and infinity"
)
BALANCE = (
    "validation parts of MovieLens 1M and Amazon at epsilon 1 and 5, MovieLens 100K at 5 (four to eight "
    "seeds): lists within 5% of those for lists alone, ratings within 3% of those for ratings alone"
)
PAIRS = "validation parts of Amazon, MovieLens 100K and 1M, Gowalla at epsilon 1 to 10 and infinity"
CURVES = (
    "validation parts of MovieLens 1M, 100K, latest-small and Jester at epsilon 1 to 20, for ratings alone"
)
REFIT = "validation parts of MovieLens 1M and MovieTweetings at epsilon 5 and 20, for ratings alone"
ORDER = (
    "whole files of MovieLens 100K, latest-small and 1M, MovieTweetings and Amazon sports at epsilon 1, 5 "
    "and infinity (mean correlation .036 to .27), and the same with shuffled times (0)"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FactorizationSettings:
    """All settings of one fit of user-factorization."""

    items: ItemSettings = field(default_factory=ItemSettings)
    lists: ListSettings = field(default_factory=ListSettings)

    # Budget shares.
    question_share: Annotated[
        float,
        Tuned(
            "each release that decides what follows: users, overall mean, order, words, pilot of factors",
            MERGED,
        ),
    ] = 0.015
    first_share: Annotated[float, Tuned("first votes or counts of items, and item effects", MERGED)] = 0.10
    first_counts: Annotated[
        float, Tuned("weight of counts over residuals in the first release of a fit for both", BALANCE)
    ] = 2.0
    lists_share: Annotated[float, Tuned("co-occurrences and item embeddings together", BALANCE)] = 0.73
    lists_share_strong: Annotated[float, Tuned("the same, with strong rating factors", MERGED)] = 0.12
    lists_share_ratings: Annotated[float, Tuned("the same, in a fit for ratings alone", MERGED)] = 0.40
    directions_part: Annotated[
        float, Tuned("part of directions; the rest is for item vectors in these directions", MERGED)
    ] = 0.46
    recent_share: Annotated[float, Tuned("recent votes, or recent residuals and counts", STATED)] = 0.15

    # Decisions from released numbers.
    least_order: Annotated[
        float, Tuned("mean correlation with other users' order, below which order does not inform", ORDER)
    ] = 0.02
    many_users_per_noise: Annotated[
        float,
        Tuned("users per unit of noise from which item vectors and smooth functions pay", UNRECORDED),
    ] = 2500.0
    enough_ratings: Annotated[
        float, Tuned("ratings per user below which a user counts for a part of one", MERGED)
    ] = 16.0
    strong: Annotated[
        float,
        Tuned("part of the variance that the pilot must explain: ratings inform more than pairs", MERGED),
    ] = 0.08
    users_per_edge: Annotated[
        float, Tuned("users over the edge of the noise for co-occurrences to be worth it", UNRECORDED)
    ] = 12.0
    detail_users_per_noise: Annotated[
        float, Tuned("users per unit of noise half-way to a fit without noise", PAIRS)
    ] = 20_000.0

    # Co-occurrences and item embeddings.
    items_per_root: Annotated[
        float, Tuned("items of a second moment per square root of users per unit of noise", UNRECORDED)
    ] = 5.0
    near: Annotated[float, Tuned("weight per step in a user's order", MERGED)] = 0.8
    apart: Annotated[float, Tuned("weight of co-occurrences at any distance", MERGED)] = 0.1
    back: Annotated[
        float, Tuned("weight of an earlier item after a later one without noise; 1 with much noise", PAIRS)
    ] = 0.25
    weight_power: Annotated[
        float, Tuned("power of an item's count in second moments and item vectors", MERGED)
    ] = -0.25
    fewest_items: Annotated[int, Tuned("fewest items of a second moment", BOUND)] = 32
    most_co_occurrence_items: Annotated[int, Tuned("most items in co-occurrences", BOUND)] = 4096
    most_direction_items: Annotated[int, Tuned("most items whose co-occurrences show directions", BOUND)] = (
        1500
    )
    most_embedding_factors: Annotated[int, Tuned("most directions of embeddings", BOUND)] = 48
    most_embedding_features: Annotated[int, Tuned("embedding coordinates used as item features", BOUND)] = 32
    most_content: Annotated[int, Tuned("most directions of public words", BOUND)] = 256

    # Latent factors of ratings.
    shrunk_power: Annotated[
        float,
        Tuned(
            "power of variances of estimates that share ratings: offsets in the refit, users' second moment",
            REFIT,
        ),
    ] = 0.75
    quality_ridge: Annotated[float, Tuned("ridge on a user's coefficient of item quality", UNRECORDED)] = 10.0
    feature_ridge: Annotated[
        float, Tuned("ridge on a user's coefficients of popularity, public features, embeddings", MERGED)
    ] = 100.0
    curve_ridge: Annotated[float, Tuned("ridge on a user's coefficients of smooth functions", CURVES)] = 40.0
    curve_landmarks: Annotated[int, Tuned("items from which smooth functions are computed", BOUND)] = 400
    most_curves: Annotated[int, Tuned("most smooth functions of factors", BOUND)] = 80
    most_moment_items: Annotated[int, Tuned("most items in the second moment", BOUND)] = 768
    most_rating_factors: Annotated[int, Tuned("most latent factors of ratings", BOUND)] = 32
    most_public: Annotated[int, Tuned("most principal components of public features", BOUND)] = 32
    moment_above_edge: Annotated[float, Tuned("eigenvalue over the edge of the noise to be kept", EDGE)] = (
        1.03
    )
    pilot_above_edge: Annotated[float, Tuned("the same in the pilot release", EDGE)] = 1.1

    # Weights between items.
    pair_ridge: Annotated[float, Tuned("ridge on weights between items, of the diagonal", PAIRS)] = 0.5
    pair_ridge_users: Annotated[float, Tuned("the same, in users of an item", MERGED)] = 20.0
    pair_users: Annotated[float, Tuned("users with whom half of a list follows pairs", PAIRS)] = 100.0
    most_pair_directions: Annotated[
        int, Tuned("most directions of a denoised co-occurrence matrix", BOUND)
    ] = 64
    nearest_items: Annotated[
        int, Tuned("nearest items that an item of a large catalog is regressed on, without noise", BOUND)
    ] = 128
    most_neighbors: Annotated[int, Tuned("weights kept for each item", BOUND)] = 256

    @property
    def order(self) -> OrderWeights:
        """Return the weights of pairs by order."""
        return OrderWeights(near=self.near, apart=self.apart, back=self.back)

    def described(self) -> dict[str, Tuned]:
        """Return the meaning of each setting by its name; a group's settings have its name in front."""
        found = {}
        for group in ("items", "lists"):
            own = tuned(type(getattr(self, group)))
            found.update({f"{group}.{name}": meaning for name, meaning in own.items()})
        return found | tuned(type(self))


# The split of the budget: released numbers decide what shares are spent on, never the total.

# The part of effects in what lists leave.
_EFFECTS_PART = Fraction(7, 24)
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
        lists = share(settings.lists_share)
        question, part = share(settings.question_share), share(settings.directions_part)
        pairs = part_of_pairs(ratings_per_person, settings)
        if purpose == "ratings":
            lists, pairs = share(settings.lists_share_ratings), part
        return cls(
            effects=_EFFECTS_PART * (1 - lists),
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
