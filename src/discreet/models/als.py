"""What every private model is measured against: a noisy list of favorites, and factors without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.checks import integer, positive_finite, require
from discreet.contributions.blocks import rows_of
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import Estimator, check_budget
from discreet.models.progress import Progress
from discreet.models.scorers.factors import ImplicitFactorScorer, RatingScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Guarantee, Neighbors, Trust, Unit
from discreet.randomness import PrivacyRandom
from discreet.solvers.als import Ridge, explicit_als
from discreet.solvers.implicit_als import Confidence, implicit_als
from discreet.solvers.rows import Rows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Als(Estimator):
    """Factor ratings by alternating least squares, without privacy: the bar for explicit ratings.

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
    factors: int = 64
    iterations: int = 15
    regularization: float = 1.2
    seed: int = 0

    def __post_init__(self) -> None:
        _only_without_privacy(self)
        integer("factors", self.factors, least=1)
        integer("iterations", self.iterations, least=1)
        positive_finite("regularization", self.regularization)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise: none."""
        return _no_promise(facts)

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        # The default suits a scale four wide; on a wider one the same model needs as much more.
        ridge = Ridge(factors=self.regularization * (data.facts.high - data.facts.low) / 4)
        by_user, by_item = both_ways(data)
        fitted = None
        for done in range(self.iterations):
            fitted = explicit_als(
                by_user,
                by_item,
                factors=self.factors,
                iterations=1,
                ridge=ridge,
                seed=self.seed,
                initial=fitted,
            )
            progress("als", done + 1, self.iterations)
        assert fitted is not None
        return RatingScorer(
            mean=fitted.mean,
            item_bias=fitted.item_biases.astype(np.float64),
            item_factors=fitted.item_factors.astype(np.float64),
            ridge=np.array([ridge.biases] + [ridge.factors] * self.factors),
            low=data.facts.low,
            high=data.facts.high,
            count_power=ridge.count_power,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitAls(Estimator):
    """Factor choices by weighted alternating least squares, without privacy: the bar for clicks.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import ImplicitAls, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = ImplicitAls().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3
    """

    name: ClassVar[str] = "implicit-als"
    feedback: ClassVar[str] = "implicit"
    source: ClassVar[str] = "baseline, Hu et al. 2008"

    epsilon: float = math.inf
    delta: float = 0.0
    factors: int = 64
    iterations: int = 15
    alpha: float = 1.0
    regularization: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _only_without_privacy(self)
        integer("factors", self.factors, least=1)
        integer("iterations", self.iterations, least=1)
        positive_finite("alpha", self.alpha)
        positive_finite("regularization", self.regularization)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise: none."""
        return _no_promise(facts)

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        by_user, by_item = both_ways(data.with_values(np.ones(data.n_ratings, dtype=np.float32)))
        confidence = Confidence(alpha=self.alpha, regularization=self.regularization)
        fitted = None
        for done in range(self.iterations):
            fitted = implicit_als(
                by_user,
                by_item,
                factors=self.factors,
                iterations=1,
                confidence=confidence,
                seed=self.seed,
                initial=fitted,
            )
            progress("implicit-als", done + 1, self.iterations)
        assert fitted is not None
        return ImplicitFactorScorer(
            item_factors=fitted.item_factors, alpha=self.alpha, regularization=self.regularization
        )


def both_ways(data: Interactions) -> tuple[Rows, Rows]:
    """Return the data by person and, the same, by item."""
    turned = data.by_item
    return rows_of(data), Rows(turned.indptr, turned.users, turned.values)


def _only_without_privacy(estimator: Estimator) -> None:
    check_budget(estimator.epsilon, estimator.delta, gaussian=False)
    require(
        math.isinf(estimator.epsilon),
        "epsilon",
        estimator.epsilon,
        f"cannot be kept by {estimator.name}, which has no private version",
        "Pass math.inf (--epsilon inf), or choose another model.",
    )


def _no_promise(facts: PublicFacts) -> Guarantee:
    return Guarantee(
        epsilon=math.inf,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=facts.assumptions(),
    )
