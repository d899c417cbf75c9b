"""Predict each item's choice from all others by one ridge regression in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.arrays import Floats
from discreet.checks import integer, positive_finite
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.bars.item_weights import (
    check_fading,
    chosen_together,
    most_chosen,
    search_settings,
    weights_scorer,
)
from discreet.models.bars.search import Direction
from discreet.models.bars.unprotected import no_promise, only_without_privacy
from discreet.models.estimator import Estimator
from discreet.models.progress import Progress
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Guarantee
from discreet.randomness import PrivacyRandom

_START, _WAY = {"regularization": 200.0}, {"regularization": Direction(3.0, 2.0, 2e5)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ease(Estimator):
    """Regress every item's choices on all other items, without privacy: a bar that is hard to beat.

    `regularization` and, where there are times, how fast choices fade are found by a small search on hidden
    choices unless they are given. Items beyond the `most_items` chosen most often are listed behind the
    others, since the time grows with the third power.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import Ease, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Ease().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3
    """

    name: ClassVar[str] = "ease"
    feedback = "implicit"
    source: ClassVar[str] = "baseline, Steck 2019"

    epsilon: float = math.inf
    delta: float = 0.0
    regularization: float | None = None
    fading: float | None = None
    most_items: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        only_without_privacy(self)
        integer("most_items", self.most_items, least=2)
        if self.regularization is not None:
            positive_finite("regularization", self.regularization)
        check_fading(self.fading)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise: none."""
        return no_promise(facts)

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        given = {"regularization": self.regularization, "fading": self.fading}
        settings = search_settings(data, given, _START, _WAY, _regression, self.seed)
        progress("ease", 1, 2)
        items = most_chosen(data, self.most_items)
        weights = _regression(chosen_together(data, items), settings["regularization"])
        progress("ease", 2, 2)
        return weights_scorer(data, items, weights, settings)


def _regression(together: Floats, ridge: float) -> Floats:
    """Return the weights, none of an item on itself: minus the inverse over its own diagonal."""
    inverse = np.linalg.inv(together + ridge * np.eye(len(together)))
    weights: Floats = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights
