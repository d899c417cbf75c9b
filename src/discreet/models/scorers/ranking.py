"""What lists are ordered by in a form from which the best items follow without all scores.

The order is `base`, plus `liking` times the logarithm of a chance. A logarithm of a chance is at most zero,
so `base` alone bounds what an item can reach: items below the last of a list need nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Singles
from discreet.core.exports import Later
from discreet.data import Interactions
from discreet.solvers import FEW_ENTRIES, products

if TYPE_CHECKING:
    from discreet.models.scorers import log_chance_kernels as kernels
    from discreet.models.scorers.interactions import NextItems
else:
    kernels = Later("discreet.models.scorers.log_chance_kernels")

#: Beyond these the chance is one, or too small for `erfc` and close to its leading terms.
LEAST, MOST = -36.0, 9.0
#: Points of the table a unit.
PER_UNIT = 32
# Up to so many numbers, as many as a large catalog has items, nothing is compiled for them.
_FEW = 1 << 17


def log_chance(numbers: npt.ArrayLike) -> Floats:
    """Return log P(Z <= x), to nine digits, for every x; a compiled loop is faster where there are many.

    numpy does not know it, and one user's list is not worth loading scipy for. Between the points of a table
    it is a cubic with the right slopes; scores are float32, whose rounding is far coarser.
    """
    points = np.asarray(numbers, dtype=np.float64)
    values, slopes = chance_table()
    if points.size > _FEW:
        found = np.empty(points.shape)
        kernels.log_chances(points.ravel(), values, slopes, found.reshape(-1))
        return found
    place = (np.minimum(np.maximum(points, LEAST), MOST) - LEAST) * PER_UNIT
    # NaN stays NaN, whichever entry of the table it meets.
    left = np.minimum(np.where(place >= 0, place, 0.0).astype(np.int64), values.size - 2)
    part = place - left
    rest = 1 - part
    found = rest**2 * ((1 + 2 * part) * values[left] + part * slopes[left])
    found += part**2 * ((1 + 2 * rest) * values[left + 1] - rest * slopes[left + 1])
    if np.any(points < LEAST):
        found = np.where(points < LEAST, _far_below(np.minimum(points, LEAST)), found)
    return found


def _far_below(points: Floats) -> Floats:
    with np.errstate(over="ignore"):
        squares = points**2
        terms: Floats = (
            -squares / 2 - np.log(-points * math.sqrt(2 * math.pi)) - 1 / squares + 2.5 / squares**2
        )
    return terms


@cache
def chance_table() -> tuple[Floats, Floats]:
    """Return the logarithm and its slope (times the step) at the points of the table."""
    count = int((MOST - LEAST) * PER_UNIT) + 1
    points = [LEAST + k / PER_UNIT for k in range(count)]
    chances = [math.erfc(-x / math.sqrt(2)) / 2 for x in points]
    slopes = [
        math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / chance / PER_UNIT
        for x, chance in zip(points, chances, strict=True)
    ]
    return np.array([math.log(chance) for chance in chances]), np.array(slopes)


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
