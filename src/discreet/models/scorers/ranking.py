"""What lists are ordered by in a form from which the best items follow without all scores.

The order is `base`, plus `liking` times the logarithm of a chance. A logarithm of a chance is at most zero,
so `base` alone bounds what an item can reach: items below the last of a list need nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from discreet.core.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.scorers.log_chance import log_chance
from discreet.solvers.few_rows import FEW_ENTRIES, products

if TYPE_CHECKING:
    from discreet.models.scorers.next_items import NextItems


#: The logistic function at this multiple is nearly the normal distribution.
LOGISTIC = 1.702


class LinearScores(NamedTuple):
    """Scores `bias + items . own vector`, with one row of `people` for each user asked about."""

    people: Floats
    items: Floats
    bias: Floats

    def all(self) -> Singles:
        """Return the scores of all items for all users."""
        return (self.people @ self.items.T + self.bias).astype(np.float32)

    def cells(self, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        found: Floats = self.bias[items] + products(self.people, self.items, rows, items)
        return found

    def of_one(self, row: int, items: Indices) -> Floats:
        """Return the scores of some of the items for one user."""
        if items.size > FEW_ENTRIES:
            return self.cells(np.full(items.size, row), items)
        found: Floats = self.bias[items] + np.einsum("cf,f->c", self.items[items], self.people[row])
        return found

    def average(self, shares: Floats) -> Floats:
        """Return each user's score averaged over items with these shares."""
        mean: Floats = self.people @ (shares @ self.items) + shares @ self.bias
        return mean


class Liking(NamedTuple):
    """How much the chance that `scores` are above the user's `usual` one counts."""

    weight: float
    scores: LinearScores
    usual: Floats
    deviation: float
    link: Literal["normal", "logistic"]

    def of_one(self, row: int, items: Indices) -> Floats:
        """Return the weighted logarithms of the chances of some items, which are at most zero."""
        above = (self.scores.of_one(row, items).astype(np.float32) - self.usual[row]) / self.deviation
        if self.link == "normal":
            return self.weight * log_chance(above)
        liked: Floats = -self.weight * np.logaddexp(0.0, -LOGISTIC * above)
        return liked


class Followed(NamedTuple):
    """Weights between items that are blended with the base, and the users whose interactions count.

    `recency` are the weights of these interactions, and `blend` is the share of each user's mixture.
    """

    next_items: NextItems
    people: Interactions
    recency: Floats
    blend: Floats


class Ranking(NamedTuple):
    """The order of many users' lists; `base` is one number per item if it is the same for all.

    Where weights are `following` the base is their log-mixture with it.
    `stars` and `shown` are expected ratings of listed items, where the model knows them.
    """

    base: LinearScores | Floats
    liking: Liking | None = None
    stars: LinearScores | None = None
    shown: Callable[[Floats], Floats] | None = None
    following: Followed | None = None

    def bases(self, people: int) -> Floats:
        """Return the base of every item for each of these users, products rounded as scores are."""
        if not isinstance(self.base, LinearScores):
            return np.repeat(self.base[None], people, axis=0)
        scores = self.base.people @ self.base.items.T + self.base.bias
        if self.following is not None:
            weights, histories, recency, blend = self.following
            scores = weights.blended(scores, weights.following(histories, recency), blend)
        return scores.astype(np.float32).astype(np.float64)

    def worth(self, bases: Floats, row: int, items: Indices) -> Singles:
        """Return what a user's list is ordered by, for these items; an item without a number is last."""
        found = bases[row, items]
        if self.liking is not None:
            found = found + self.liking.of_one(row, items)
        return np.where(np.isnan(found), -np.inf, found).astype(np.float32)

    def expected_stars(self, rows: Indices, items: Indices) -> Floats | None:
        """Return the rating that each of these users is expected to give."""
        if self.stars is None or self.shown is None:
            return None
        return self.shown(self.stars.cells(rows, items))
