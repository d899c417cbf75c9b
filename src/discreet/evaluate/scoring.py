"""Score one model on one split, in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats, Indices, Singles
from discreet.checks import DataError, DiscreetError, ParameterError
from discreet.data.interactions import Interactions
from discreet.data.ordering import cells_of_rows
from discreet.evaluate import metrics as rating
from discreet.evaluate import ranking
from discreet.evaluate.metrics import Metric, parse_metrics
from discreet.evaluate.negatives import cell_keys, sample_negatives
from discreet.evaluate.ranking import Places

# Scores held at a time: a block of people times the catalog, in single precision (32 MB).
_SCORES_PER_BLOCK = 1 << 23
_CELLS_PER_BLOCK = 1 << 18


class Predictor(Protocol):
    """What can be scored: a fitted model, or anything that predicts like one."""

    @property
    def above(self) -> float | None:
        """Return the rating above which a verdict is +1, or None for predictors of ratings."""

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return a prediction for each cell."""

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item for each of these people."""


def measure(
    model: Predictor,
    train: Interactions,
    test: Interactions,
    metrics: str | Iterable[str | Metric],
    *,
    seed: int = 0,
    run: int = 0,
    above: float | None = None,
) -> dict[str, float]:
    """Return each metric of `model`, which sees the training rows as histories, on the held-out ratings.

    Every held-out rating counts as a choice when lists are scored. Lists hold what a person has not met in
    `train`. `seed` and `run` fix the sampled items; `above` is the rating that counts as liked for `accuracy`
    (by default the middle of the scale, or the model's own).
    """
    chosen = parse_metrics(metrics)
    check_split(train, test)
    found: dict[Metric, float] = {}
    cells = [metric for metric in chosen if not metric.ranks]
    if cells:
        found |= _rating_scores(model, train, test, cells, above)
    for sampled in dict.fromkeys(metric.sampled for metric in chosen if metric.ranks):
        lists = [metric for metric in chosen if metric.ranks and metric.sampled == sampled]
        found |= _ranking_scores(model, train, test, lists, sampled, seed, run)
    return {str(metric): found[metric] for metric in chosen}


def check_split(train: Interactions, test: Interactions) -> None:
    """Refuse a split that holds out nothing, or something the training data show."""
    if test.n_ratings == 0:
        raise DataError("The split left no held-out ratings to score.")
    if train.n_users != test.n_users or train.n_items != test.n_items:
        raise ParameterError("train and test must share their users and their catalog; split one data set.")
    known, asked = cell_keys(train), cell_keys(test)
    if known.size:
        spot = np.minimum(np.searchsorted(known, asked), known.size - 1)
        both = int(np.count_nonzero(known[spot] == asked))
        if both:
            raise DataError(
                f"{both} held-out ratings stand in the training data too. Split the data so that none does."
            )


def _rating_scores(
    model: Predictor, train: Interactions, test: Interactions, metrics: Sequence[Metric], above: float | None
) -> dict[Metric, float]:
    signed = model.above is not None
    for metric in metrics:
        if signed and metric.kind != "accuracy":
            raise DiscreetError(
                f"{metric} compares ratings, but the model says only liked or not. Ask for accuracy."
            )
    predicted = np.empty(test.n_ratings)
    rows, items = test.rows(), test.items
    for start in range(0, test.n_ratings, _CELLS_PER_BLOCK):
        some = slice(start, start + _CELLS_PER_BLOCK)
        predicted[some] = model.predict(train, rows[some].astype(np.int64), items[some].astype(np.int64))
    _refuse_broken(predicted)
    errors = {
        "rmse": rating.root_mean_squared_error,
        "mae": rating.mean_absolute_error,
        "are": rating.average_relative_error,
    }
    liked = _liked(model, train, above)
    return {
        metric: errors[metric.kind](predicted, test.values)
        if metric.kind in errors
        else rating.accuracy(predicted, test.values, above=liked, cut=0.0 if signed else None)
        for metric in metrics
    }


def _liked(model: Predictor, train: Interactions, above: float | None) -> float:
    if model.above is None:
        return (train.facts.low + train.facts.high) / 2 if above is None else above
    if above is not None and above != model.above:
        raise ParameterError(f"above={above!r} is not the model's own {model.above!r}; leave it out.")
    return model.above


def _ranking_scores(
    model: Predictor,
    train: Interactions,
    test: Interactions,
    metrics: Sequence[Metric],
    sampled: int | None,
    seed: int,
    run: int,
) -> dict[Metric, float]:
    people = np.flatnonzero(np.diff(test.indptr))
    negatives = (
        None if sampled is None else sample_negatives(train, test, people, sampled, seed=seed, run=run)
    )
    ever_shown = {
        metric: np.zeros(train.n_items, dtype=np.bool_) for metric in metrics if metric.kind == "coverage"
    }
    depths = [metric.k for metric in metrics]
    depth = None if None in depths else max(k for k in depths if k is not None)
    better: list[Indices] = []
    tied: list[Indices] = []
    for block in _blocks(people.size, train.n_items):
        scores = _block_scores(model, train, people[block])
        rows, items = _cells(test, people[block])
        targets = scores[rows, items]
        if negatives is None:
            scores[_cells(train, people[block])] = -np.inf
            candidates = scores
        else:
            candidates = _with_sampled(scores, negatives[block], rows, targets)
        for metric, seen in ever_shown.items():
            assert metric.k is not None
            seen |= ranking.shown(candidates, metric.k)
        above, level = ranking.place(candidates, rows, targets, depth)
        better.append(above)
        tied.append(level)
    sizes = np.diff(test.indptr)[people]
    places = Places(starts=np.cumsum(sizes) - sizes, better=np.concatenate(better), tied=np.concatenate(tied))
    return {m: float(ever_shown[m].mean()) if m in ever_shown else _list_score(m, places) for m in metrics}


def _list_score(metric: Metric, places: Places) -> float:
    """Return the mean over people of a list metric."""
    if metric.kind == "mrr":
        return float(ranking.reciprocal_rank(places, metric.k).mean())
    assert metric.k is not None
    per_person = {
        "hr": ranking.hit_rate,
        "ndcg": ranking.ndcg,
        "recall": ranking.recall,
        "capped-recall": ranking.capped_recall,
        "precision": ranking.precision,
    }[metric.kind]
    return float(per_person(places, metric.k).mean())


def _blocks(n_people: int, n_items: int) -> Iterator[slice]:
    step = max(1, _SCORES_PER_BLOCK // max(1, n_items))
    for start in range(0, n_people, step):
        yield slice(start, start + step)


def _block_scores(model: Predictor, train: Interactions, people: Indices) -> Singles:
    # A copy: the block is masked in place, and a model may hand out a view of its own numbers.
    scores: Singles = np.array(model.scores(train, people), dtype=np.float32)
    if scores.shape != (people.size, train.n_items):
        raise DiscreetError(
            f"The model returned scores of shape {scores.shape}; one row a person was asked for."
        )
    _refuse_broken(scores)
    return scores


def _refuse_broken(numbers: npt.NDArray[np.floating]) -> None:
    # The extremes are finite only if all are, and finding them needs no temporary.
    if not (np.isfinite(numbers.min()) and np.isfinite(numbers.max())):
        broken = int(np.count_nonzero(~np.isfinite(numbers)))
        raise DiscreetError(
            f"The model predicted NaN or infinity in {broken} of {numbers.size} cells; it has no score."
        )


def _cells(data: Interactions, people: Indices) -> tuple[Indices, Indices]:
    """Return the ratings of `people` as pairs of a position in `people` and an item."""
    rows = np.repeat(np.arange(people.size), np.diff(data.indptr)[people])
    return rows, data.items[cells_of_rows(data.indptr, people)].astype(np.int64)


def _with_sampled(
    scores: Singles, negatives: npt.NDArray[np.int32], rows: Indices, targets: Singles
) -> Singles:
    """Return the scores of each person's sampled and held-out items, padded to one width."""
    sizes = np.bincount(rows, minlength=len(scores))
    held_out = np.full((len(scores), int(sizes.max())), -np.inf, dtype=np.float32)
    held_out[rows, np.arange(rows.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)] = targets
    return np.hstack((np.take_along_axis(scores, negatives.astype(np.int64), axis=1), held_out))
