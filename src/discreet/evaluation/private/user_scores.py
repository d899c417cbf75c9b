"""Compute one bounded score per user and model, on an item that is held out.

The held-out item depends on the user's own row only. Splits for experiments do not have this property: they
draw from one stream for all users, so one more user would change what is held out for others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.registry import PRIVATE_METRIC_EXAMPLES
from discreet.data.bounding import keep_per_user
from discreet.data.facts import Duplicates, PublicFacts
from discreet.data.inputs import accept, refuse_columns
from discreet.data.interactions import Interactions
from discreet.data.roles import Choice
from discreet.data.splits import Split
from discreet.evaluation import ranking_metrics as ranking
from discreet.evaluation.errors import MetricDoesNotFit, ScoreOutOfBounds
from discreet.evaluation.list_scores import person_scores
from discreet.evaluation.metrics import ListMetric, Metric, Predictor
from discreet.evaluation.ranking_metrics import Ranks
from discreet.models.fitted import FittedModel
from discreet.models.lists import listable
from discreet.statistics.data_source import DataSource, open_source
from discreet.statistics.domain import Held
from discreet.statistics.statistic import (
    VECTOR_BITS,
    Block,
    Part,
    Statistic,
    Steps,
    as_fixed_point,
    to_fixed_point,
)


def private_metric(text: str) -> Metric:
    """Read a metric that can be released: one that its definition calls private, over the whole catalog."""
    metric = Metric.parse(text)
    plain = metric.sampled is None and not metric.liked and metric.people is None
    kind = metric.definition
    # The mean of a rating metric is read as a squared error.
    bounded = isinstance(kind, ListMetric) or kind.name == "rmse"
    if not (kind.private and bounded and plain):
        raise MetricDoesNotFit(metric=text, subject="private scores", examples=tuple(PRIVATE_METRIC_EXAMPLES))
    return metric


def scored_data(
    data: object,
    models: Sequence[FittedModel],
    metric: Metric,
    columns: Choice | None,
    duplicates: Duplicates,
) -> DataSource:
    """Return the data to score models on; a file or frame is read with the models' catalog and facts.

    If nothing reads ratings, they are dropped, and then their scale need not be public.
    """
    unread = metric.ranks and not any(model.scorer.needs_ratings for model in models)
    if isinstance(data, str | Path):
        data = open_source(data) or data
    if not isinstance(data, DataSource):
        rated = (model.facts for model in models if model.facts.low < model.facts.high)
        facts = next(rated, models[0].facts)
        data = accept(
            data,
            implicit=unread,
            columns=columns,
            duplicates=duplicates,
            catalog=models[0].catalog,
            facts=facts.without_scale() if unread else facts,
        )
    else:
        refuse_columns(columns, data)
    return data.without_ratings() if unread and isinstance(data, Interactions) else data


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalScores(Statistic):
    """Sum of the users' scores: c_1, ..., c_m between -1/2 and 1/2, and 1/2 for each user counted.

    With a `difference` there are two models and one number, half of the difference of their scores. The
    vector is at most sqrt(m + 1) / 2 long. A user without a held-out item contributes nothing.
    """

    models: Annotated[tuple[Predictor, ...], Held()]
    metric: Annotated[Metric, Held()]
    difference: Annotated[bool, Held()] = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one part: the sums of scores, followed by the sum of halves."""
        count = 1 if self.difference else len(self.models)
        return (Part("scores", (count + 1,), bound=bound_of(count)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        split = hide_one_each(block.alone())
        scores = [personal_scores(model, split, self.metric) - 0.5 for model in self.models]
        contributions = np.column_stack([(scores[0] - scores[1]) / 2] if self.difference else scores)
        sums[0][:] += fixed_point_scores(contributions)


def bound_of(scores: int) -> float:
    """Return the largest norm of one user's contribution to so many scores, rounded up."""
    return math.nextafter(math.sqrt(scores + 1) / 2, math.inf)


def fixed_point_scores(contributions: Floats) -> Steps:
    """Return the sum of contributions (a row per user) and of a half for each user, in fixed point."""
    if np.any(np.abs(contributions) > 0.5):
        raise ScoreOutOfBounds()
    halves = len(contributions) << (VECTOR_BITS - 1)
    return np.append(as_fixed_point(to_fixed_point(contributions).sum(axis=0)), np.int64(halves))


def personal_scores(model: Predictor, split: Split, metric: Metric) -> Floats:
    """Return the score of each user with a held-out item; for rmse the squared error over the squared scale.

    Users are scored one at a time: products of whole blocks round a row depending on its position among
    others, and a score must be the same with and without any other user.
    """
    people = np.flatnonzero(np.diff(split.test.indptr))
    score = _listed if metric.ranks else _error
    found = np.array([score(model, split, metric, person) for person in people.tolist()])
    # A prediction that is not a number gets the worst score.
    worst = 1.0 if metric.lower_is_better else 0.0
    usable = np.nan_to_num(found, nan=worst, posinf=worst, neginf=worst)
    return np.asarray(np.clip(usable, 0.0, 1.0), dtype=np.float64)


def _listed(model: Predictor, split: Split, metric: Metric, person: int) -> float:
    own, hidden = split.train.span(person, person + 1), split.test.span(person, person + 1)
    alone = np.zeros(1, np.int64)
    scores = np.array(model.worth(own, alone), dtype=np.float32)
    target = scores[0, hidden.items]
    listable(scores, own, alone)
    better, tied = ranking.rank_counts(scores, alone, target, metric.k)
    ranks = Ranks(starts=np.zeros(1, np.int64), better=better, tied=tied)
    return float(person_scores(metric, ranks)[0])


def _error(model: Predictor, split: Split, metric: Metric, person: int) -> float:
    own, hidden = split.train.span(person, person + 1), split.test.span(person, person + 1)
    predicted = model.predict(own, np.zeros(1, np.int64), hidden.items.astype(np.int64))
    return float((predicted[0] - float(hidden.values[0])) ** 2) / scale_of(split.train.facts) ** 2


def scale_of(facts: PublicFacts) -> float:
    """Return the width of the declared scale."""
    width = facts.high - facts.low
    if width <= 0:
        raise MetricDoesNotFit(metric="rmse", subject="implicit feedback", examples=("hr@10", "ndcg@10"))
    return width


@final
@dataclass(frozen=True, slots=True)
class OneEach:
    """A split that hides each user's latest item, or without times one by a public hash.

    Users keep a single item.
    """

    def hidden(self, people: Interactions, /) -> npt.NDArray[np.bool_]:
        """Mark the hidden ratings."""
        one = keep_per_user(people.indptr, people.items, people.times, people.users, people.catalog, cap=1)
        lengths = np.diff(people.indptr)
        return np.asarray(one & np.repeat(lengths > 1, lengths))


def hide_one_each(data: Interactions) -> Split:
    """Split the data into the visible ratings and one hidden rating per user."""
    return Split.by_mask(data, OneEach().hidden(data))
