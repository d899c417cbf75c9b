"""Factor ratings by alternating least squares, with as many factors and as much ridge as the data want."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.checks import integer, positive_finite
from discreet.contributions.blocks import rows_of
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.bars.search import Direction, Point, walk
from discreet.models.bars.unprotected import no_promise, only_without_privacy
from discreet.models.bars.validation import hide_ratings, part_of_people
from discreet.models.estimator import Estimator
from discreet.models.progress import Progress
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Guarantee
from discreet.randomness import PrivacyRandom
from discreet.solvers.als import Factorization, Ridge, explicit_als, fold_in_explicit
from discreet.solvers.rows import Rows

# With more ratings than this, factors are found on a part of the people and everybody has a say at the end.
_MOST_RATINGS = 2_000_000
_LAST_ITERATIONS = 2
# A search needs something to hide and something to learn from.
_FEWEST_RATINGS = 100
# What a search starts from, in units of what biases leave, and how long one of its fits is.
_START = {"biases": 2.0, "regularization": 1.3, "factors": 16.0}
_SEARCH_ITERATIONS = 7
_BIASES = {"biases": Direction(math.sqrt(2), 0.1, 64.0)}
_RIDGE = {"regularization": Direction(math.sqrt(2), 0.3, 8.0)}
_FACTORS = {"factors": Direction(2.0, 8.0, 64.0)}
# Below this many ratings several parts are hidden in turn.
_RATINGS_OF_FOLDS, _MOST_FOLDS = 40_000, 8
# Factors that improve the hidden part by less than this share of its error are luck.
_WORTH = 1e-3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Als(Estimator):
    """Factor ratings by alternating least squares, without privacy: the bar for explicit ratings.

    Settings left at None are found by a small search on a tenth of the training ratings that is hidden for it
    (of at most a million): first how strongly biases are pulled to zero, then the ridge of the factors, then
    how many there are; none where biases alone predict as well. `biases` counts in ratings, as many as the
    pull to zero is worth; `regularization` is in units of the ratings' spread.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import Als, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Als().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3
    """

    name: ClassVar[str] = "als"
    source: ClassVar[str] = "baseline, Zhou et al. 2008"

    epsilon: float = math.inf
    delta: float = 0.0
    factors: int | None = None
    iterations: int = 15
    regularization: float | None = None
    biases: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        only_without_privacy(self)
        integer("iterations", self.iterations, least=1)
        if self.factors is not None:
            integer("factors", self.factors, least=0)
        for name in ("regularization", "biases"):
            if getattr(self, name) is not None:
                positive_finite(name, getattr(self, name))

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise: none."""
        return no_promise(facts)

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        ridge, factors = self._settings(data)
        fitted = self._iterate(data, ridge, factors, progress)
        return RatingScorer(
            mean=fitted.mean,
            item_bias=fitted.item_biases.astype(np.float64),
            item_factors=fitted.item_factors.astype(np.float64),
            ridge=np.array([ridge.biases] + [ridge.factors] * factors),
            low=data.facts.low,
            high=data.facts.high,
            count_power=ridge.count_power,
            decisions={"factors": factors, "regularization": ridge.factors, "biases": ridge.biases},
        )

    def _iterate(self, data: Interactions, ridge: Ridge, factors: int, progress: Progress) -> Factorization:
        part = part_of_people(data, _MOST_RATINGS, self.seed)
        last = min(_LAST_ITERATIONS, self.iterations - 1) if part is not data else 0
        sides, fitted = both_ways(part), None
        for done in range(self.iterations):
            if fitted is not None and done == self.iterations - last:
                sides, fitted = both_ways(data), _for_everybody(fitted, data, ridge)
            fitted = explicit_als(
                *sides, factors=factors, iterations=1, ridge=ridge, seed=self.seed, initial=fitted
            )
            progress("als", done + 1, self.iterations)
        assert fitted is not None
        return fitted

    def _settings(self, data: Interactions) -> tuple[Ridge, int]:
        """Return the ridges and the number of factors; what was not given is looked for."""
        given = {"biases": self.biases, "regularization": self.regularization, "factors": self.factors}
        if None not in given.values() or data.n_ratings < _FEWEST_RATINGS:
            wanted = {**_START, **{name: value for name, value in given.items() if value is not None}}
            return _ridge(wanted, _spread(data)), int(wanted["factors"])
        return _search(data, given, self.seed)


def _search(data: Interactions, given: dict[str, float | None], seed: int) -> tuple[Ridge, int]:
    unit, facts = _spread(data), data.facts
    splits = [hide_ratings(data, seed + fold) for fold in range(_folds(data))]
    parts = [(both_ways(split.train), split.test) for split in splits]

    def loss(point: Point) -> float:
        ridge, factors = _ridge(point, unit), int(point["factors"])
        errors = []
        for sides, test in parts:
            fitted = explicit_als(
                *sides, ridge=ridge, factors=factors, iterations=_SEARCH_ITERATIONS, seed=seed
            )
            guessed = np.clip(fitted.predict(test.rows(), test.items), facts.low, facts.high)
            errors.append(np.square(guessed - test.values, dtype=np.float64))
        return math.sqrt(np.concatenate(errors).mean())

    known = {name: float(value) for name, value in given.items() if value is not None}
    best = {**_START, **known}
    alone = {**best, "factors": 0.0}
    if "biases" not in known:
        alone = walk(alone, _BIASES, loss)
        best["biases"] = alone["biases"]
    for name, directions in (("regularization", _RIDGE), ("factors", _FACTORS)):
        if name not in known and best["factors"]:
            best = walk(best, directions, loss)
    if "factors" not in known and loss(best) > (1 - _WORTH) * loss(alone):
        best = alone
    return _ridge(best, unit), int(best["factors"])


def _folds(data: Interactions) -> int:
    """Return how many tenths are hidden in turn: few ratings need several to tell luck from settings."""
    return int(min(max(_RATINGS_OF_FOLDS // max(data.n_ratings, 1), 1), _MOST_FOLDS))


def _ridge(point: Point, unit: float) -> Ridge:
    """Return the ridges; beside factors they grow with the root of a row's ratings.

    Biases alone are pulled by a constant, which is the ratio of two variances. With factors the same pull is
    met where a row has as many ratings as it is worth.
    """
    if not point["factors"]:
        return Ridge(factors=unit, biases=point["biases"], count_power=0.0)
    return Ridge(factors=point["regularization"] * unit, biases=math.sqrt(point["biases"]))


def _spread(data: Interactions) -> float:
    """Return the ratings' standard deviation: the scale may be declared wider than anybody uses it."""
    return max(float(data.values.std(dtype=np.float64)), 1e-6) if data.n_ratings else 1.0


def _for_everybody(fitted: Factorization, data: Interactions, ridge: Ridge) -> Factorization:
    """Return what was found on a part of the people with vectors of everybody."""
    biases, factors = fold_in_explicit(
        rows_of(data), fitted.item_factors, fitted.item_biases, fitted.mean, ridge
    )
    return Factorization(
        mean=fitted.mean,
        user_biases=biases,
        item_biases=fitted.item_biases,
        user_factors=factors,
        item_factors=fitted.item_factors,
    )


def both_ways(data: Interactions) -> tuple[Rows, Rows]:
    """Return the data by person and, the same, by item."""
    turned = data.by_item
    return rows_of(data), Rows(turned.indptr, turned.users, turned.values)
