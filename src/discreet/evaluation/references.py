"""Simple predictors without privacy or learning, to read every other number against. NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Unpack, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Singles
from discreet.data.interactions import Interactions
from discreet.evaluation.metrics import ListMetric, Metric, parse_metrics
from discreet.evaluation.scoring import HowScored, measure

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
