"""Draw synthetic histories: positions of users among the item embeddings, and items near them.

The release models the users of an item as normal around its embedding. So a user at position z chooses item i
with a probability proportional to `popularity_i exp(f_i . z - c |f_i|^2)`. A history of n items is drawn
without replacement: the n largest of these log-odds plus Gumbel noise (Efraimidis and Spirakis 2006).

Where the release knows an order, a history is a few stretches in time. Its position then is the sum of one
that stays and one that drifts from stretch to stretch.

All users of a block are drawn at once; memory is bounded by the block. The time is that of users times items,
times the stretches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from discreet.core.arrays import Floats, Indices, Singles

#: The deviation of users' positions in each direction, in that of an item's users.
SPREAD = 2.5
#: The part of an item's squared length that its log-odds lose.
LENGTH = 0.5
#: The part of the variance of positions that drifts, and the correlation from stretch to stretch.
DRIFTING, KEPT = 0.3, 0.5
# Items of a stretch, and the most stretches of a history.
_STRETCH, _MOST_STRETCHES = 8, 16
# Scores of one block, and scores of all blocks beyond which histories have fewer stretches.
_SCORES, _MOST_SCORES = 1 << 23, 1 << 36


class Histories(NamedTuple):
    """The histories of one block: lengths, and all items, each user's in the order of time."""

    lengths: Indices
    items: Indices


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Source of drawn histories: log-odds at the origin and embeddings of all items."""

    log_odds: Singles
    vectors: Singles
    ordered: bool
    spread: float = SPREAD

    @classmethod
    def of(cls, popularity: Floats, vectors: Floats, *, ordered: bool, spread: float = SPREAD) -> Sampler:
        """Return the sampler of a release."""
        log_odds = np.log(popularity / popularity.max()) - LENGTH * (vectors**2).sum(axis=1)
        return cls(
            log_odds=log_odds.astype(np.float32),
            vectors=vectors.astype(np.float32),
            ordered=ordered,
            spread=spread,
        )

    @property
    def n_items(self) -> int:
        """Return the number of items."""
        return self.log_odds.size

    def positions(self, users: int, random: np.random.Generator) -> Singles:
        """Return positions of users in the directions of the embeddings."""
        drawn = random.standard_normal((users, self.vectors.shape[1]), dtype=np.float32)
        return drawn * np.float32(self.spread)

    def scores(self, positions: Singles) -> Singles:
        """Return the log-odds of every item at these positions, up to one constant for each."""
        scores: Singles = positions @ self.vectors.T
        scores += self.log_odds
        return scores

    def draw(self, lengths: Indices, random: np.random.Generator) -> Iterator[Histories]:
        """Yield histories of these lengths, in blocks; no length may exceed the catalog."""
        rows = max(_SCORES // self.n_items, 1)
        budget = _MOST_SCORES // max(lengths.size * self.n_items, 1)
        stretches = int(np.clip(budget, 1, _MOST_STRETCHES)) if self.ordered else 1
        for start in range(0, lengths.size, rows):
            yield self._block(lengths[start : start + rows], stretches, random)

    def _block(self, lengths: Indices, stretches: int, random: np.random.Generator) -> Histories:
        """Draw the histories of one block; the longest come first while drawing."""
        order = np.argsort(-lengths, kind="stable")
        falling = lengths[order]
        longest = int(falling.max(initial=0))
        chosen = np.zeros((lengths.size, longest), dtype=np.int64)
        staying, drifting = (self.positions(lengths.size, random) for _ in range(2))
        size = max(-(-longest // stretches), _STRETCH) if self.ordered else max(longest, 1)
        for start in range(0, longest, size):
            live = int(np.count_nonzero(falling > start))
            scores = self.scores(self._mixed(staying[:live], drifting[:live]))
            scores += _gumbel(scores.shape, random)
            np.put_along_axis(scores, chosen[:live, :start], -np.inf, axis=1)
            stop = min(start + size, longest)
            counts = np.minimum(falling[:live], stop) - start
            chosen[:live, start:stop] = _largest(scores, counts, random)
            drifting = _moved(drifting, self.positions(lengths.size, random))
        kept = np.arange(longest) < lengths[:, None]
        return Histories(lengths, chosen[np.argsort(order, kind="stable")][kept])

    def _mixed(self, staying: Singles, drifting: Singles) -> Singles:
        if not self.ordered:
            return staying
        mixed: Singles = (
            np.float32(np.sqrt(1 - DRIFTING)) * staying + np.float32(np.sqrt(DRIFTING)) * drifting
        )
        return mixed


def _moved(positions: Singles, fresh: Singles) -> Singles:
    moved: Singles = np.float32(KEPT) * positions + np.float32(np.sqrt(1 - KEPT**2)) * fresh
    return moved


def _gumbel(shape: tuple[int, ...], random: np.random.Generator) -> Singles:
    """Return Gumbel noise: minus the logarithm of exponential draws."""
    drawn = random.standard_exponential(shape, dtype=np.float32)
    noise: Singles = -np.log(np.maximum(drawn, np.finfo(np.float32).tiny))
    return noise


def _largest(scores: Singles, counts: Indices, random: np.random.Generator) -> Indices:
    """Return the places of the largest scores of each row: as many as it counts, mixed, then others."""
    width, most = scores.shape[1], int(counts.max())
    places = np.argpartition(scores, width - most, axis=1)[:, width - most :]
    falling = np.argsort(-np.take_along_axis(scores, places, axis=1), axis=1)
    keys = random.random(falling.shape, dtype=np.float32)
    keys[np.arange(most) >= counts[:, None]] = 2.0
    mixed = np.take_along_axis(falling, np.argsort(keys, axis=1), axis=1)
    return np.take_along_axis(places, mixed, axis=1)
