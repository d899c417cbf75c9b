"""A Markov chain over items: what follows the items that a user chose last, without privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy.sparse import csr_matrix, vstack

from discreet.core.arrays import Floats, Indices
from discreet.core.checks import positive_finite
from discreet.data.interactions import Interactions
from discreet.models.baselines.item_item import (
    ItemItem,
    co_occurrence_counts,
    pairs_by_block,
    strongest_of_rows,
)
from discreet.models.baselines.tuning import SearchDirection

# An item that follows s steps later counts this to the power s - 1; interactions further apart do not count.
_LATER, _MOST_LATER = 0.5, 8
# Of a large catalog so many items are kept after each.
_MOST_NEXT = 256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MarkovChain(ItemItem):
    """Items that follow a user's latest items, without privacy: the baseline for data with an order.

    The probability of an item after another is estimated from how often it follows within a few steps, where
    later steps count less. `smoothing` counts of popularity are added to each item's transitions. It is found
    by a small search on hidden interactions unless it is given; so is `fading`, the rate at which older
    interactions lose weight. Without times every pair of a user's items is a transition in both directions.
    All items have transitions, or only the `most_items` most popular ones. In a catalog of more than 4,096
    the most frequent transitions of each item count, and popularity decides only between equals.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import MarkovChain, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = MarkovChain().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3
    """

    name: ClassVar[str] = "markov-chain"
    source: ClassVar[str] = "baseline, Rendle and others 2010"
    searched = ("smoothing", 10.0, SearchDirection(3.0, 0.1, 1e4))

    smoothing: float | None = None
    fading: float | None = None
    most_items: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._check()
        if self.smoothing is not None:
            positive_finite("smoothing", self.smoothing)

    def _counts(self, data: Interactions, items: Indices) -> Floats:
        return transition_counts(data, items)

    def _weights(self, counts: Floats, setting: float) -> Floats:
        return transition_probabilities(counts, setting)

    def _weights_of_many(self, data: Interactions, items: Indices, setting: float) -> csr_matrix:
        return transitions_of_many(data, items, setting)


def transition_counts(data: Interactions, items: Indices) -> Floats:
    """Return how often each of these items follows each other one, weighted by the steps between them.

    A step leads from one time to the next. Interactions at one time have no order, so such a pair counts half
    in both directions.
    """
    size = items.size
    if data.times is None:
        together = co_occurrence_counts(data, items)
        np.fill_diagonal(together, 0.0)
        return together
    counts = np.zeros(size * size)
    for before, after, weight in _transitions(data, items):
        counts += np.bincount(before * size + after, weights=weight, minlength=size * size)
    return counts.reshape(size, size)


def _transitions(data: Interactions, items: Indices) -> Iterator[tuple[Indices, Indices, Floats]]:
    """Yield items, items that follow, and weights, for some transitions after the others."""
    assert data.times is not None
    place = np.full(data.n_items, -1, dtype=np.int64)
    place[items] = np.arange(items.size)
    order = np.lexsort((data.times, data.rows()))
    people, columns, times = data.rows()[order], place[data.items[order]], data.times[order]
    changed = np.ones(people.size, dtype=bool)
    changed[1:] = (people[1:] != people[:-1]) | (times[1:] != times[:-1])
    step = np.cumsum(changed)
    for lag in range(1, min(_MOST_LATER, people.size - 1) + 1):
        pairs = (people[lag:] == people[:-lag]) & (columns[lag:] >= 0) & (columns[:-lag] >= 0)
        before, after = columns[:-lag][pairs], columns[lag:][pairs]
        apart = (step[lag:] - step[:-lag])[pairs]
        weight = np.where(apart > 0, _LATER ** (np.maximum(apart, 1) - 1.0), 0.5)
        yield before, after, weight
        tied = apart == 0
        yield after[tied], before[tied], weight[tied]


def transitions_of_many(data: Interactions, items: Indices, smoothing: float) -> csr_matrix:
    """Return the most probable items after each, for any number of items; others have probability 0."""
    parts = []
    for block in _counts_by_block(data, items):
        total = np.asarray(block.sum(axis=1)).ravel() + smoothing
        block.data = block.data / np.repeat(total, np.diff(block.indptr))
        parts.append(strongest_of_rows(block, _MOST_NEXT))
    return vstack(parts).tocsr()


def _counts_by_block(data: Interactions, items: Indices) -> Iterator[csr_matrix]:
    """Yield how often items follow some items, for some items after the others."""
    if data.times is None:
        for _, block in pairs_by_block(data, items):
            yield block
        return
    counts = csr_matrix((items.size, items.size))
    for before, after, weight in _transitions(data, items):
        counts = counts + csr_matrix((weight, (before, after)), shape=counts.shape)
    yield counts


def transition_probabilities(counts: Floats, smoothing: float) -> Floats:
    """Return the probability of each item after each other one, with popularity added to the counts."""
    share = counts.sum(axis=0) / max(float(counts.sum()), 1e-12)
    probabilities: Floats = (counts + smoothing * share) / (counts.sum(axis=1, keepdims=True) + smoothing)
    np.fill_diagonal(probabilities, 0.0)
    return probabilities
