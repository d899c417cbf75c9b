"""Put different things into one list: each next item is good and unlike those already listed."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats, Indices
from discreet.checks import real, require
from discreet.models.scorers.scorer import Scorer

# So many of the best items for each place of a list may be chosen from.
_POOL_PER_PLACE, _LEAST_POOL = 10, 100


def likeness_vectors(scorer: Scorer, strength: float) -> Floats:
    """Return the vectors that likeness is read from; none are asked for where nothing is diversified."""
    share = real("diversify", strength)
    require(0 <= share <= 1, "diversify", strength, "must lie between 0 (by worth alone) and 1")
    return scorer.item_vectors() if share else np.zeros((0, 0))


def diversified_rows(worth: Floats, vectors: Floats, k: int, strength: float) -> tuple[Indices, Floats]:
    """Return `k` items for each row of worth, and the values that order them.

    Rows with fewer items end with items of value minus infinity.
    """
    k = min(k, worth.shape[1])
    items, values = np.zeros((len(worth), k), dtype=np.int64), np.full((len(worth), k), -np.inf)
    for row, own in enumerate(worth):
        chosen, value = diversified(own, vectors, k, strength)
        items[row] = np.concatenate([chosen, np.flatnonzero(own == -np.inf)[: k - chosen.size]])
        values[row, : value.size] = value
    return items, values


def diversified(worth: Floats, vectors: Floats, k: int, strength: float) -> tuple[Indices, Floats]:
    """Return `k` items for one list, best first, and the value that each had when it was its turn.

    `strength` 0 is by worth alone, 1 by difference alone. The values fall: what is left only loses.

    An item's worth is taken as its place between the best and the last of those it is chosen from, likeness
    as the cosine between vectors (computed from the released model). Items of worth minus infinity never
    take part. The first item is the best one.
    """
    open_items = int(np.count_nonzero(worth > -np.inf))
    size = min(max(_POOL_PER_PLACE * k, _LEAST_POOL), open_items)
    pool = np.argsort(-worth, kind="stable")[:size]
    if not size or strength == 0:
        return pool[:k], worth[pool[:k]]
    best, last = worth[pool[0]], worth[pool[-1]]
    good = (worth[pool] - last) / max(best - last, np.finfo(np.float64).tiny)
    lengths = np.linalg.norm(vectors[pool], axis=1, keepdims=True)
    unit = vectors[pool] / np.maximum(lengths, np.finfo(np.float64).tiny)
    likeness, chosen, values = np.full(size, -1.0), [0], [1 - strength]
    for _ in range(min(k, size) - 1):
        likeness = np.maximum(likeness, unit @ unit[chosen[-1]])
        value = (1 - strength) * good - strength * (1 + likeness) / 2
        value[chosen] = -np.inf
        chosen.append(int(np.argmax(value)))
        values.append(float(value[chosen[-1]]))
    return pool[chosen], np.array(values)
