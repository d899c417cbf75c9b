"""Sample negatives: items that a user has not rated, to rank held-out items among."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Indices
from discreet.core.checks import integer
from discreet.core.randomness import experiment_generator
from discreet.data.interactions import Interactions
from discreet.evaluation.errors import TooFewToSample

# Users per group: it bounds memory, and as a constant it keeps draws repeatable.
_GROUP = 1 << 16


def sample_negatives(
    train: Interactions, test: Interactions, people: Indices, count: int, *, seed: int, run: int = 0
) -> npt.NDArray[np.int32]:
    """Return `count` distinct items for each of `people`, uniform over the items in neither of their rows.

    Raises:
        DataError: A user has fewer than `count` items left.
    """
    integer("count", count, least=1)
    seen = _merged(rating_keys(train), rating_keys(test))
    n_items = train.n_items
    starts = np.searchsorted(seen, people * n_items)
    sizes = np.searchsorted(seen, (people + 1) * n_items) - starts
    short = int(np.count_nonzero(n_items - sizes < count))
    if short:
        raise TooFewToSample(users=short, of=people.size, count=count)
    # The number of unseen items before each seen one; with the row's offset the keys stay sorted.
    owners = seen // n_items
    rank_in_row = np.arange(seen.size) - np.searchsorted(seen, owners * n_items)
    unseen_before = owners * n_items + (seen - owners * n_items - rank_in_row)
    generator = experiment_generator(seed, "negatives", count, run)
    drawn = np.empty((people.size, count), dtype=np.int32)
    for begin in range(0, people.size, _GROUP):
        group = slice(begin, begin + _GROUP)
        ranks = _distinct_below(n_items - sizes[group], count, generator)
        skipped = np.searchsorted(unseen_before, (people[group] * n_items)[:, None] + ranks, side="right")
        drawn[group] = ranks + skipped - starts[group, None]
    return drawn


def rating_keys(data: Interactions) -> Indices:
    """Return one number per rating, `user row * n_items + item`, sorted."""
    return data.rows().astype(np.int64) * data.n_items + data.items


def _merged(first: Indices, second: Indices) -> Indices:
    """Return the union of two sorted arrays, sorted; the stable sort takes two runs in linear time."""
    both = np.sort(np.concatenate((first, second)), kind="stable")
    union: Indices = both[np.diff(both, prepend=-1) != 0]
    return union


def _distinct_below(bounds: Indices, count: int, generator: np.random.Generator) -> Indices:
    """Draw `count` distinct numbers below each bound, every set equally likely (Floyd's method)."""
    drawn = np.empty((bounds.size, count), dtype=np.int64)
    for step in range(count):
        newest = bounds - count + step
        guess = generator.integers(0, newest + 1)
        taken = (drawn[:, :step] == guess[:, None]).any(axis=1)
        drawn[:, step] = np.where(taken, newest, guess)
    return drawn
