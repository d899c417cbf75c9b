"""Score ranked lists: the ranks of held-out items among the candidates, and the metrics of these ranks.

Ties are never broken at random or by position. Each metric is the exact expectation over all orders of items
with equal scores, so a model that gives every item the same score gets what a random list would get. Only
metrics of the lists actually shown break ties by catalog order, as `recommend` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Singles
from discreet.data import Interactions
from discreet.evaluation.metrics import ListMetric, ShownMetric

Flags = npt.NDArray[np.bool_]

# The largest temporary, in numbers, that resolving ties may build at a time.
_CHUNK = 1 << 22


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """For each held-out item, how many candidates score higher, and how many the same (including itself).

    Items of one user are adjacent; `starts` is the first item of each user, who has at least one.
    """

    starts: Indices
    better: Indices
    tied: Indices

    @property
    def sizes(self) -> Indices:
        """Return the number of held-out items of each user."""
        return np.diff(self.starts, append=self.better.size)

    def only(self, counted: Flags) -> Ranks:
        """Return the marked items; users without any are skipped."""
        owners = np.repeat(np.arange(self.starts.size), self.sizes)[counted]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        return Ranks(starts=starts, better=self.better[counted], tied=self.tied[counted])


def rank_counts(
    candidates: Singles, rows: Indices, targets: Singles, depth: int | None = None
) -> tuple[Indices, Indices]:
    """Return how many entries of `candidates[rows[c]]` lie above `targets[c]`, and how many equal it.

    Excluded candidates (items already seen, padding) are minus infinity. With a `depth`, ranks beyond it are
    not resolved, which saves sorting the rest. The rows are rearranged in place: a block of scores is the
    largest array in memory, and a copy would double it.
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


def hit_rate(ranks: Ranks, k: int) -> Floats:
    """Return, for each user, the probability that the first `k` hold at least one held-out item."""
    return _first(ranks, np.ones(k))


def reciprocal_rank(ranks: Ranks, k: int | None = None) -> Floats:
    """Return one over the rank of each user's first held-out item; 0 if that rank exceeds `k`."""
    reach = int((ranks.better + ranks.tied).max()) if k is None else k
    return _first(ranks, 1 / np.arange(1, reach + 1))


def recall(ranks: Ranks, k: int) -> Floats:
    """Return the share of each user's held-out items among the first `k`."""
    return _sum(ranks, np.ones(k)) / ranks.sizes


def capped_recall(ranks: Ranks, k: int) -> Floats:
    """Return the held-out items among the first `k` over the most that could be there."""
    return _sum(ranks, np.ones(k)) / np.minimum(ranks.sizes, k)


def precision(ranks: Ranks, k: int) -> Floats:
    """Return the share of the first `k` that are held-out items of that user."""
    return _sum(ranks, np.ones(k)) / k


def ndcg(ranks: Ranks, k: int) -> Floats:
    """Return the discounted gain of the held-out items over that of the ideal order, both cut at `k`."""
    discount = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(discount)[np.minimum(ranks.sizes, k) - 1]
    normalized: Floats = _sum(ranks, discount) / ideal
    return normalized


def average_precision(ranks: Ranks, k: int) -> Floats:
    """Return the mean precision at each held-out item among the first `k`, over the most that could be there.

    With b candidates above a tied group of t, c of them held out, and g of the group held out, an item of the
    group at rank r has in expectation c + (g - 1) (r - b - 1) / (t - 1) held-out items before it.
    """
    users = np.repeat(np.arange(ranks.starts.size), ranks.sizes)
    order = np.lexsort((ranks.better, users))
    first = np.flatnonzero(np.diff(users[order] * (ranks.better.max() + 1) + ranks.better[order], prepend=-1))
    sizes = np.diff(first, append=order.size)
    group, above = np.empty_like(order), np.empty_like(order)
    group[order] = np.repeat(sizes, sizes)
    above[order] = np.repeat(first, sizes) - ranks.starts[users[order]]
    slope = (group - 1) / np.maximum(ranks.tied - 1, 1)
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, k + 1))))
    start, end = np.minimum(ranks.better, k), np.minimum(ranks.better + ranks.tied, k)
    gain = (1 + above - slope * (ranks.better + 1)) * (harmonic[end] - harmonic[start])
    found = (gain + slope * (end - start)) / ranks.tied
    per_user: Floats = np.add.reduceat(found, ranks.starts) / np.minimum(ranks.sizes, k)
    return per_user


def shown(candidates: Singles, k: int) -> Indices:
    """Return how many of the rows have each item among their first `k`."""
    times: Indices = np.count_nonzero(among_first(candidates, k), axis=0)
    return times


