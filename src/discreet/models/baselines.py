"""What every private model is measured against: a noisy list of favorites, and factors without privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from discreet.checks import integer, positive_finite, require
from discreet.data.interactions import Interactions, PublicFacts
from discreet.models.base import Estimator, check_budget, joint_promise
from discreet.models.contributions import blocks
from discreet.models.factor_scorers import ImplicitFactorScorer, RatingScorer, rows_of
from discreet.models.progress import Progress
from discreet.models.scorers import Floats, Indices, Scorer, Singles
from discreet.privacy.guarantee import Guarantee, Neighbours, Trust, Unit
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.randomness import PrivacyRandom
from discreet.solvers.als import Ridge, explicit_als
from discreet.solvers.implicit_als import Confidence, implicit_als
from discreet.solvers.rows import Rows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PopularityScorer(Scorer):
    """Score every item alike for everybody."""

    kind: ClassVar[str] = "popularity"
    needs_ratings: ClassVar[bool] = False
    provenance: ClassVar[Mapping[str, str]] = {
        "popularity": "noisy release: weighted counts of people an item"
    }

    popularity: Floats

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the noisy counts."""
        return {"popularity": self.popularity}

    def settings(self) -> dict[str, Any]:
        """Return nothing: the counts are all there is."""
        return {}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Build the scorer again."""
        return cls(popularity=arrays["popularity"])

    def fold_in(self, histories: Interactions) -> Floats:
        """Return an empty vector for everybody: this model knows no persons."""
        return np.zeros((histories.n_users, 0))

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the items' popularity."""
        return self.popularity[items]

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the same list for everybody."""
        return np.broadcast_to(self.popularity.astype(np.float32), (len(rows), len(self.popularity))).copy()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Popularity(Estimator):
    """List the items most people chose, from noisy counts.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history against everyone else; pure when `delta` is 0
        (proofs/popularity.md). Each person's votes are scaled to length 1, so one person moves the counts
        by at most 1, however much they rated.
    """

    name: ClassVar[str] = "popularity"
    feedback: ClassVar[str] = "implicit"
    source: ClassVar[str] = "baseline"

    epsilon: float
    delta: float = 1e-6

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=False)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise: the mechanism's own."""
        return joint_promise(self, facts, "proofs/popularity.md")

    def _mechanism(self) -> Laplace | Gaussian:
        if self.delta == 0:
            return Laplace.calibrated(epsilon=self.epsilon, l1_sensitivity=1.0)
        return Gaussian.calibrated(epsilon=self.epsilon, delta=self.delta, l2_sensitivity=1.0)

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return the one release."""
        return () if math.isinf(self.epsilon) else (self._mechanism().event(),)

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        votes = np.zeros(data.n_items)
        for block in blocks(data):
            pure = self.delta == 0
            equal = (
                1.0 / block.counts[block.people] if pure else block.unit_weights(np.ones(block.items.size))
            )
            block.add_by_item(equal, votes)
        if math.isfinite(self.epsilon):
            votes = self._mechanism().release(votes, random)
        return PopularityScorer(popularity=votes)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Als(Estimator):
    """Factor ratings by alternating least squares, without privacy: the bar for explicit ratings.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.
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
        neighbours=Neighbours.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=facts.assumptions(),
    )
