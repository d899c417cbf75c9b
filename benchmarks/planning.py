"""Write the curves that `discreet budget plan` reads, from the committed accuracy run.

    python benchmarks/planning.py [--json]

Of each data set the recommended model's curve is taken where three epsilons, a floor and a bar were measured;
it is made monotone, because more epsilon is never worse but for chance. The floor is the list of popular
items (hr@10) or the best mean of `discreet compare` (rmse), the bar the best model without privacy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harness
import numpy as np

HERE = Path(__file__).parent
OUT = HERE.parent / "src" / "discreet" / "planning" / "curves.json"
#: People, items and ratings of each file, from the data sets' tables.
SIZES = {
    "movielens-1m": (6040, 3706, 1_000_209),
    "movielens-100k": (943, 1682, 100_000),
    "movielens-latest-small": (671, 9066, 100_004),
    "movietweetings-100k": (16_554, 10_506, 100_000),
    "amazon-instant-video": (5130, 1685, 37_126),
    "jester": (24_983, 100, 1_810_455),
}
#: The error of the best mean, of users or of items: `rating_references` on `random_split(data, 0.1, seed)`,
#: seeds 0 to 2.
BEST_MEAN = {
    "movielens-1m": 0.9799,
    "movielens-100k": 1.0257,
    "movielens-latest-small": 0.9688,
    "movietweetings-100k": 1.7191,
    "amazon-instant-video": 1.0374,
    "jester": 4.6341,
}
#: Data sets whose lists say nothing: with 100 items everybody has the same ten.
_RATINGS_ONLY = ("jester",)


def curves(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every curve that the run holds."""
    found = []
    for dataset, (people, items, ratings) in SIZES.items():
        models = run["means"][dataset]
        for metric in ("rmse",) if dataset in _RATINGS_ONLY else ("rmse", "hr@10"):
            points = _points(models["user-factorization"], metric)
            floor, bar = _ends(models, metric, dataset)
            if len(points) < 3 or floor is None or bar is None:
                continue
            found.append(
                {
                    "dataset": dataset,
                    "people": people,
                    "items": items,
                    "ratings_per_person": round(ratings / people, 1),
                    "metric": metric,
                    "points": points,
                    "floor": round(floor, 4),
                    "bar": round(bar, 4),
                }
            )
    return found


def _points(cells: dict[str, Any], metric: str) -> list[list[float]]:
    # The run holds some epsilons in two spellings; `.5` was measured later than `0.5`.
    spelled = sorted(cells.items(), key=lambda cell: cell[0].startswith("."))
    measured = {float(epsilon): cell[metric] for epsilon, cell in spelled if metric in cell}
    finite = sorted(epsilon for epsilon in measured if np.isfinite(epsilon))
    best = np.minimum.accumulate if metric == "rmse" else np.maximum.accumulate
    values = best([measured[epsilon] for epsilon in finite]) if finite else []
    return [[epsilon, round(float(value), 4)] for epsilon, value in zip(finite, values, strict=True)]


def _value(models: dict[str, Any], model: str, epsilon: str, metric: str) -> float | None:
    return models.get(model, {}).get(epsilon, {}).get(metric)


def _ends(models: dict[str, Any], metric: str, dataset: str) -> tuple[float | None, float | None]:
    """Return the floor and the bar of a metric, if they were measured."""
    names = ("als",) if metric == "rmse" else ("ease", "implicit-als", "item-knn", "markov-chain")
    bars = [_value(models, model, "inf", metric) for model in (*names, "user-factorization")]
    known = [value for value in bars if value is not None]
    if metric == "rmse":
        return BEST_MEAN.get(dataset), min(known, default=None)
    return _value(models, "popularity", "10", metric), max(known, default=None)


def main() -> None:
    options = harness.options(__doc__)
    run = json.loads((HERE / "results" / "accuracy.json").read_text(encoding="utf8"))
    found = curves(run)
    if not options.toy:
        OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")
    harness.tell({"curves": found}, options)


if __name__ == "__main__":
    main()
