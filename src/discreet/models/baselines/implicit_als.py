"""Factor implicit feedback by weighted alternating least squares, with settings tuned on the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.core.checks import integer, positive_finite
from discreet.core.progress import Progress
from discreet.data.interactions import Interactions
from discreet.models.baselines.als import both_ways
from discreet.models.baselines.tuning import (
    Baseline,
    HiddenInteractions,
    Point,
    SearchDirection,
    hide_interactions,
    walk,
)
from discreet.models.scorers.factors import ImplicitFactorScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.session import Session
from discreet.solvers.implicit_als import Confidence, implicit_als

_START = {"alpha": 4.0, "regularization": 8.0, "factors": 32.0}
_DIRECTIONS = {
    "regularization": SearchDirection(4.0, 0.5, 1024.0),
    "alpha": SearchDirection(4.0, 0.25, 64.0),
    "factors": SearchDirection(2.0, 8.0, 128.0),
}
_SEARCH_ITERATIONS = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitAls(Baseline):
    """Weighted alternating least squares for interactions, without privacy: an implicit baseline.

    Settings left at None are found by a small search. It hides one interaction of each of some users (from a
    sample of at most about a million interactions) and compares NDCG@10 on the whole catalog.

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
    feedback = "implicit"
    source: ClassVar[str] = "baseline, Hu et al. 2008"

    factors: int | None = None
    iterations: int = 15
    alpha: float | None = None
    regularization: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_budget()
        integer("iterations", self.iterations, least=1)
        if self.factors is not None:
            integer("factors", self.factors, least=1)
        for name in ("alpha", "regularization"):
            if getattr(self, name) is not None:
                positive_finite(name, getattr(self, name))

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data: Interactions = session.rows()
        clicks = data.with_values(np.ones(data.n_ratings, dtype=np.float32))
        point = self._settings(clicks)
        sides, fitted = both_ways(clicks), None
        for done in range(self.iterations):
            fitted = implicit_als(
                *sides,
                factors=int(point["factors"]),
                iterations=1,
                confidence=_confidence(point),
                seed=self.seed,
                initial=fitted,
            )
            progress("implicit-als", done + 1, self.iterations)
        assert fitted is not None
        return ImplicitFactorScorer(
            item_factors=fitted.item_factors, alpha=point["alpha"], regularization=point["regularization"]
        )

    def _settings(self, clicks: Interactions) -> Point:
        given = {"alpha": self.alpha, "regularization": self.regularization, "factors": self.factors}
        known = {name: float(value) for name, value in given.items() if value is not None}
        directions = {name: way for name, way in _DIRECTIONS.items() if name not in known}
        hidden = hide_interactions(clicks, self.seed) if directions else None
        start = {**_START, **known}
        return start if hidden is None else _search(hidden, start, directions, self.seed)


def _search(
    hidden: HiddenInteractions, start: Point, directions: dict[str, SearchDirection], seed: int
) -> Point:
    sides = both_ways(hidden.train)

    def loss(point: Point) -> float:
        fitted = implicit_als(
            *sides,
            factors=int(point["factors"]),
            iterations=_SEARCH_ITERATIONS,
            confidence=_confidence(point),
            seed=seed,
        )
        return hidden.loss(fitted.user_factors[hidden.people] @ fitted.item_factors.T)

    return walk(start, directions, loss)


def _confidence(point: Point) -> Confidence:
    return Confidence(alpha=point["alpha"], regularization=point["regularization"])
