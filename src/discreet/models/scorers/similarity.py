"""Find which items stand out as similar, and with what confidence; the noise is estimated from the release.

Where vectors are shrunk by what is known of an item, their lengths over the released counts show how much
that is: with a share p^2 / (p^2 + k^2) known of an item of popularity p, k follows from a curve through all
lengths. What is not known of two vectors is what their product may be wrong by. Where vectors are not shrunk,
neighbors must be nearer than random directions would be.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from discreet.core import Floats
from discreet.models.errors import NoFactorsFound
from discreet.models.scorers.ranking import log_chance

# Neighbors that are less sure are not named. The chance counts by the shares known of both vectors, to this
# power: what isn't known of a vector may also be what sets it apart. benchmarks/neighbors.py --reference
# measures which part of those named is right.
_LEAST_CHANCE, _KNOWN_POWER = 0.6, 4
# The largest part of false discoveries among those named.
_MOST_FALSE = 0.1
# A neighbor is more similar than this part of the catalog; where many are asked for, than fewer.
_NEARER_THAN = 0.9
_CANDIDATES = 60
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
    def of(cls, vectors: Floats, popularity: Floats, *, noised: bool) -> Self:
        """Estimate from lengths and counts what is known of each vector."""
        squares = (vectors**2).sum(axis=1)
        weighed = squares @ vectors**2
        if noised:
            usual, known = _known(squares, popularity)
        else:
            usual, known = float(weighed.sum()) / max(float(squares.sum()), _TINY), np.ones(squares.size)
        spread = usual * weighed / max(float(weighed.sum()), _TINY)
        return cls(vectors, known, spread, np.sqrt(np.maximum(np.maximum(squares, usual), _TINY)), noised)

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


def _known(squares: Floats, popularity: Floats) -> tuple[float, Floats]:
    """Return the usual squared length of a vector that is known, and which share of each one is.

    All of it, unless lengths that grow with popularity fit better than one for all by what BIC asks for.
    """
    usual = float(squares.mean())
    clearly = 1 - min(2 * math.log(max(squares.size, 2)) / max(squares.size, 1), 1.0)
    best = (clearly * float(((squares - usual) ** 2).sum()), usual, np.ones(squares.size))
    for middle in np.quantile(popularity, np.linspace(0.02, 0.999, _CANDIDATES)):
        share = 1 / (1 + (middle / popularity) ** 2)
        usual = float(share @ squares) / max(float(share @ share), _TINY)
        misfit = float(((squares - usual * share) ** 2).sum())
        if misfit < best[0]:
            best = (misfit, usual, share)
    return best[1], best[2]


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
