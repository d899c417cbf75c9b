"""Score one model on one split, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from discreet.core.checks import DataError, DiscreetError, ParameterError
from discreet.data.interactions import Interactions
from discreet.data.reading.item_words import item_words
from discreet.data.vocabulary import Vocabulary
from discreet.evaluation.list_scores import list_scores
from discreet.evaluation.metric_kinds import RatingMetric
from discreet.evaluation.metrics import (
    Metric,
    Predictor,
    counted_ratings,
    parse_metrics,
    refuse_broken,
    refuse_without_table,
)
from discreet.evaluation.negatives import rating_keys
from discreet.models.estimator import Estimator

_RATINGS_PER_BLOCK = 1 << 18


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

    List metrics count every held-out rating as relevant, unless a metric says `:liked`. Lists hold the items
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
    for sampled in dict.fromkeys(metric.sampled for metric in chosen if metric.ranks):
        lists = [metric for metric in chosen if metric.ranks and metric.sampled == sampled]
        found |= list_scores(model, train, test, lists, liked=liked, seed=seed, run=run, words=words)
    return {str(metric): found[metric] for metric in chosen}


def known_words(item_features: Any, catalog: Vocabulary) -> sp.csr_matrix:
    """Return the words of a public table of items; refuse a table that says nothing of the catalog."""
    words = item_words(item_features, catalog)
    if not words.nnz:
        raise DataError(
            "The table of items has no word that several items of the catalog share; its first column must "
            "hold item ids, and others genres, tags or the like."
        )
    return words


def check_split(train: Interactions, test: Interactions) -> None:
    """Refuse a split that holds out nothing, or ratings that are also in the training data."""
    if test.n_ratings == 0:
        raise DataError("The split left no held-out ratings to score.")
    if train.n_users != test.n_users or train.n_items != test.n_items:
        raise ParameterError("train and test must share their users and their catalog; split one dataset.")
    known, asked = rating_keys(train), rating_keys(test)
    if known.size:
        index = np.minimum(np.searchsorted(known, asked), known.size - 1)
        both = int(np.count_nonzero(known[index] == asked))
        if both:
            raise DataError(
                f"{both} held-out ratings are also in the training data. Split the data so that none is."
            )


def _rating_scores(
    model: Predictor, train: Interactions, test: Interactions, metrics: Sequence[Metric], liked: float
) -> dict[Metric, float]:
    signed = model.above is not None
    for metric in metrics:
        if signed and not takes_binary(metric):
            raise DiscreetError(
                f"{metric} compares ratings, but the model predicts only liked or not. Ask for accuracy."
            )
    predicted = np.empty(test.n_ratings)
    rows, items = test.rows(), test.items
    for start in range(0, test.n_ratings, _RATINGS_PER_BLOCK):
        some = slice(start, start + _RATINGS_PER_BLOCK)
        predicted[some] = model.predict(train, rows[some].astype(np.int64), items[some].astype(np.int64))
    refuse_broken(predicted)
    people = np.flatnonzero(np.diff(test.indptr))
    found: dict[Metric, float] = {}
    for metric in metrics:
        counted = counted_ratings(metric, train, test, people, liked)
        guesses, truths = predicted[counted], test.values[counted]
        assert isinstance(metric.definition, RatingMetric)
        how = {"above": liked, "cut": 0.0 if signed else None} if metric.definition.binary else {}
        found[metric] = metric.definition.function(guesses, truths, **how)
    return found


def takes_binary(metric: Metric) -> bool:
    """Return whether a metric can score predictions of liked or not."""
    return isinstance(metric.definition, RatingMetric) and metric.definition.binary


def _liked(model: Predictor, train: Interactions, above: float | None) -> float:
    if model.above is None:
        return (train.facts.low + train.facts.high) / 2 if above is None else above
    if above is not None and above != model.above:
        raise ParameterError(f"above={above!r} differs from the model's own {model.above!r}; leave it out.")
    return model.above


# What one asks of a model by what it answers; the first scores a list by the places of what was chosen.
_OF_LISTS, _OF_RATINGS, _OF_LIKED = ("ndcg@10", "hr@10"), ("rmse",), ("accuracy",)


def usual_metrics(estimators: Iterable[Estimator]) -> tuple[str, ...]:
    """Return what is measured if nobody says: errors of predicted ratings, and hits of lists."""
    return tuple(dict.fromkeys(name for one in estimators for name in _usual(one)))


def _usual(estimator: Estimator) -> tuple[str, ...]:
    if estimator.predicts_ratings:
        return _OF_RATINGS
    return _OF_LIKED if estimator.feedback == "binary" else _OF_LISTS


def refuse_meaningless(estimator: Estimator, metrics: Iterable[Metric]) -> None:
    """Refuse metrics that do not fit the estimator, before anything is spent."""
    for metric in metrics:
        if metric.ranks or estimator.predicts_ratings:
            continue
        if estimator.feedback != "binary":
            raise ParameterError(
                f"metric={str(metric)!r} compares ratings, but {estimator.named} makes lists and predicts "
                "no ratings. Ask for a list metric such as ndcg@10 or hr@10."
            )
        if not takes_binary(metric):
            raise ParameterError(
                f"metric={str(metric)!r} compares ratings, but {estimator.name} predicts only liked or not. "
                "Ask for accuracy."
            )
