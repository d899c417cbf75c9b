"""Hold what lists are ordered by in a form from which the best items follow without all scores.

The order is `base`, plus `liking` times the logarithm of a chance. A logarithm of a chance is at most zero,
so `base` alone bounds what an item can reach: items below the last of a list need nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from discreet.core.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.solvers.few_rows import products

if TYPE_CHECKING:
    from discreet.models.scorers.next_items import NextItems


class LinearScores(NamedTuple):
    """Hold scores `bias + items . own vector`, with one row of `people` for each person asked about."""

    people: Floats
    items: Floats
    bias: Floats

    def all(self) -> Singles:
        """Return the scores of all items for all people."""
        return (self.people @ self.items.T + self.bias).astype(np.float32)

    def cells(self, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of person and item."""
        found: Floats = self.bias[items] + products(self.people, self.items, rows, items)
        return found

    def average(self, shares: Floats) -> Floats:
        """Return each person's score averaged over items with these shares."""
        mean: Floats = self.people @ (shares @ self.items) + shares @ self.bias
        return mean


class Liking(NamedTuple):
    """Hold how much the chance that `scores` lie above the person's `usual` one counts."""

    weight: float
    scores: LinearScores
    usual: Floats
    deviation: float
    link: Literal["normal", "logistic"]


class Followed(NamedTuple):
    """Hold weights between items that are blended with the base, and the people whose interactions count.

    `recency` are the weights of these interactions.
    """

    next_items: NextItems
    people: Interactions
    recency: Floats


class Ranking(NamedTuple):
    """Hold the order of many people's lists; `base` is one number an item where it is the same for all.

    Where weights are `following` the base is their log-mixture with it.
    `stars` and `shown` tell expected ratings of listed items, where the model knows them.
    """

    base: LinearScores | Floats
    liking: Liking | None = None
    stars: LinearScores | None = None
    shown: Callable[[Floats], Floats] | None = None
    following: Followed | None = None

    def expected_stars(self, rows: Indices, items: Indices) -> Floats | None:
        """Return the rating that each of these people is expected to give."""
        if self.stars is None or self.shown is None:
            return None
        return self.shown(self.stars.cells(rows, items))
