"""Compute one bounded score per user: how well a model serves an item hidden from it.

Splits for experiments draw from one stream for everybody: one more person would change what others hide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.checks import ParameterError
from discreet.data.bounding import keep_per_user
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.splits import Split
from discreet.evaluation import ranking
from discreet.evaluation.metrics import Metric, Predictor
from discreet.evaluation.ranking import Places
from discreet.models.lists import listable
from discreet.statistics.blocks import Block
from discreet.statistics.domain import Held
from discreet.statistics.fixed_point import VECTOR_BITS, Steps, as_fixed_point, to_fixed_point
from discreet.statistics.statistic import Part, Statistic

KNOWN = ("hr", "ndcg", "rmse")


def private_metric(text: str) -> Metric:
    """Read a metric that can be released: hr@k, ndcg@k (whole catalog) or rmse."""
    metric = Metric.parse(text)
    plain = metric.sampled is None and not metric.liked and metric.people is None
    if metric.kind not in KNOWN or not plain:
        raise ParameterError(f"metric={text!r} cannot be released privately. Ask for hr@10, ndcg@10 or rmse.")
    return metric


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalScores(Statistic):
    """Sum what people tell of models: scores c_1, ..., c_m between -1/2 and 1/2, and 1/2 for being there.

    With a `difference` there are two models and one number, half of what the first scores more. The vector is
    at most sqrt(m + 1) / 2 long. Who has hidden nothing tells nothing.
    """

    models: Annotated[tuple[Predictor, ...], Held()]
    metric: Annotated[Metric, Held()]
    difference: Annotated[bool, Held()] = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the sums of scores, and then of halves."""
        told = 1 if self.difference else len(self.models)
        return (Part("scores", (told + 1,), bound=math.nextafter(math.sqrt(told + 1) / 2, math.inf)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        split = hide_one_each(block.alone())
        scores = [personal_scores(model, split, self.metric) - 0.5 for model in self.models]
        told = np.column_stack([(scores[0] - scores[1]) / 2] if self.difference else scores)
        sums[0][:] += fixed_point_scores(told)


def fixed_point_scores(told: Floats) -> Steps:
    """Return the sum of what people tell (a row each) and of a half for each of them, in whole steps."""
    if np.any(np.abs(told) > 0.5):
        raise ParameterError("A person's score must lie between -1/2 and 1/2 when it is told.")
    halves = len(told) << (VECTOR_BITS - 1)
    return np.append(as_fixed_point(to_fixed_point(told).sum(axis=0)), np.int64(halves))


def personal_scores(model: Predictor, split: Split, metric: Metric) -> Floats:
    """Return the score of everybody who hid something; for rmse the squared error in squares of the scale.

    People are scored one at a time: products of whole blocks round a row by its place among others, and a
    score must be the same with and without anybody else.
    """
    people = np.flatnonzero(np.diff(split.test.indptr))
    score = _error if metric.kind == "rmse" else _listed
    found = np.array([score(model, split, metric, person) for person in people.tolist()])
    # A model that answers no number serves that person not at all.
    worst = 1.0 if metric.kind == "rmse" else 0.0
    usable = np.nan_to_num(found, nan=worst, posinf=worst, neginf=worst)
    return np.asarray(np.clip(usable, 0.0, 1.0), dtype=np.float64)


def _listed(model: Predictor, split: Split, metric: Metric, person: int) -> float:
    own, hidden = split.train.span(person, person + 1), split.test.span(person, person + 1)
    alone = np.zeros(1, np.int64)
    scores = np.array(model.worth(own, alone), dtype=np.float32)
    target = scores[0, hidden.items]
    listable(scores, own, alone)
    assert metric.k is not None
    better, tied = ranking.place(scores, alone, target, metric.k)
    places = Places(starts=np.zeros(1, np.int64), better=better, tied=tied)
    gain = ranking.hit_rate if metric.kind == "hr" else ranking.ndcg
    return float(gain(places, metric.k)[0])


def _error(model: Predictor, split: Split, metric: Metric, person: int) -> float:
    own, hidden = split.train.span(person, person + 1), split.test.span(person, person + 1)
    said = model.predict(own, np.zeros(1, np.int64), hidden.items.astype(np.int64))
    return float((said[0] - float(hidden.values[0])) ** 2) / scale_of(split.train.facts) ** 2


def scale_of(facts: PublicFacts) -> float:
    """Return how wide the declared scale is."""
    width = facts.high - facts.low
    if width <= 0:
        raise ParameterError("rmse needs ratings on a scale; these data hold choices only.")
    return width


@final
@dataclass(frozen=True, slots=True)
class OneEach:
    """Hide everybody's latest item, or without times one by a public hash; who has one item keeps it."""

    def hidden(self, people: Interactions, /) -> npt.NDArray[np.bool_]:
        """Mark the hidden ratings."""
        chosen = keep_per_user(people.indptr, people.items, people.times, people.users, people.catalog, cap=1)
        lengths = np.diff(people.indptr)
        return np.asarray(chosen & np.repeat(lengths > 1, lengths))


def hide_one_each(data: Interactions) -> Split:
    """Return the data parted into what is known and what everybody hides."""
    return Split.by_mask(data, OneEach().hidden(data))
