"""Compute one number between 0 and 1 a person: how well a model serves what that person hid."""

from __future__ import annotations

import numpy as np

from discreet.arrays import Floats, Indices
from discreet.checks import ParameterError
from discreet.data.interactions import Interactions
from discreet.data.splits import Split
from discreet.evaluation import ranking
from discreet.evaluation.metrics import Metric
from discreet.evaluation.predictor import Predictor
from discreet.evaluation.ranking import Places

KNOWN = ("hr", "ndcg", "rmse")


def private_metric(text: str) -> Metric:
    """Read a metric that can be released: hr@k, ndcg@k (whole catalog) or rmse."""
    metric = Metric.parse(text)
    plain = metric.sampled is None and not metric.liked and metric.people is None
    if metric.kind not in KNOWN or not plain:
        raise ParameterError(f"metric={text!r} cannot be released privately. Ask for hr@10, ndcg@10 or rmse.")
    return metric


def personal_scores(model: Predictor, split: Split, metric: Metric) -> Floats:
    """Return the score of everybody who hid something; for rmse the squared error in squares of the scale.

    People are scored one at a time: products of whole blocks round a row by its place among others, and a
    score must be the same with and without anybody else.
    """
    people = np.flatnonzero(np.diff(split.test.indptr))
    score = _error if metric.kind == "rmse" else _listed
    found = np.array([score(model, split, metric, np.array([person])) for person in people.tolist()])
    # A model that answers no number serves that person not at all.
    worst = 1.0 if metric.kind == "rmse" else 0.0
    usable = np.nan_to_num(found, nan=worst, posinf=worst, neginf=worst)
    return np.asarray(np.clip(usable, 0.0, 1.0), dtype=np.float64)


def _listed(model: Predictor, split: Split, metric: Metric, person: Indices) -> float:
    own, hidden = split.train.select_users(person), split.test.select_users(person)
    scores = np.array(model.worth(own, np.zeros(1, np.int64)), dtype=np.float32)
    target = scores[0, hidden.items]
    scores[0, own.items] = -np.inf
    assert metric.k is not None
    better, tied = ranking.place(scores, np.zeros(1, np.int64), target, metric.k)
    places = Places(starts=np.zeros(1, np.int64), better=better, tied=tied)
    gain = ranking.hit_rate if metric.kind == "hr" else ranking.ndcg
    return float(gain(places, metric.k)[0])


def _error(model: Predictor, split: Split, metric: Metric, person: Indices) -> float:
    own, hidden = split.train.select_users(person), split.test.select_users(person)
    said = model.predict(own, np.zeros(1, np.int64), hidden.items.astype(np.int64))
    return float((said[0] - float(hidden.values[0])) ** 2) / scale_of(split.train) ** 2


def scale_of(data: Interactions) -> float:
    """Return how wide the declared scale is."""
    width = data.facts.high - data.facts.low
    if width <= 0:
        raise ParameterError("rmse needs ratings on a scale; these data hold choices only.")
    return width
