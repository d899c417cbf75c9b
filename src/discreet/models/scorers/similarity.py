"""Find which items stand out as similar, and with what confidence.

Where vectors are sums of noisy contributions over released counts, the noise follows from the guarantee: an
item of popularity p is known in the share p^2 / (p^2 + k^2), with k by the noise of one release and the
directions. Counts have noise, too, so each counts as its least by its rank: where items are many, noise alone
makes large counts. What is not known of two vectors is what their product may be wrong by. Other vectors'
neighbors must be nearer than random directions would be.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from discreet.core import Floats
from discreet.models.errors import NoFactorsFound
from discreet.models.scorers.ranking import log_chance

# Neighbors that are less sure are not named. The chance counts by the shares known of both vectors, to this
# power: what isn't known of a vector may also be what sets it apart. benchmarks/neighbors.py --reference
# measures which part of those named is right.
_LEAST_CHANCE, _KNOWN_POWER = 0.6, 2
# One release of the whole budget has the least noise. Counts and vectors each get a part of it, so theirs is
# larger by these factors; two fits with different noise show by how much (benchmarks/neighbors.py).
_COUNT_NOISE, _VECTOR_NOISE = 1.7, 3.0
# The largest part of false discoveries among those named.
_MOST_FALSE = 0.1
# A neighbor is more similar than this part of the catalog; where many are asked for, than fewer.
_NEARER_THAN = 0.9
# In fewer directions than three, half or a quarter of the catalog lies together, whatever sets it apart in
# the directions that the noise hid. Items are then not named; the number is between two and three.
_FEWEST_DIRECTIONS = 2.5
_TINY = np.finfo(np.float64).tiny


class NearestItems(NamedTuple):
    """For one item, every item's similarity, and the chance that it is above the noise (None: no noise).

    Only items with at least the confidence `least` are to be named. The chance covers the noise only.
    """

    similarity: Floats
    confidence: Floats | None
    least: float = 1 - _MOST_FALSE


class KnownVectors(NamedTuple):
    """Vectors, how much of each is known, how items spread along each axis, and their lengths.

    A vector shorter than usual has the usual length: it might point anywhere. `noised` if noise was added.
    """

    vectors: Floats
    known: Floats
    spread: Floats
    lengths: Floats
    noised: bool

    @classmethod
    def of(cls, vectors: Floats, popularity: Floats, *, noise: float) -> Self:
        """Deduce what is known of each vector from the counts and the `noise` of one release (0: none)."""
        squares = (vectors**2).sum(axis=1)
        weighed = squares @ vectors**2
        known = known_shares(popularity, noise, _directions(weighed)) if noise else np.ones(squares.size)
        usual = float(known @ squares) / max(float(known @ known), _TINY)
        if not noise:
            usual = float(weighed.sum()) / max(float(squares.sum()), _TINY)
        spread = usual * weighed / max(float(weighed.sum()), _TINY)
        lengths = np.sqrt(np.maximum(np.maximum(squares, usual), _TINY))
        return cls(vectors, known, spread, lengths, bool(noise))

    def neighbors(self, item: int, k: int) -> NearestItems:
        """Return similarities less one standard error, so that items known badly come late.

        The confidence is the chance that the similarity without this noise is above what most of the catalog
        shows, less where little is known of the vectors.
        """
        own, left = self.vectors[item], 1 - self.known
        size = self.lengths * self.lengths[item]
        similarity = self.vectors @ own / size
        if not self.noised:
            return NearestItems(similarity, None)
        variance = left[item] * (self.vectors**2 @ self.spread) + left * float(own**2 @ self.spread)
        variance += left * left[item] * float(self.spread @ self.spread)
        error = np.sqrt(variance) / size
        # True similarities spread more than those that noise has shrunk: by the errors.
        others = np.delete([similarity - error, similarity + error], item, axis=1)
        part = 1 - 2 * k / max(others.shape[1], 1)
        level = np.quantile(others, min(max(part, 0.5), _NEARER_THAN)) if others.size else 0.0
        sure = np.exp(log_chance((similarity - level) / np.maximum(error, 1e-9)))
        sure *= (self.known * self.known[item]) ** _KNOWN_POWER
        if _directions(self.spread) < _FEWEST_DIRECTIONS:
            sure = np.zeros_like(sure)
        return NearestItems(similarity - error, sure, _LEAST_CHANCE)


def _directions(spread: Floats) -> float:
    """Return in how many directions vectors lie: as many as there are where they spread evenly."""
    return float(spread.sum() ** 2 / max(float((spread**2).sum()), _TINY))


def known_shares(popularity: Floats, noise: float, directions: float) -> Floats:
    """Return which share of each item's vector is known, given the `noise` of one release.

    The count at rank r is reduced by what noise alone makes of the r-th largest of as many items without
    users: about sqrt(2 log(items / r)) deviations.
    """
    rank = np.empty(popularity.size)
    rank[np.argsort(-popularity, kind="stable")] = np.arange(1, popularity.size + 1)
    by_chance = _COUNT_NOISE * noise * np.sqrt(2 * np.log(popularity.size / rank))
    squares = np.maximum(popularity - by_chance, 0.0) ** 2
    shares: Floats = squares / (squares + (_VECTOR_NOISE * noise) ** 2 * directions)
    return shares


class Directions(NamedTuple):
    """Unit vectors, and in how many directions they lie; `noised` if noise may have turned them."""

    units: Floats
    dimensions: float
    noised: bool

    @classmethod
    def of(cls, vectors: Floats, *, noised: bool) -> Self:
        """Take vectors of any length."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        units = vectors / np.maximum(lengths, _TINY)
        return cls(units, _directions(np.linalg.eigvalsh(units.T @ units)), noised)

    def neighbors(self, item: int, k: int) -> NearestItems:
        """Return cosines, and one minus the rate of false discoveries among items as near as each."""
        cosine = self.units @ self.units[item]
        if not self.noised:
            return NearestItems(cosine, None)
        from scipy.special import betainc

        inside = np.clip(1 - cosine**2, 0.0, 1.0)
        tail = betainc(max((self.dimensions - 1) / 2, 0.05), 0.5, inside) / 2
        chance = np.where(cosine > 0, tail, 1 - tail)
        chance[item] = 1.0
        return NearestItems(cosine, 1 - false_discoveries(chance))


