"""Score one model on one split, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from discreet.core import Floats, Singles
from discreet.data import Interactions, Vocabulary, item_words
from discreet.evaluation.errors import (
    MetricDoesNotFit,
    NoSharedWords,
    NotAnEstimator,
    NothingHeldOut,
    SplitMismatch,
    SplitOverlaps,
    ThresholdsDiffer,
)
from discreet.evaluation.list_scores import list_scores, rating_keys, sample_negatives
from discreet.evaluation.metrics import (
    ListMetric,
    Metric,
    Predictor,
    RatingMetric,
    counted_ratings,
    parse_metrics,
    refuse_broken,
    refuse_without_table,
)
from discreet.evaluation.shown_metrics import ListContext
from discreet.models import Estimator
from discreet.statistics import DataSource

_RATINGS_PER_BLOCK = 1 << 18


class HowScored(TypedDict, total=False):
    """Options of `measure`."""

    seed: int
    run: int
    above: float | None
    item_features: Any


def measure(
    model: Predictor,
    train: Interactions,
    test: Interactions,
    metrics: str | Iterable[str | Metric],
    *,
    seed: int = 0,
    run: int = 0,
    above: float | None = None,
    item_features: Any = None,
) -> dict[str, float]:
    """Return each metric of `model` on the held-out ratings, with the training rows as histories.

    List metrics count every held-out rating as relevant, unless a metric has `:liked`. Lists have the items
    that a user has not rated in `train`, in the order of `recommend`. `seed` and `run` fix the sampled items.
    A rating is liked above `above` (by default the model's own threshold, or the middle of the scale).
    `item_features` is a public table for the metrics of content, item ids in its first column.
    """
    chosen = parse_metrics(metrics)
    refuse_without_table(chosen, item_features)
    check_split(train, test)
    found: dict[Metric, float] = {}
    liked = _liked(model, train, above)
    errors = [metric for metric in chosen if not metric.ranks]
    if errors:
        found |= _rating_scores(model, train, test, errors, liked)
    words = None if item_features is None else known_words(item_features, train.catalog)
    context = ListContext(train, words)
    for sampled in dict.fromkeys(metric.sampled for metric in chosen if metric.ranks):
        lists = [metric for metric in chosen if metric.ranks and metric.sampled == sampled]
        negatives = None
        if sampled is not None:
            people = np.flatnonzero(np.diff(test.indptr))
            negatives = sample_negatives(train, test, people, sampled, seed=seed, run=run)
        found |= list_scores(model, context, test, lists, liked=liked, negatives=negatives)
    return {str(metric): found[metric] for metric in chosen}


def known_words(item_features: Any, catalog: Vocabulary) -> sp.csr_matrix:
    """Return the words of a public table of items; raise for a table without items of the catalog."""
    words = item_words(item_features, catalog)
    if not words.nnz:
        raise NoSharedWords()
    return words


def check_split(train: Interactions, test: Interactions) -> None:
    """Raise for a split without held-out ratings, or ratings that are also in the training data."""
    if test.n_ratings == 0:
        raise NothingHeldOut()
    if train.n_users != test.n_users or train.n_items != test.n_items:
        raise SplitMismatch()
    known, asked = rating_keys(train), rating_keys(test)
    if known.size:
        index = np.minimum(np.searchsorted(known, asked), known.size - 1)
        both = int(np.count_nonzero(known[index] == asked))
        if both:
            raise SplitOverlaps(count=both)


def _rating_scores(
    model: Predictor, train: Interactions, test: Interactions, metrics: Sequence[Metric], liked: float
) -> dict[Metric, float]:
    signed = model.above is not None
    for metric in metrics:
        if signed and not takes_binary(metric):
            raise MetricDoesNotFit(
                metric=str(metric), subject="a model that predicts only likes", examples=("accuracy",)
            )
    predicted = predicted_ratings(model, train, test)
    people = np.flatnonzero(np.diff(test.indptr))
    found: dict[Metric, float] = {}
    for metric in metrics:
        counted = counted_ratings(metric, train, test, people, liked)
        guesses, truths = predicted[counted], test.values[counted]
        assert isinstance(metric.definition, RatingMetric)
        how = {"above": liked, "cut": 0.0 if signed else None} if metric.definition.binary else {}
        found[metric] = metric.definition.function(guesses, truths, **how)
    return found


def predicted_ratings(model: Predictor, train: Interactions, test: Interactions) -> Floats:
    """Return a prediction for each held-out rating, from the user's other ratings."""
    predicted = np.empty(test.n_ratings)
    rows, items = test.rows(), test.items
    for start in range(0, test.n_ratings, _RATINGS_PER_BLOCK):
        some = slice(start, start + _RATINGS_PER_BLOCK)
        predicted[some] = model.predict(train, rows[some].astype(np.int64), items[some].astype(np.int64))
    refuse_broken(predicted)
    return predicted


def takes_binary(metric: Metric) -> bool:
    """Return whether a metric can score predictions of liked or not."""
    return isinstance(metric.definition, RatingMetric) and metric.definition.binary


def _liked(model: Predictor, train: Interactions, above: float | None) -> float:
    if model.above is None:
        return (train.facts.low + train.facts.high) / 2 if above is None else above
    if above is not None and above != model.above:
        raise ThresholdsDiffer(above=above, own=model.above)
    return model.above


# What one asks of a model by what it answers; the first scores a list by the places of what was chosen.
_OF_LISTS, _OF_RATINGS, _OF_LIKED = ("ndcg@10", "hr@10"), ("rmse",), ("accuracy",)


def check_estimators(function: str, estimators: Iterable[object]) -> None:
    """Raise for a fitted model, or anything else that can't be fitted."""
    for one in estimators:
        if not isinstance(one, Estimator):
            raise NotAnEstimator(function=function, found=f"a {type(one).__name__}")


def usual_metrics(estimators: Iterable[Estimator]) -> tuple[str, ...]:
    """Return the default metrics: errors of predicted ratings, and hits of lists."""
    return tuple(dict.fromkeys(name for one in estimators for name in _usual(one)))


def usual_split(metrics: Iterable[Metric], data: Interactions | DataSource) -> str:
    """Return the split if none is chosen: what users choose next for lists, a random tenth for ratings.

    For lists it is the latest row of each user (without times a random one). If most users have a single row,
    it is the latest tenth of all rows.
    """
    if not all(metric.ranks for metric in metrics):
        return "random:0.1"
    if not isinstance(data, Interactions):
        return "leave-one-out"
    returning = int(np.count_nonzero(np.diff(data.indptr) > 1))
    if 2 * returning >= data.n_users:
        return "leave-one-out"
    if data.times is not None and data.n_ratings and data.times.min() < data.times.max():
        return "time:0.1"
    return "leave-one-out" if returning else "random:0.1"


def _usual(estimator: Estimator) -> tuple[str, ...]:
    if estimator.predicts_ratings:
        return _OF_RATINGS
    return _OF_LIKED if estimator.feedback == "binary" else _OF_LISTS


def refuse_meaningless(estimator: Estimator, metrics: Iterable[Metric]) -> None:
    """Raise for metrics that do not fit the estimator, before anything is spent."""
    for metric in metrics:
        if metric.ranks or estimator.predicts_ratings:
            continue
        if estimator.feedback != "binary":
            raise MetricDoesNotFit(
                metric=str(metric),
                subject=f"{estimator.named}, which predicts no ratings",
                examples=("ndcg@10", "hr@10"),
            )
        if not takes_binary(metric):
            raise MetricDoesNotFit(
                metric=str(metric),
                subject=f"{estimator.name}, which predicts only likes",
                examples=("accuracy",),
            )


#: What a reader sees: these numbers have no guarantee.
PREFIX = "reference (NOT PRIVATE): "
CHANCE = "chance"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Predictions from a number per user plus a number per item, read straight from the training data."""

    users: Floats
    items: Floats
    above: float | None = None

    def predict(self, histories: Interactions, rows: npt.ArrayLike, items: npt.ArrayLike) -> Floats:
        """Return the prediction of each cell."""
        cells: Floats = self.users[np.asarray(rows)] + self.items[np.asarray(items)]
        return cells

    def worth(self, histories: Interactions, rows: npt.ArrayLike) -> Singles:
        """Return a score for every item for each of these users."""
        every: Singles = np.add.outer(self.users[np.asarray(rows)], self.items).astype(np.float32)
        return every


def rating_references(train: Interactions) -> dict[str, Reference]:
    """Return the predictors of ratings: the mean of all, of the user, of the item."""
    mean = float(train.values.mean(dtype=np.float64)) if train.n_ratings else 0.0
    users = _means(train.rows(), train.values, train.n_users, mean)
    items = _means(train.items, train.values, train.n_items, mean)
    nobody, nothing = np.zeros(train.n_users), np.zeros(train.n_items)
    return {
        "global mean": Reference(users=nobody + mean, items=nothing),
        "user mean": Reference(users=users, items=nothing),
        "item mean": Reference(users=nobody, items=items),
    }


def ranking_references(train: Interactions) -> dict[str, Reference]:
    """Return the predictors of choices: how often an item was chosen, and plain chance."""
    nobody, nothing = np.zeros(train.n_users), np.zeros(train.n_items)
    counts = np.bincount(train.items, minlength=train.n_items).astype(np.float64)
    return {
        "popularity": Reference(users=nobody, items=counts),
        CHANCE: Reference(users=nobody, items=nothing),
    }


def baselines(
    train: Interactions,
    test: Interactions,
    metrics: str | Iterable[str | Metric],
    **how: Unpack[HowScored],
) -> dict[str, dict[str, float]]:
    """Return the scores of the reference predictors that can be scored by each metric, `how` as in `measure`.

    Rating metrics get the means, ranking metrics get popularity and chance. The keys say NOT PRIVATE.
    """
    chosen = parse_metrics(metrics)
    found: dict[str, dict[str, float]] = {}
    for ranks, references in ((False, rating_references(train)), (True, ranking_references(train))):
        fitting = [metric for metric in chosen if metric.ranks is ranks]
        for name, reference in references.items():
            # Without any order all lists of chance are the same, which shows nothing about variety.
            asked = [
                metric for metric in fitting if name != CHANCE or isinstance(metric.definition, ListMetric)
            ]
            if asked:
                found[PREFIX + name] = measure(reference, train, test, asked, **how)
    return found


#: `baselines`, under its name in 0.2.
bars = baselines


def _means(groups: npt.NDArray[np.int32], values: Singles, size: int, otherwise: float) -> Floats:
    counts = np.bincount(groups, minlength=size)
    sums = np.bincount(groups, weights=values, minlength=size)
    return np.where(counts > 0, sums / np.maximum(counts, 1), otherwise)
