"""Score ranked lists: where the held-out items stand among the candidates, and what that is worth.

Ties are never broken by luck or by position. Each metric is the exact expectation over all orders of items
with equal scores, so a model that gives every item the same score gets what a random list would get. Only
coverage, which is about the lists actually shown, breaks ties by catalog order, as `recommend` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices, Singles

Flags = npt.NDArray[np.bool_]

# The largest temporary, in numbers, that resolving ties may build at a time.
_CHUNK = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Hold, for each held-out item, how many candidates score higher and how many the same (itself included).

    Cells of one person stand together; `starts` is the first cell of each person, who has at least one.
    """

    starts: Indices
    better: Indices
    tied: Indices

    @property
    def sizes(self) -> Indices:
        """Return the number of held-out items of each person."""
        return np.diff(self.starts, append=self.better.size)

    def only(self, counted: Flags) -> Places:
        """Return the cells marked; people without any are left out."""
        owners = np.repeat(np.arange(self.starts.size), self.sizes)[counted]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        return Places(starts=starts, better=self.better[counted], tied=self.tied[counted])


def place(
    candidates: Singles, rows: Indices, targets: Singles, depth: int | None = None
) -> tuple[Indices, Indices]:
    """Return how many entries of `candidates[rows[c]]` lie above `targets[c]`, and how many equal it.

    What must not take part (items already seen, padding) is minus infinity. With a `depth`, all that is told
    of places behind it is that they are behind it, which spares sorting the rest. The rows are rearranged in
    place: a block of scores is the largest thing in memory, and a copy would double it.
    """
    width = candidates.shape[1]
    if depth is None or depth >= width:
        candidates.sort(axis=1)
        upto = _count(candidates, rows, targets, inclusive=True)
        return width - upto, upto - _count(candidates, rows, targets, inclusive=False)
    candidates.partition(width - depth, axis=1)
    least = candidates[:, width - depth].copy()
    beyond = np.count_nonzero(candidates[:, : width - depth] == least[:, None], axis=1)
    top = np.sort(candidates[:, width - depth :], axis=1)
    upto = _count(top, rows, targets, inclusive=True)
    tied = upto - _count(top, rows, targets, inclusive=False)
    tied += np.where(targets == least[rows], beyond[rows], 0)
    return depth - upto, np.maximum(tied, 1)


def _count(ordered: Singles, rows: Indices, targets: Singles, *, inclusive: bool) -> Indices:
    """Count the entries of each target's sorted row that are below it (or at most it), by bisection."""
    width = ordered.shape[1]
    low, high = np.zeros(rows.size, dtype=np.int64), np.full(rows.size, width, dtype=np.int64)
    for _ in range(width.bit_length()):
        middle = (low + high) >> 1
        entries = ordered[rows, np.minimum(middle, width - 1)]
        right = (entries <= targets) if inclusive else (entries < targets)
        right &= low < high
        low = np.where(right, middle + 1, low)
        high = np.where(right, high, middle)
    return low


def hit_rate(places: Places, k: int) -> Floats:
    """Return, for each person, the probability that the first `k` hold at least one held-out item."""
    return _first(places, np.ones(k))


def reciprocal_rank(places: Places, k: int | None = None) -> Floats:
    """Return one over the rank of each person's first held-out item; 0 when it stands behind `k`."""
    reach = int((places.better + places.tied).max()) if k is None else k
    return _first(places, 1 / np.arange(1, reach + 1))


def recall(places: Places, k: int) -> Floats:
    """Return the share of each person's held-out items among the first `k`."""
    return _sum(places, np.ones(k)) / places.sizes


def capped_recall(places: Places, k: int) -> Floats:
    """Return the held-out items among the first `k` over the most that could be there."""
    return _sum(places, np.ones(k)) / np.minimum(places.sizes, k)


def precision(places: Places, k: int) -> Floats:
    """Return the share of the first `k` that are held-out items of that person."""
    return _sum(places, np.ones(k)) / k


def ndcg(places: Places, k: int) -> Floats:
    """Return the discounted gain of the held-out items over that of the best order, both cut at `k`."""
    discount = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(discount)[np.minimum(places.sizes, k) - 1]
    normalized: Floats = _sum(places, discount) / ideal
    return normalized


def shown(candidates: Singles, k: int) -> Indices:
    """Return how many of the rows have each item among their first `k`; minus infinity is never shown."""
    k = min(k, candidates.shape[1])
    least = np.partition(candidates, -k, axis=1)[:, -k, None]
    above = candidates > least
    level = (candidates == least) & (candidates > -np.inf)
    room = k - np.count_nonzero(above, axis=1)
    crowded = np.flatnonzero(np.count_nonzero(level, axis=1) > room)
    level[crowded] &= np.cumsum(level[crowded], axis=1) <= room[crowded, None]
    lists: Indices = np.count_nonzero(above | level, axis=0)
    return lists


def _sum(places: Places, gain: Floats) -> Floats:
    """Return each person's expected sum of `gain[rank - 1]` over the held-out items.

    Tied candidates are equally likely to take each of their ranks, so an item gets the mean over them.
    """
    total = np.concatenate(([0.0], np.cumsum(gain)))
    first = np.minimum(places.better, gain.size)
    last = np.minimum(places.better + places.tied, gain.size)
    per_person: Floats = np.add.reduceat((total[last] - total[first]) / places.tied, places.starts)
    return per_person


def _first(places: Places, gain: Floats) -> Floats:
    """Return each person's expected `gain[rank - 1]` of the held-out item that comes first.

    Only the best group of tied candidates matters: `good` of its `tied` members are held out.
    """
    better = np.minimum.reduceat(places.better, places.starts)
    in_group = places.better == np.repeat(better, places.sizes)
    good = np.add.reduceat(in_group.astype(np.int64), places.starts)
    tied = np.maximum.reduceat(np.where(in_group, places.tied, 0), places.starts)
    padded = np.append(gain, 0.0)
    value: Floats = padded[np.minimum(better, gain.size)]
    # Where every tied candidate is held out, the order cannot matter; behind the reach nothing counts.
    open_ones = np.flatnonzero((tied > good) & (better < gain.size))
    step = max(1, _CHUNK // gain.size)
    for start in range(0, open_ones.size, step):
        some = open_ones[start : start + step]
        value[some] = _first_of_group(better[some, None], tied[some, None], good[some, None], padded)
    return value


def _first_of_group(better: Indices, tied: Indices, good: Indices, padded: Floats) -> Floats:
    """Average the gain over where the first of `good` among `tied` in random order can stand."""
    width = min(int((tied - good).max()) + 1, padded.size - 1)
    offset = np.arange(width)
    # The chance that position `offset` misses, given that all before it missed.
    miss = np.maximum(tied - good - offset, 0) / np.maximum(tied - offset, 1)
    missed_before = np.cumprod(np.hstack((np.ones_like(miss[:, :1]), miss[:, :-1])), axis=1)
    gains = padded[np.minimum(better + offset, padded.size - 1)]
    average: Floats = np.sum(missed_before * (1 - miss) * gains, axis=1)
    return average
