"""Hold the tuned constants of user-factorization: value, meaning, and how each was chosen.

All are public. They were chosen on public data sets, so they cost no budget on other data: on validation
parts, never on test parts, unless their line says otherwise. `benchmarks/ablation.py` measures each at half
and at double; docs/constants.md has the table. Code reads them as attributes of this module, so that an
experiment can replace one.

Tolerances and starting values of iterations stay with their solvers (`solvers/empirical_bayes.py`,
`solvers/spectrum.py`). The last group defines statistics, so it stands in `statistics/typical.py`.
Models read it here.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, get_type_hints

from discreet.statistics import typical


class Tuned(NamedTuple):
    """Describe a constant: what it means, and the experiment that chose it."""

    meaning: str
    chosen: str


# How constants were chosen, as far as the history of the repository says.
UNRECORDED = "by hand on validation parts of seven public data sets; the experiment is not recorded"
BOUND = "bound on time and memory; not tuned"
FEW_USERS = "validation parts of Amazon and MovieLens 100K at epsilon 5"
MANY_USERS = "validation part of MovieLens 1M at epsilon 5"
TIMES = "validation parts of MovieLens 1M, 100K and latest-small: item before the latest hidden"
LOW_EPSILON = "validation parts of three data sets at epsilon 0.1 to 1"
TIMELESS = "validation parts of Gowalla at epsilon 1, 5 and 10 and of Amazon at 5"
BALANCE = (
    "validation parts of MovieLens 1M at epsilon 1 and 5, 100K at 5, Amazon at 5 and Jester at 1 (one or two "
    "seeds): lists within 5 % of those for lists alone, ratings within 5 % of those for ratings alone"
)
PURPOSE = (
    "random search on validation parts of MovieLens 1M (two seeds) at epsilon 1, 5 and 20, for ratings alone"
)
FEATURES = "validation part of MovieLens 1M at epsilon 1, 5 and 20; a fifth and double were worse"
PAIRS = "validation parts of Amazon, MovieLens 100K and 1M, Gowalla at epsilon 1 to 10 and infinity"
LENGTHS = (
    "validation parts of Gowalla, Amazon instant video and sports, MovieLens 100K and 1M and MovieTweetings "
    "at epsilon 1, 5, 10 and infinity, one or two seeds; the half-way point was interpolated, not searched"
)
CURVES = (
    "validation parts of MovieLens 1M, 100K, latest-small and Jester at epsilon 1 to 20, for ratings alone"
)
SHARES = "by hand on validation parts of MovieLens 1M (two seeds) at epsilon 5 and 20, for ratings alone"
REFIT = "validation parts of MovieLens 1M and MovieTweetings at epsilon 5 and 20, for ratings alone"
RECENT = "by hand, before anything was measured; one and a half times the share of votes without a half-life"
CONTENT = "validation part of Amazon sports at epsilon 1 and 5: item before the latest hidden"
ORDER = (
    "whole files of MovieLens 100K, latest-small and 1M, MovieTweetings and Amazon sports at epsilon 1, 5 "
    "and infinity (mean correlation .036 to .27), and the same with shuffled times (0)"
)
EDGE = "theory: the edge of the noise's spectrum, with a small margin"

# Budget shares of a fit from ratings.
MEAN_SHARE: Annotated[float, Tuned("overall mean and number of users", UNRECORDED)] = 0.02
PILOT_SHARE: Annotated[float, Tuned("pilot release of items", UNRECORDED)] = 0.08
EFFECTS_SHARE: Annotated[float, Tuned("item effects, few users", BALANCE)] = 0.07
EFFECTS_SHARE_MANY: Annotated[float, Tuned("item effects, many users", BALANCE)] = 0.10
PILOT_MOMENT_SHARE: Annotated[float, Tuned("pilot release of the ratings' second moment", UNRECORDED)] = 0.03
CO_OCCURRENCE_SHARE: Annotated[float, Tuned("co-occurrences, few users", BALANCE)] = 0.32
CO_OCCURRENCE_SHARE_MANY: Annotated[float, Tuned("co-occurrences, many users", BALANCE)] = 0.28
CO_OCCURRENCE_SHARE_STRONG: Annotated[float, Tuned("co-occurrences, strong rating factors", UNRECORDED)] = (
    0.05
)
EMBEDDING_SHARE: Annotated[float, Tuned("item embeddings, few users", BALANCE)] = 0.42
EMBEDDING_SHARE_MANY: Annotated[float, Tuned("item embeddings, many users", BALANCE)] = 0.40
EMBEDDING_SHARE_STRONG: Annotated[float, Tuned("item embeddings, strong rating factors", UNRECORDED)] = 0.07
MOMENT_PART: Annotated[float, Tuned("second moment of ratings, part of what is left", UNRECORDED)] = 0.35
FACTOR_MOMENT_PART: Annotated[float, Tuned("factors' second moment, part of what is left", UNRECORDED)] = 0.03

# Budget shares of a fit for ratings alone, where they differ.
RATINGS_EFFECTS_SHARE: Annotated[float, Tuned("item effects, few users", FEW_USERS)] = 0.28
RATINGS_EFFECTS_SHARE_MANY: Annotated[float, Tuned("item effects, many users", SHARES)] = 0.15
RATINGS_CO_OCCURRENCE_SHARE: Annotated[float, Tuned("co-occurrences, few users", PURPOSE)] = 0.08
RATINGS_CO_OCCURRENCE_SHARE_MANY: Annotated[float, Tuned("co-occurrences, many users", SHARES)] = 0.15
RATINGS_EMBEDDING_SHARE_MANY: Annotated[float, Tuned("item embeddings, many users", MANY_USERS)] = 0.28
RATINGS_EMBEDDING_SHARE: Annotated[float, Tuned("item embeddings, few users", PURPOSE)] = 0.08

# Budget shares of a fit from implicit feedback; the rest goes to embeddings.
IMPLICIT_USERS_SHARE: Annotated[float, Tuned("number of users", UNRECORDED)] = 0.01
IMPLICIT_VOTES_SHARE: Annotated[float, Tuned("votes", UNRECORDED)] = 0.10
IMPLICIT_CO_OCCURRENCE_SHARE: Annotated[float, Tuned("co-occurrences", UNRECORDED)] = 0.35

# Whether the order of interactions in time informs; lists and both.
ORDER_SHARE: Annotated[float, Tuned("how well co-occurrences predict the order in time", ORDER)] = 0.005
UNORDERED_PART: Annotated[
    float,
    Tuned("co-occurrences without order, part of the embeddings' share, where order does not inform", ORDER),
] = 0.5
LEAST_ORDER: Annotated[
    float, Tuned("mean correlation with other users' order, below which order does not inform", ORDER)
] = 0.02
ORDER_SURE: Annotated[float, Tuned("standard deviations that make such a finding sure", ORDER)] = 2.0

# Budget share of a fit with a half-life; the other releases share the rest.
RECENT_SHARE: Annotated[float, Tuned("recent votes, or recent residuals and counts", RECENT)] = 0.15

# Decisions from released numbers.
MANY_USERS_PER_NOISE: Annotated[
    float, Tuned("users per unit of noise from which item vectors are worth a release", UNRECORDED)
] = 2500.0
ENOUGH_RATINGS: Annotated[
    float, Tuned("ratings per user below which a user counts for a part of one", UNRECORDED)
] = 32.0
EXPLAINED: Annotated[
    float, Tuned("part of the variance that the pilot must explain for rating factors", UNRECORDED)
] = 0.015
STRONG: Annotated[
    float, Tuned("the same, from which ratings tell more than co-occurrences; many users", UNRECORDED)
] = 0.06
STRONG_FOR_FEW: Annotated[float, Tuned("the same for few users", UNRECORDED)] = 0.10
ENOUGH_EMBEDDINGS: Annotated[
    int, Tuned("directions of embeddings that replace weak rating factors", UNRECORDED)
] = 6
USERS_PER_EDGE: Annotated[
    float, Tuned("users over the edge of the noise for co-occurrences to pay", UNRECORDED)
] = 12.0

# The pilot release and the item effects.
PILOT_COUNT_PART: Annotated[float, Tuned("weight of counts in the pilot release", UNRECORDED)] = 0.45
USERS_TO_COUNT: Annotated[
    float, Tuned("weight of counts is this over users per unit of noise, if that is more", LOW_EPSILON)
] = 150.0
MOST_COUNT_PART: Annotated[float, Tuned("largest weight of counts", LOW_EPSILON)] = 1.5
POPULARITY_POWER: Annotated[
    float, Tuned("power of an item's count that weights its effect", UNRECORDED)
] = -0.5
USERS_TO_WEIGH: Annotated[
    float, Tuned("users per unit of noise from which the full power is used", LOW_EPSILON)
] = 1000.0
MEAN_SPREAD: Annotated[
    float, Tuned("prior deviation of the overall mean from the middle of the scale", UNRECORDED)
] = 0.5

# Co-occurrences and item embeddings.
CO_OCCURRENCE_ITEMS_PER_ROOT: Annotated[
    float, Tuned("items per square root of users per unit of noise", UNRECORDED)
] = 5.0
FEWEST_CO_OCCURRENCE_ITEMS: Annotated[int, Tuned("fewest items in co-occurrences", UNRECORDED)] = 32
MOST_CO_OCCURRENCE_ITEMS: Annotated[int, Tuned("most items in co-occurrences", BOUND)] = 4096
MOST_DIRECTION_ITEMS: Annotated[int, Tuned("most items whose co-occurrences show directions", BOUND)] = 1500
DETAIL_USERS_PER_NOISE: Annotated[
    float, Tuned("users per unit of noise at which co-occurrences are half-way to those without noise", PAIRS)
] = 20_000.0
FINE_CO_OCCURRENCE_POWER: Annotated[
    float, Tuned("power of an item's votes in co-occurrences without noise", PAIRS)
] = 0.0
FINE_CO_OCCURRENCE_NEAR: Annotated[float, Tuned("weight per step, without noise", PAIRS)] = 0.8
FINE_CO_OCCURRENCE_APART: Annotated[float, Tuned("weight at any distance, without noise", PAIRS)] = 0.1
FINE_CO_OCCURRENCE_BACK: Annotated[
    float, Tuned("weight of an earlier item after a later one, without noise; with much noise it is 1", PAIRS)
] = 0.25
MOST_EMBEDDING_FACTORS: Annotated[int, Tuned("most directions of embeddings", BOUND)] = 48
CO_OCCURRENCE_ABOVE_EDGE: Annotated[
    float, Tuned("eigenvalue over the edge of the noise to be kept", TIMES)
] = 1.0
CO_OCCURRENCE_POWER: Annotated[float, Tuned("power of an item's votes in co-occurrences", UNRECORDED)] = -0.5
EMBEDDING_POWER: Annotated[float, Tuned("power of an item's votes in embeddings", UNRECORDED)] = -0.15
CO_OCCURRENCE_NEAR: Annotated[float, Tuned("weight per step in a user's order, co-occurrences", TIMES)] = 0.9
CO_OCCURRENCE_APART: Annotated[
    float, Tuned("weight at any distance: ratings depend on the whole history", TIMES)
] = 0.2
EMBEDDING_NEAR: Annotated[float, Tuned("weight per step in a user's order, embeddings", TIMES)] = 0.88
EMBEDDING_COUNT_PART: Annotated[
    float, Tuned("weight of counts against a unit embedding in each direction", UNRECORDED)
] = 0.4
MOST_EMBEDDING_FEATURES: Annotated[int, Tuned("embedding coordinates used as item features", BOUND)] = 32
EMBEDDING_RIDGE: Annotated[
    float, Tuned("ridge on a user's coefficients of all embedding features together", UNRECORDED)
] = 1000.0

# The same in a fit for ratings alone with many users, where they differ. How close in time interactions are
# does not count there; with few users weights by time show more directions.
RATINGS_ITEMS_PER_ROOT: Annotated[
    float, Tuned("items per square root of users per unit of noise", PURPOSE)
] = 8.0
RATINGS_EMBEDDING_POWER: Annotated[float, Tuned("power of an item's votes in embeddings", PURPOSE)] = -0.35
RATINGS_EMBEDDING_COUNT_PART: Annotated[
    float, Tuned("weight of counts against a unit embedding in each direction", PURPOSE)
] = 0.2
RATINGS_EMBEDDING_RIDGE: Annotated[
    float, Tuned("ridge on a user's coefficients of all embedding features together", PURPOSE)
] = 700.0
RATINGS_REFIT_POWER: Annotated[float, Tuned("power of an item's votes in a single refit", PURPOSE)] = -0.15
RATINGS_COUNT_PART: Annotated[float, Tuned("weight of counts in a single refit", PURPOSE)] = 0.15
REFIT_TWICE: Annotated[
    float, Tuned("users per unit of noise from which a second refit pays, for ratings alone", PURPOSE)
] = 15000.0
REFIT_THRICE: Annotated[float, Tuned("the same for a third refit", PURPOSE)] = 60000.0

# Public words that describe items, in lists.
CONTENT_SHARE: Annotated[float, Tuned("how similar a user's items are by public words", CONTENT)] = 0.01
MOST_CONTENT: Annotated[int, Tuned("most directions of public words", BOUND)] = 256
CONTENT_STRENGTH: Annotated[
    float, Tuned("weight of similar words in lists, in units of its likelihood estimate", CONTENT)
] = 1.0
MOST_CONTENT_WEIGHT: Annotated[float, Tuned("largest weight of similar words", BOUND)] = 12.0

# Latent factors of ratings.
MOMENT_ITEMS_PER_ROOT: Annotated[
    float, Tuned("items per square root of users per unit of noise", UNRECORDED)
] = 5.0
FEWEST_MOMENT_ITEMS: Annotated[int, Tuned("fewest items in the second moment", UNRECORDED)] = 32
MOST_MOMENT_ITEMS: Annotated[int, Tuned("most items in the second moment", BOUND)] = 768
MOST_RATING_FACTORS: Annotated[int, Tuned("most latent factors of ratings", BOUND)] = 32
MOMENT_ABOVE_EDGE: Annotated[float, Tuned("eigenvalue over the edge of the noise to be kept", EDGE)] = 1.03
PILOT_ABOVE_EDGE: Annotated[float, Tuned("the same in the pilot release", EDGE)] = 1.1
OFFSET_POWER: Annotated[
    float,
    Tuned(
        "power of the offsets' variance in the refit; below 1, as all releases see the same ratings", REFIT
    ),
] = 0.75
SPREAD_POWER: Annotated[
    float, Tuned("power of the users' second moment by which item vectors are stretched", REFIT)
] = 0.75
MOMENT_POWER: Annotated[float, Tuned("power of an item's count in the second moment", UNRECORDED)] = -0.25
REFIT_POWER: Annotated[float, Tuned("power of an item's votes in the refit", UNRECORDED)] = -0.25
QUALITY_RIDGE: Annotated[float, Tuned("ridge on a user's coefficient of item quality", UNRECORDED)] = 10.0
POPULARITY_RIDGE: Annotated[float, Tuned("ridge on a user's coefficient of popularity", UNRECORDED)] = 200.0
PUBLIC_RIDGE: Annotated[float, Tuned("ridge on a user's coefficients of public features", FEATURES)] = 100.0
MOST_PUBLIC: Annotated[int, Tuned("most principal components of public features", BOUND)] = 32
MOST_PRIOR: Annotated[int, Tuned("most principal components of an earlier release", BOUND)] = 15
CURVE_WIDTH: Annotated[
    float, Tuned("width of smooth functions of factors, in units of all their deviation", CURVES)
] = 0.9
CURVE_PLAIN: Annotated[float, Tuned("deviation of quality and of popularity in these units", CURVES)] = 0.5
CURVE_RIDGE: Annotated[float, Tuned("ridge on a user's coefficients of smooth functions", CURVES)] = 40.0
CURVE_USERS: Annotated[float, Tuned("users per unit of noise at which that ridge is doubled", CURVES)] = (
    3500.0
)
CURVE_BESIDE: Annotated[float, Tuned("that ridge is so much larger beside rating factors", CURVES)] = 5.0
CURVE_LANDMARKS: Annotated[int, Tuned("items from which smooth functions are computed", BOUND)] = 400
MOST_CURVES: Annotated[int, Tuned("most smooth functions of factors", CURVES)] = 80
WEIGHT_SPREAD: Annotated[
    float, Tuned("mean squared weight of a row over the squared mean weight", UNRECORDED)
] = 1.3
LEAST_MOMENT: Annotated[
    float, Tuned("least eigenvalue of the factors' second moment, of the constant's", UNRECORDED)
] = 0.02

# Lists: how a fitted model scores a user's history.
LIST_RIDGE: Annotated[
    float, Tuned("ridge on a user's embedding, relative to one interaction", UNRECORDED)
] = 0.2
LIST_FADING: Annotated[
    float, Tuned("with times, the r-th latest interaction has weight (1 + r) to the minus this", TIMES)
] = 1.3
LIST_EVENLY: Annotated[
    float, Tuned("without times, each of n interactions has weight n to the minus this", TIMELESS)
] = 0.45
EVEN_DIRECTIONS: Annotated[
    float, Tuned("directions at which embeddings are half-way from their own lengths to one length", LENGTHS)
] = 4.0
SHORT_EMBEDDING: Annotated[
    float, Tuned("length, in units of the usual one, below which an embedding stays shorter", LENGTHS)
] = 0.3
LIST_LENGTH: Annotated[
    float, Tuned("part of an item's squared length subtracted from its log-odds", UNRECORDED)
] = 1.0
PAIR_RIDGE: Annotated[float, Tuned("ridge on weights between items, of the diagonal", PAIRS)] = 0.5
PAIR_RIDGE_VOTES: Annotated[float, Tuned("the same, in votes", PAIRS)] = 20.0
PAIR_FADING: Annotated[
    float, Tuned("with times, the r-th latest item has weight (1 + r) to the minus this in pairs", PAIRS)
] = 1.0
PAIR_BLEND: Annotated[float, Tuned("part of a list that follows pairs, without noise", PAIRS)] = 0.95
PAIR_BLEND_USERS: Annotated[float, Tuned("users at which half of that part follows pairs", PAIRS)] = 100.0
SOME_BLEND: Annotated[float, Tuned("part of a list that follows pairs, with some noise", PAIRS)] = 0.3
SOME_BLEND_USERS: Annotated[
    float, Tuned("users per unit of noise at which half of that part follows pairs", PAIRS)
] = 300.0
MOST_BLEND_USERS: Annotated[
    float, Tuned("users per unit of noise half-way from some noise to none", PAIRS)
] = 60_000.0
MOST_PAIR_DIRECTIONS: Annotated[int, Tuned("most directions of a denoised co-occurrence matrix", BOUND)] = 64
MOST_NEIGHBORS: Annotated[int, Tuned("weights kept for each item", BOUND)] = 256
LIKING: Annotated[float, Tuned("weight of expected ratings in lists", UNRECORDED)] = 0.4
NEARLY_ALL: Annotated[
    float, Tuned("part of the catalog rated from which ratings do not order lists", UNRECORDED)
] = 0.5

# Statistics of all models of ratings.
COUNT_PART: Annotated[float, Tuned("weight of counts against residuals", UNRECORDED)] = typical.COUNT_PART
USER_RIDGE: Annotated[float, Tuned("average ratings by which a user's own mean is shrunk", UNRECORDED)] = (
    typical.USER_RIDGE
)
TYPICAL_RESIDUAL: Annotated[
    float, Tuned("deviation of a rating from its prediction, in half scales", UNRECORDED)
] = typical.TYPICAL_RESIDUAL


def tuned() -> dict[str, Tuned]:
    """Return what every constant means, and how it was chosen, by name."""
    hints = get_type_hints(__import__(__name__, fromlist=["tuned"]), include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}
