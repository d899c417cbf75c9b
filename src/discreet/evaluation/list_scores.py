"""Score ranked lists in blocks of users, over the whole catalog like `recommend`, or over sampled items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Singles, experiment_generator, integer
from discreet.data import Interactions, cells_of_rows
from discreet.evaluation import ranking_metrics as ranking
from discreet.evaluation.errors import ModelBroken, NothingToRank, TooFewToSample
from discreet.evaluation.metrics import (
    EachListMetric,
    ListMetric,
    Metric,
    Predictor,
    ShownMetric,
    counted_people,
    counted_ratings,
    refuse_broken,
)
from discreet.evaluation.ranking_metrics import Ranks
from discreet.evaluation.shown_metrics import ListContext
from discreet.models import listable

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


# Scores held at a time: a block of users times the catalog, in single precision (32 MB).
_SCORES_PER_BLOCK = 1 << 23


def list_scores(
    model: Predictor,
    context: ListContext,
    test: Interactions,
    metrics: Sequence[Metric],
    *,
    liked: float,
    negatives: npt.NDArray[np.int32] | None = None,
) -> dict[Metric, float]:
    """Return each list metric; all of them rank the same candidates, the whole catalog or `negatives`."""
    train, people = context.train, np.flatnonzero(np.diff(test.indptr))
    showing = _Showing(metrics, context, people)
    counted = {
        metric: counted_ratings(metric, train, test, people, liked)
        for metric in metrics
        if isinstance(metric.definition, ListMetric)
    }
    ranks = ranks_of(model, train, test, people, [*counted], negatives=negatives, showing=showing)
    found = showing.scores()
    for metric, these in counted.items():
        found[metric] = float(person_scores(metric, ranks.only(these)).mean())
    return found


@final
class _Showing:
    """Scores of the lists that are shown, block by block."""

    def __init__(self, metrics: Sequence[Metric], context: ListContext, people: Indices) -> None:
        train = context.train
        self._train, self._people, self._context = train, people, context
        self._counted = {
            metric: counted_people(metric, train, people)
            for metric in metrics
            if not isinstance(metric.definition, ListMetric)
        }
        self._times = {metric: np.zeros(train.n_items, dtype=np.int64) for metric in self._counted}
        self._each: dict[Metric, list[Floats]] = {metric: [] for metric in self._counted}

    def add(self, candidates: Singles, block: slice) -> None:
        """Take the lists of a block of users."""
        for metric, who in self._counted.items():
            assert metric.k is not None
            kind, these = metric.definition, who[block]
            if isinstance(kind, EachListMetric):
                lists = ranking.listed(ranking.among_first(candidates[these], metric.k), metric.k)
                self._each[metric].append(kind.function(lists, self._people[block][these], self._context))
            else:
                self._times[metric] += ranking.shown(candidates[these], metric.k)

    def scores(self) -> dict[Metric, float]:
        """Return each metric of all lists."""
        return {metric: self._score(metric) for metric in self._counted}

    def _score(self, metric: Metric) -> float:
        kind = metric.definition
        if isinstance(kind, ShownMetric):
            return kind.function(self._times[metric], self._train)
        each = np.concatenate(self._each[metric])
        each = each[~np.isnan(each)]
        if not each.size:
            raise NothingToRank(metric=metric.kind)
        return float(each.mean())


def ranks_of(
    model: Predictor,
    train: Interactions,
    test: Interactions,
    people: Indices,
    metrics: Sequence[Metric],
    *,
    negatives: npt.NDArray[np.int32] | None = None,
    showing: _Showing | None = None,
) -> Ranks:
    """Return the ranks of each user's held-out items, up to the depth of these metrics.

    They are ranks in the whole catalog, or among `negatives`. `showing` takes each block of lists first.
    """
    better, tied = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    depths = [metric.k for metric in metrics]
    depth = None if None in depths else max((k for k in depths if k is not None), default=None)
    for block in _blocks(people.size, train.n_items):
        candidates = _block_scores(model, train, people[block])
        rows, items = _ratings_of(test, people[block])
        targets = candidates[rows, items]
        if negatives is None:
            listable(candidates, train, people[block])
        else:
            candidates = _with_sampled(candidates, negatives[block], rows, targets)
        if showing is not None:
            showing.add(candidates, block)
        if metrics:
            above, level = ranking.rank_counts(candidates, rows, targets, depth)
            better.append(above)
            tied.append(level)
    sizes = np.diff(test.indptr)[people]
    return Ranks(starts=np.cumsum(sizes) - sizes, better=np.concatenate(better), tied=np.concatenate(tied))


def person_scores(metric: Metric, ranks: Ranks) -> Floats:
    """Return a list metric for each user."""
    assert isinstance(metric.definition, ListMetric)
    # The metric was rejected if it needs a depth and has none.
    score: Callable[[Ranks, int | None], Floats] = metric.definition.function  # type: ignore[assignment]
    return score(ranks, metric.k)


def _blocks(n_people: int, n_items: int) -> Iterator[slice]:
    step = max(1, _SCORES_PER_BLOCK // max(1, n_items))
    for start in range(0, n_people, step):
        yield slice(start, start + step)


def _block_scores(model: Predictor, train: Interactions, people: Indices) -> Singles:
    # A copy: the block is masked in place, and a model may return a view of its own arrays.
    scores: Singles = np.array(model.worth(train, people), dtype=np.float32)
    if scores.shape != (people.size, train.n_items):
        raise ModelBroken(problem=f"scores of the shape {scores.shape}")
    refuse_broken(scores)
    return scores


def _ratings_of(data: Interactions, people: Indices) -> tuple[Indices, Indices]:
    """Return the ratings of `people` as pairs of a position in `people` and an item."""
    rows = np.repeat(np.arange(people.size), np.diff(data.indptr)[people])
    return rows, data.items[cells_of_rows(data.indptr, people)].astype(np.int64)


def _with_sampled(
    scores: Singles, negatives: npt.NDArray[np.int32], rows: Indices, targets: Singles
) -> Singles:
    """Return the scores of each user's sampled and held-out items, padded to one width."""
    sizes = np.bincount(rows, minlength=len(scores))
    held_out = np.full((len(scores), int(sizes.max())), -np.inf, dtype=np.float32)
    held_out[rows, np.arange(rows.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)] = targets
    return np.hstack((np.take_along_axis(scores, negatives.astype(np.int64), axis=1), held_out))
