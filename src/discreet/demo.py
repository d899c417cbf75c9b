"""Show the main workflow on embedded data: fit with a guarantee, read the label, recommend, compare."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from discreet import model_settings
from discreet.data import Interactions, random_split
from discreet.data.datasets import catalog
from discreet.evaluation.scoring import measure, rating_references
from discreet.models import FittedModel, ListedItem

DATASET = "discreet-demo"
MODEL = "user-factorization"
EPSILON = 1.0
STARS, LISTS = "rmse", "ndcg@10"
METRICS = (STARS, LISTS)
# Each is compared in what it is good for: a baseline of stars shows nothing about lists, nor the reverse.
_BESIDE = (
    ("biases", EPSILON, STARS),
    ("popularity", EPSILON, LISTS),
    ("als", math.inf, STARS),
    ("ease", math.inf, LISTS),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """The results that the demo shows."""

    model: FittedModel
    data: dict[str, int]
    history: dict[str | int, float]
    recommendations: list[ListedItem]
    comparison: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """Return the results as one JSON object."""
        return {
            "model": self.model.name,
            "data": self.data,
            "guarantee": self.model.guarantee.to_json(),
            "history": self.history,
            "recommendations": [
                {"item": one[0], "score": one[1], "expected_stars": one.stars} for one in self.recommendations
            ],
            "comparison": self.comparison,
        }


def run() -> Tour:
    """Fit, recommend and compare; nothing is downloaded and nothing is written."""
    data = catalog.load(DATASET)
    split = random_split(data, 0.1, seed=0)
    model = model_settings.estimator(MODEL, {"epsilon": EPSILON}).fit(split.train)
    history = _favorites(split.train)
    comparison = [_row(MODEL, EPSILON, measure(model, split.train, split.test, METRICS))]
    for name, epsilon, metric in _BESIDE:
        other = model_settings.estimator(name, {"epsilon": epsilon}).fit(split.train)
        comparison.append(_row(name, epsilon, measure(other, split.train, split.test, metric)))
    bar = rating_references(split.train)["user mean"]
    rmse = measure(bar, split.train, split.test, "rmse")
    comparison.append({"model": "own mean of each user", "epsilon": "nothing released", "metrics": rmse})
    return Tour(
        model=model,
        data={"users": data.n_users, "items": data.n_items, "ratings": data.n_ratings},
        history=history,
        recommendations=model.recommend(history, k=10),
        comparison=comparison,
    )


def _row(name: str, epsilon: float, metrics: dict[str, float]) -> dict[str, Any]:
    return {"model": name, "epsilon": "inf" if math.isinf(epsilon) else epsilon, "metrics": metrics}


def _favorites(data: Interactions) -> dict[str | int, float]:
    """Return the best-rated items of the first user; the embedded data are synthetic."""
    span = slice(int(data.indptr[0]), int(data.indptr[1]))
    best = np.argsort(-data.values[span], kind="stable")[:12]
    ids = data.catalog.id_at(data.items[span][best]).tolist()
    return dict(zip(ids, data.values[span][best].tolist(), strict=True))
