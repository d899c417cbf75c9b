"""Recommend what is chosen by the same people: the nearest neighbors of each item by a shrunken cosine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, final

import numpy as np

from discreet.arrays import Floats
from discreet.checks import integer, non_negative
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

_START, _WAY = {"shrinkage": 10.0}, {"shrinkage": Direction(3.0, 0.1, 1e4)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemKnn(Estimator):
    """List neighbors of what was chosen, without privacy: the simplest bar with taste.

    Items are as alike as the cosine between who chose them, with `shrinkage` added to its denominator so
    that pairs seen rarely count less; it and, where there are times, how fast choices fade are found by a
    small search on hidden choices unless they are given. Items beyond the `most_items` chosen most often have
    no neighbors.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import ItemKnn, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = ItemKnn().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3
    """

    name: ClassVar[str] = "item-knn"
    feedback = "implicit"
    source: ClassVar[str] = "baseline, Deshpande and Karypis 2004"

    epsilon: float = math.inf
    delta: float = 0.0
    neighbors: int = 100
    shrinkage: float | None = None
    fading: float | None = None
    most_items: int = 4096
    seed: int = 0

    def __post_init__(self) -> None:
        only_without_privacy(self)
        integer("neighbors", self.neighbors, least=1)
        integer("most_items", self.most_items, least=2)
        if self.shrinkage is not None:
            non_negative("shrinkage", self.shrinkage)
        check_fading(self.fading)

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise: none."""
        return no_promise(facts)

    def _train(self, data: Interactions, random: PrivacyRandom, progress: Progress) -> Scorer:
        weigh = partial(_nearest, neighbors=self.neighbors)
        given = {"shrinkage": self.shrinkage, "fading": self.fading}
        settings = search_settings(data, given, _START, _WAY, weigh, self.seed)
        progress("item-knn", 1, 2)
        items = most_chosen(data, self.most_items)
        weights = weigh(chosen_together(data, items), settings["shrinkage"])
        progress("item-knn", 2, 2)
        return weights_scorer(data, items, weights, settings)


def _nearest(together: Floats, shrinkage: float, *, neighbors: int) -> Floats:
    """Return the shrunken cosines, of each item's nearest neighbors only."""
    lengths = np.sqrt(np.diag(together))
    alike: Floats = together / np.maximum(np.outer(lengths, lengths) + shrinkage, 1e-12)
    np.fill_diagonal(alike, 0.0)
    if neighbors < len(alike):
        alike[alike < np.partition(alike, -neighbors, axis=0)[-neighbors]] = 0.0
    return alike
