"""Score a model on the held-out ratings of a data source, as exact sums: from shards, or on a cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats
from discreet.data import Interactions, PublicFacts, Split, SplitPlan, hash_ids, mix
from discreet.evaluation.errors import MetricDoesNotFit, NothingHeldOut, SplitNeedsMemory
from discreet.evaluation.list_scores import person_scores, ranks_of
from discreet.evaluation.metrics import (
    Metric,
    Predictor,
    RatingMetric,
    is_summable,
    refuse_broken,
    summable_examples,
)
from discreet.evaluation.private import OneEach
from discreet.evaluation.scoring import takes_binary
from discreet.statistics import (
    FARTHEST,
    VECTOR_STEPS,
    Block,
    DataSource,
    Held,
    Hiding,
    Number,
    Part,
    Statistic,
    Steps,
    as_fixed_point,
    to_fixed_point,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ByHash:
    """Ratings hidden by hash (of user, item, and seed): those whose share of all hashes is in [low, high)."""

    seed: int
    low: float
    high: float

    def hidden(self, people: Interactions, /) -> npt.NDArray[np.bool_]:
        """Mark the hidden ratings."""
        seed = np.full(1, self.seed % 2**64, dtype=np.uint64)
        own = mix(hash_ids(people.users) ^ mix(seed))
        draws = mix(np.repeat(own, np.diff(people.indptr)) ^ mix(hash_ids(people.catalog))[people.items])
        shares = (draws >> np.uint64(11)) / 2.0**53
        return np.asarray((shares >= self.low) & (shares < self.high))


def hidings(plan: SplitPlan | Split, seed: int) -> Iterator[Hiding]:
    """Yield the hiding rules of a split plan for a data source, one per fold."""
    kind = "given" if isinstance(plan, Split) else plan.kind
    if isinstance(plan, Split) or kind in ("time", "given"):
        raise SplitNeedsMemory(split=kind)
    if kind == "leave-one-out":
        yield OneEach()
    elif kind == "random":
        yield ByHash(seed=seed, low=0.0, high=plan.fraction)
    else:
        for fold in range(plan.folds):
            yield ByHash(seed=seed, low=fold / plan.folds, high=(fold + 1) / plan.folds)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutScores(Statistic):
    """Sum of the scores of a model on held-out ratings, and the number of users or ratings scored.

    List metrics are one number between 0 and 1 per user. Errors are counted per rating, in units of the
    scale's `width` (squared for rmse) and at most 1: predictions are clipped to the scale. These sums are
    exact, not private.
    """

    model: Annotated[Predictor, Held()]
    hiding: Annotated[Hiding, Held()]
    metrics: Annotated[tuple[Metric, ...], Held()]
    liked: Annotated[float, Number(-math.inf, math.inf)]
    low: Annotated[float, Number(-FARTHEST, FARTHEST)]
    width: Annotated[float, Number(0.0, FARTHEST)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return, for each metric, a sum and a count."""
        longest = math.nextafter(math.sqrt(2), 2)
        return tuple(
            Part(str(metric), (2,), bound=longest, of="person" if metric.ranks else "rating")
            for metric in self.metrics
        )

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.alone()
        split = Split.by_mask(people, self.hiding.hidden(people))
        if split.test.n_ratings == 0:
            return
        lists = [metric for metric in self.metrics if metric.ranks]
        found = self._lists(split, lists) if lists else {}
        if len(lists) < len(self.metrics):
            found |= self._errors(split)
        for metric, total in zip(self.metrics, sums, strict=True):
            scores = to_fixed_point(found[metric])
            total += as_fixed_point(np.array([scores.sum(), scores.size * VECTOR_STEPS]))

    def _errors(self, split: Split) -> dict[Metric, Floats]:
        test = split.test
        rows, items = test.rows().astype(np.int64), test.items.astype(np.int64)
        predicted = np.asarray(self.model.predict(split.train, rows, items), dtype=np.float64)
        refuse_broken(predicted)
        cut = self.liked if self.model.above is None else 0.0
        agree = (predicted > cut) == (test.values > self.liked)
        error = np.abs(np.clip(predicted, self.low, self.low + self.width) - test.values) / self.width
        error = np.minimum(error, 1.0)
        wrong = (~agree).astype(np.float64)
        return {
            metric: _contribution(metric, wrong if takes_binary(metric) else error)
            for metric in self.metrics
            if not metric.ranks
        }

    def _lists(self, split: Split, metrics: Sequence[Metric]) -> dict[Metric, Floats]:
        people = np.flatnonzero(np.diff(split.test.indptr))
        ranks = ranks_of(self.model, split.train, split.test, people, metrics)
        liked = split.test.values > self.liked
        found = {}
        for metric in metrics:
            counted = ranks.only(liked) if metric.liked else ranks
            # A block may hold no liked rating.
            found[metric] = person_scores(metric, counted) if counted.better.size else np.zeros(0)
        return found


def _contribution(metric: Metric, error: Floats) -> Floats:
    """Return what each rating adds to the sum, between 0 and 1."""
    assert isinstance(metric.definition, RatingMetric) and metric.definition.of_error is not None
    return np.clip(metric.definition.of_error(error), 0.0, 1.0)


def refuse_for_sources(metrics: Sequence[Metric], facts: PublicFacts) -> None:
    """Raise for metrics that need all users in memory, before anything is fitted or spent."""
    for metric in metrics:
        if not is_summable(metric.definition) or metric.sampled is not None or metric.people:
            raise MetricDoesNotFit(metric=str(metric), subject="shards", examples=tuple(summable_examples()))
        if facts.low == facts.high and (metric.liked or not metric.ranks):
            raise MetricDoesNotFit(metric=str(metric), subject="implicit feedback", examples=("hr@10",))


def score_source(
    model: Predictor, data: DataSource, hiding: Hiding, metrics: tuple[Metric, ...], above: float | None
) -> dict[str, float]:
    """Return each metric of a model on the held-out ratings of a data source."""
    facts = data.facts
    width = facts.high - facts.low
    liked = next(one for one in (model.above, above, (facts.low + facts.high) / 2) if one is not None)
    statistic = HeldOutScores(
        model=model, hiding=hiding, metrics=metrics, liked=liked, low=facts.low, width=width or 1.0
    )
    sums = data.bounded().total(statistic)
    found = {}
    for metric in metrics:
        total, count = sums.floats(str(metric)).tolist()
        if not count:
            raise NothingHeldOut(metric=str(metric))
        mean = total / count
        kind = metric.definition
        found[str(metric)] = kind.from_mean(mean, width) if isinstance(kind, RatingMetric) else mean
    return found
