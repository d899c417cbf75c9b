"""Write the curves that `discreet plan` reads, from the committed accuracy run.

    python benchmarks/planning.py [--json]

Of each data set the recommended model's curve is taken where three epsilons, a floor and a bar were measured;
it is made monotone, because more epsilon is never worse but for chance. The floor is the list of favorites
(hr@10) or each person's own mean (rmse), the bar the best model without privacy. Of MovieLens 1M's ratings
both come from the README's picture.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import harness
import numpy as np

HERE = Path(__file__).parent
OUT = HERE.parent / "src" / "discreet" / "planning" / "curves.json"
PICTURE = HERE.parent / "docs" / "images" / "accuracy.json"
#: Ratings a person, from the data sets' tables.
RATINGS = {
    "movielens-1m": 165.6,
    "movielens-100k": 106.0,
    "movielens-latest-small": 149.0,
    "amazon-instant-video": 7.2,
    "restaurant-consumer": 8.4,
}


def curves(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every curve that the run holds."""
    found = []
    for dataset, models in run["means"].items():
        for metric in ("rmse", "hr@10"):
            points = _points(models.get("user-factorization", {}), metric)
            floor, bar = _drawn() if (dataset, metric) == ("movielens-1m", "rmse") else _ends(models, metric)
            if dataset not in RATINGS or len(points) < 3 or floor is None or bar is None:
                continue
            found.append(
                {
                    "dataset": dataset,
                    "people": run["people"][dataset],
                    "ratings_per_person": RATINGS[dataset],
                    "metric": metric,
                    "points": points,
                    "floor": round(floor, 4),
                    "bar": round(bar, 4),
                }
            )
    return found


def _points(cells: dict[str, Any], metric: str) -> list[list[float]]:
    measured = sorted((float(epsilon), cell[metric]) for epsilon, cell in cells.items() if metric in cell)
    finite = [(epsilon, value) for epsilon, value in measured if np.isfinite(epsilon)]
    best = np.minimum.accumulate if metric == "rmse" else np.maximum.accumulate
    values = best([value for _, value in finite]) if finite else []
    return [[epsilon, round(float(value), 4)] for (epsilon, _), value in zip(finite, values, strict=True)]


def _value(models: dict[str, Any], model: str, epsilon: str, metric: str) -> float | None:
    return models.get(model, {}).get(epsilon, {}).get(metric)


def _drawn() -> tuple[float, float]:
    picture = json.loads(PICTURE.read_text(encoding="utf8"))
    return picture["user mean"]["none"][0], picture["als"]["inf"][0]


def _ends(models: dict[str, Any], metric: str) -> tuple[float | None, float | None]:
    """Return floor and bar of lists; of ratings the run holds no floor."""
    if metric == "rmse":
        return None, None
    bars = [
        _value(models, model, "inf", metric) for model in ("ease", "implicit-als", "item-knn", "markov-chain")
    ]
    known = [value for value in bars if value is not None]
    return _value(models, "popularity", "10", metric), max(known, default=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options = harness.options(parser, toy={})
    run = json.loads((HERE / "results" / "accuracy.json").read_text(encoding="utf8"))
    found = curves(run)
    if not options.toy:
        OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    harness.tell({"curves": found}, options.json, lambda _: print(f"{len(found)} curves"))


if __name__ == "__main__":
    main()