def false_discoveries(chance: Floats) -> Floats:
    """Return for each test the rate of false discoveries among it and all clearer ones, after Benjamini."""
    order = np.argsort(chance, kind="stable")
    rates = chance[order] * chance.size / np.arange(1, chance.size + 1)
    lowest = np.minimum.accumulate(rates[::-1])[::-1]
    found = np.empty_like(lowest)
    found[order] = np.minimum(lowest, 1.0)
    return found


#: Quality and fame: directions that every rating model has first, whatever preferences it found.
PLAIN = 2
_ROUNDING = 1e-6


def refuse_plain(item_bias: Floats, item_factors: Floats) -> None:
    """Raise for vectors of quality and popularity alone: two films are not similar because both are good."""
    if item_factors.shape[1] > PLAIN:
        return
    if item_factors.shape[1] and not _follows(item_factors[:, 0], item_bias):
        return
    raise NoFactorsFound()


def _follows(column: Floats, item_bias: Floats) -> bool:
    """Return whether a column is a linear function of the items' biases."""
    centered, quality = column - column.mean(), item_bias - item_bias.mean()
    slope = float(centered @ quality) / max(float(quality @ quality), np.finfo(np.float64).tiny)
    left = float(np.abs(centered - slope * quality).max(initial=0.0))
    return left <= _ROUNDING * max(float(np.abs(centered).max(initial=0.0)), np.finfo(np.float64).tiny)
