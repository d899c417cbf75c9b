"""Measure what a purpose is worth: predicted ratings and lists, with and without public item features.

    python benchmarks/keep.py purpose.py                          every data set, both metrics
    python benchmarks/purpose.py --datasets jester --epsilons 1,5 --purposes ratings,both

Ratings: RMSE of a random tenth. Lists: HR@10 on the whole catalog, everybody's latest (or without times a
random) item hidden. Mean and sample standard deviation over seeds, simulated noise, delta 1e-5. `--features`
names a .csv or .parquet table of public item features, item ids in its first column.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import harness
import numpy as np

DELTA = 1e-5
METRICS = {"ratings": ("rmse",), "lists": ("hr@10",), "both": ("rmse", "hr@10")}


def measured(
    data: Any, purpose: str, epsilon: float, metric: str, options: argparse.Namespace
) -> dict[str, float]:
    """Return the mean and the deviation of a metric over seeds; the seed fixes the split and the noise."""
    from discreet import UserFactorization
    from discreet.core.randomness import PrivacyRandom
    from discreet.data.splits import leave_one_out, random_split
    from discreet.evaluation.scoring import measure

    # Data without ratings have one purpose.
    feedback = "explicit" if data.facts.low < data.facts.high else "implicit"
    given = {"epsilon": epsilon, "delta": DELTA, "feedback": feedback, "purpose": purpose}
    found = []
    for seed in range(options.seeds):
        split = random_split(data, 0.1, seed) if metric == "rmse" else leave_one_out(data, seed)
        estimator = UserFactorization(**given, item_features=options.features)
        model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
        found.append(measure(model, split.train, split.test, metric, seed=seed)[metric])
    deviation = float(np.std(found, ddof=1)) if len(found) > 1 else 0.0
    return {"mean": round(float(np.mean(found)), 5), "deviation": round(deviation, 5)}


def opened(name: str, *, toy: bool) -> Any:
    """Return a data set by name, or the interactions of a file."""
    from discreet.data.inputs import open_data

    return open_data(name, implicit=True) if Path(name).is_file() else harness.ratings(name, toy=toy)


def main() -> None:
    datasets = "movielens-1m,movielens-100k,amazon-instant-video,movietweetings-100k,jester"
    toy = {"datasets": "movielens-100k", "epsilons": "5", "seeds": 1}
    options = harness.options(
        __doc__,
        toy=toy,
        datasets=harness.option(default=datasets, help="names, or files of interactions"),
        epsilons="1,5,10,20",
        purposes="lists,ratings,both",
        features=harness.option(help="a table of public item features"),
        seeds=3,
    )
    found: dict[str, Any] = {}
    for name in options.datasets.split(","):
        data = opened(name, toy=options.toy)
        for purpose in options.purposes.split(","):
            for metric in METRICS[purpose]:
                for level in options.epsilons.split(","):
                    one = measured(data, purpose, float(level), metric, options)
                    found.setdefault(data.name, {}).setdefault(metric, {}).setdefault(purpose, {})[level] = (
                        one
                    )
                    print(data.name, metric, purpose, level, one, file=sys.stderr, flush=True)
    harness.tell({"features": options.features is not None, "seeds": options.seeds, "found": found}, options)


if __name__ == "__main__":
    main()