def among_first(candidates: Singles, k: int) -> Flags:
    """Mark the items among the first `k` of each row; minus infinity is never shown."""
    k = min(k, candidates.shape[1])
    least = np.partition(candidates, -k, axis=1)[:, -k, None]
    above = candidates > least
    level = (candidates == least) & (candidates > -np.inf)
    left = k - np.count_nonzero(above, axis=1)
    tied = np.flatnonzero(np.count_nonzero(level, axis=1) > left)
    level[tied] &= np.cumsum(level[tied], axis=1) <= left[tied, None]
    marked: Flags = above | level
    return marked


def listed(marked: Flags, k: int) -> Indices:
    """Return the marked items of each row, at most `k`, in catalog order and filled up with -1."""
    rows, items = np.nonzero(marked)
    counts = np.count_nonzero(marked, axis=1)
    lists = np.full((len(marked), k), -1, dtype=np.int64)
    lists[rows, np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)] = items
    return lists


def _sum(ranks: Ranks, gain: Floats) -> Floats:
    """Return each user's expected sum of `gain[rank - 1]` over the held-out items.

    Tied candidates are equally likely to take each of their ranks, so an item gets the mean over them.
    """
    total = np.concatenate(([0.0], np.cumsum(gain)))
    first = np.minimum(ranks.better, gain.size)
    last = np.minimum(ranks.better + ranks.tied, gain.size)
    per_person: Floats = np.add.reduceat((total[last] - total[first]) / ranks.tied, ranks.starts)
    return per_person


def _first(ranks: Ranks, gain: Floats) -> Floats:
    """Return each user's expected `gain[rank - 1]` of the held-out item that comes first.

    Only the best group of tied candidates matters: `good` of its `tied` members are held out.
    """
    better = np.minimum.reduceat(ranks.better, ranks.starts)
    in_group = ranks.better == np.repeat(better, ranks.sizes)
    good = np.add.reduceat(in_group.astype(np.int64), ranks.starts)
    tied = np.maximum.reduceat(np.where(in_group, ranks.tied, 0), ranks.starts)
    padded = np.append(gain, 0.0)
    value: Floats = padded[np.minimum(better, gain.size)]
    # Where every tied candidate is held out, the order does not matter; beyond the last gain nothing counts.
    open_ones = np.flatnonzero((tied > good) & (better < gain.size))
    step = max(1, _CHUNK // gain.size)
    for start in range(0, open_ones.size, step):
        some = open_ones[start : start + step]
        value[some] = _first_of_group(better[some, None], tied[some, None], good[some, None], padded)
    return value


def _first_of_group(better: Indices, tied: Indices, good: Indices, padded: Floats) -> Floats:
    """Average the gain over the positions of the first of `good` among `tied` in random order."""
    width = min(int((tied - good).max()) + 1, padded.size - 1)
    offset = np.arange(width)
    # The probability that position `offset` misses, given that all before it missed.
    miss = np.maximum(tied - good - offset, 0) / np.maximum(tied - offset, 1)
    missed_before = np.cumprod(np.hstack((np.ones_like(miss[:, :1]), miss[:, :-1])), axis=1)
    gains = padded[np.minimum(better + offset, padded.size - 1)]
    average: Floats = np.sum(missed_before * (1 - miss) * gains, axis=1)
    return average


def catalog_coverage(lists: Indices, train: Interactions) -> float:
    """Return the share of the catalog that is shown in at least one list."""
    return float(np.mean(lists > 0))


def novelty(lists: Indices, train: Interactions) -> float:
    """Return the mean self-information of shown items in bits."""
    counts = np.bincount(train.items, minlength=train.n_items)
    people = max(int(np.count_nonzero(np.diff(train.indptr))), 1)
    # An item without interactions counts like an item with one.
    surprise: Floats = -np.log2(np.maximum(counts, 1) / people)
    return float(lists @ surprise / max(int(lists.sum()), 1))


def gini(lists: Indices, train: Interactions) -> float:
    """Return how unevenly lists show the catalog: 0 if all items alike, near 1 if one item alone."""
    ordered, total = np.sort(lists).astype(np.float64), max(int(lists.sum()), 1)
    ranks = np.arange(1, ordered.size + 1)
    return float(np.sum((2 * ranks - ordered.size - 1) * ordered) / (ordered.size * total))


HIT_RATE = ListMetric(name="hr", usual_depth=10, private=True, function=hit_rate)
NDCG = ListMetric(name="ndcg", usual_depth=10, private=True, function=ndcg)
RECALL = ListMetric(name="recall", usual_depth=20, function=recall)
CAPPED_RECALL = ListMetric(name="capped-recall", usual_depth=20, function=capped_recall)
PRECISION = ListMetric(name="precision", usual_depth=10, function=precision)
MRR = ListMetric(name="mrr", needs_depth=False, function=reciprocal_rank)
MAP = ListMetric(name="map", usual_depth=10, function=average_precision)
COVERAGE = ShownMetric(name="coverage", usual_depth=10, function=catalog_coverage)
NOVELTY = ShownMetric(name="novelty", usual_depth=10, function=novelty)
GINI = ShownMetric(name="gini", usual_depth=10, lower_is_better=True, function=gini)
