"""Walk the main job once on embedded data: fit with a promise, read the label, recommend, compare."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet import recipes
from discreet.data.datasets import catalog
from discreet.data.interactions import Interactions
from discreet.data.splits import random_split
from discreet.evaluate.references import rating_references
from discreet.evaluate.scoring import measure
from discreet.models.fitted import FittedModel

DATASET = "discreet-demo"
MODEL = "user-factorization"
EPSILON = 1.0
_METRICS = ("rmse", "ndcg@10")
_BESIDE = (("biases", EPSILON), ("popularity", EPSILON), ("als", math.inf))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """Hold what the demo shows."""

    model: FittedModel
    data: dict[str, int]
    history: dict[str | int, float]
    recommendations: list[tuple[str | int, float]]
    comparison: list[dict[str, Any]]

    def to_json(self) -> dict[str, Any]:
        """Return the same as one JSON object."""
        return {
            "model": self.model.name,
            "data": self.data,
            "guarantee": self.model.guarantee.to_json(),
            "history": self.history,
            "recommendations": [{"item": item, "score": score} for item, score in self.recommendations],
            "comparison": self.comparison,
        }


def run() -> Tour:
    """Fit, recommend and compare; nothing is downloaded and nothing is written."""
    data = catalog.load(DATASET)
    split = random_split(data, 0.1, seed=0)
    model = recipes.estimator(MODEL, {"epsilon": EPSILON}).fit(split.train)
    history = _favorites(split.train)
    comparison = [_row(MODEL, EPSILON, model, split.train, split.test)]
    for name, epsilon in _BESIDE:
        if name != MODEL:
            other = recipes.estimator(name, {"epsilon": epsilon}).fit(split.train)
            comparison.append(_row(name, epsilon, other, split.train, split.test))
    bar = rating_references(split.train)["user mean"]
    rmse = measure(bar, split.train, split.test, "rmse")
    comparison.append({"model": "own mean of each person", "epsilon": "nothing released", "metrics": rmse})
    return Tour(
        model=model,
        data={"users": data.n_users, "items": data.n_items, "ratings": data.n_ratings},
        history=history,
        recommendations=model.recommend(history, k=10),
        comparison=comparison,
    )


def _row(
    name: str, epsilon: float, model: FittedModel, train: Interactions, test: Interactions
) -> dict[str, Any]:
    ranks_only = not model.scorer.needs_ratings
    metrics = measure(model, train, test, _METRICS[1:] if ranks_only else _METRICS)
    return {"model": name, "epsilon": "inf" if math.isinf(epsilon) else epsilon, "metrics": metrics}


def _favorites(data: Interactions) -> dict[str | int, float]:
    """Return the history of the embedded data's first person; these people are invented."""
    span = slice(int(data.indptr[0]), int(data.indptr[1]))
    best = np.argsort(-data.values[span], kind="stable")[:12]
    ids = data.catalog.id_at(data.items[span][best]).tolist()
    return dict(zip(ids, data.values[span][best].tolist(), strict=True))


def show(tour: Tour, console: Console) -> None:
    """Print the tour for a person."""
    facts = tour.data
    console.print(
        f"\nEmbedded data: {facts['users']:,} invented people, {facts['items']:,} invented films, "
        f"{facts['ratings']:,} ratings.\n",
        highlight=False,
    )
    console.print(tour.model.guarantee.label(f"Privacy facts: {tour.model.name}"))
    console.print(f"\n{tour.model.guarantee.sentence()}\n", highlight=False)
    liked = ", ".join(str(item) for item in list(tour.history)[:4])
    table = Table("#", "recommended", "expected stars", title=f"For somebody who likes {liked}, ...")
    for rank, (item, score) in enumerate(tour.recommendations, start=1):
        table.add_row(str(rank), str(item), f"{score:.2f}")
    console.print(table)
    console.print(_comparison_table(tour.comparison))
    console.print(
        "RMSE (lower is better) tells how well stars are predicted; NDCG (higher is better) whether what "
        "people went on to watch stands on top, and there films that everybody watches are hard to beat.\n"
        "Your own ratings: [bold]discreet fit ratings.csv --epsilon 1 --out mine.discreet[/]",
        highlight=False,
    )


def _comparison_table(rows: list[dict[str, Any]]) -> Table:
    table = Table("model", "epsilon", *_METRICS, title="On ratings held out")
    for row in rows:
        values = [f"{row['metrics'][name]:.4f}" if name in row["metrics"] else "-" for name in _METRICS]
        epsilon = "∞ (not private)" if row["epsilon"] == "inf" else str(row["epsilon"])
        table.add_row(row["model"], epsilon, *values)
    return table
