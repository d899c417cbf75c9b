"""Measure Amazon Beauty and Toys in the field's own protocol, next to published numbers without privacy.

    python benchmarks/keep.py field.py                  both files, epsilon 1, 5, 10 and inf, ten draws
    python benchmarks/field.py --datasets Beauty --epsilons inf --seeds 1

The files are those of S3-Rec (CIKM 2020): one user per line, items oldest first, every user with five items
or more. The last item is the test, the one before it validation, and training ends before both. All items of
the catalog are ranked but those of the user's history. Published models read all items but the last when they
are tested, so the validation item is in the history that a list is made from, although nothing is learned
from it; the metrics with "shorter:" in front are for histories that end before both. `--part validation`
scores the second to last item instead, for choices. Noise is simulated, delta is 1e-5; without noise one fit
is enough.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
from pathlib import Path
from typing import Any

import harness
import numpy as np

DELTA = 1e-5
METRICS = ("ndcg@10", "hr@10")
# NDCG@10 and HR@10 as their authors, or those of S3-Rec, print them.
PUBLISHED = {
    "Beauty": {
        "SASRec": (0.0318, 0.0605),
        "S3-Rec": (0.0327, 0.0647),
        "Caser": (0.0176, 0.0347),
        "BERT4Rec": (0.0170, 0.0347),
        "GRU4Rec": (0.0137, 0.0283),
        "popularity": (0.0068, 0.0152),
    },
    "Toys_and_Games": {
        "SASRec": (0.0374, 0.0675),
        "S3-Rec": (0.0376, 0.0700),
        "BERT4Rec": (0.0099, 0.0203),
        "GRU4Rec": (0.0084, 0.0176),
        "popularity": (0.0061, 0.0113),
    },
}


def load(name: str, *, toy: bool) -> Any:
    """Return the interactions of a file; a user's order stands for times."""
    import discreet

    if toy:
        data = harness.ratings("toy", toy=True)
        return data.with_values(np.ones_like(data.values))
    import polars as pl

    users: list[str] = []
    items: list[str] = []
    places: list[int] = []
    path = Path(os.environ["DISCREET_DATA"]) / "s3rec" / f"{name}.txt.gz"
    with gzip.open(path, "rt", encoding="utf8") as lines:
        for line in lines:
            user, *own = line.split()
            users += [user] * len(own)
            items += own
            places += range(len(own))
    frame = pl.DataFrame({"user": users, "item": items, "time": places})
    return discreet.from_frame(frame, name=name, implicit=True)


def split(data: Any, part: str) -> tuple[Any, Any, Any]:
    """Return what is trained on, the histories that lists are made from, and the items that are tested."""
    from discreet.data.splits import leave_one_out

    last = leave_one_out(data, 0)
    before = leave_one_out(last.train, 0)
    if part == "validation":
        return before.train, before.train, before.test
    return before.train, last.train, last.test


def measured(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return mean and deviation of each metric at each epsilon, and of private popularity."""
    from discreet import Popularity, UserFactorization
    from discreet.core.randomness import PrivacyRandom
    from discreet.evaluation.scoring import measure

    train, histories, test = split(load(name, toy=options.toy), options.part)
    found: dict[str, Any] = {}
    for epsilon in map(float, options.epsilons.split(",")):
        models = {
            "user-factorization": UserFactorization(epsilon=epsilon, delta=DELTA, feedback="implicit"),
            "popularity": Popularity(epsilon=epsilon, delta=DELTA),
        }
        for model, estimator in models.items():
            seeds = range(1 if math.isinf(epsilon) else options.seeds)
            fits = (estimator.fit(train, random=PrivacyRandom.simulate(seed)) for seed in seeds)
            runs: list[dict[str, float]] = []
            for fit in fits:
                run = measure(fit, histories, test, ",".join(METRICS))
                short = measure(fit, train, test, ",".join(METRICS))
                runs.append(run | {f"shorter:{metric}": value for metric, value in short.items()})
            found.setdefault(model, {})[f"{epsilon:g}"] = {
                metric: summary([run[metric] for run in runs]) for metric in runs[0]
            }
    return found


def summary(runs: list[float]) -> dict[str, float]:
    """Return the mean over seeds and the sample standard deviation."""
    deviation = float(np.std(runs, ddof=1)) if len(runs) > 1 else 0.0
    return {"mean": round(float(np.mean(runs)), 5), "deviation": round(deviation, 5), "runs": len(runs)}


def ratios(name: str, found: dict[str, Any]) -> dict[str, float]:
    """Return the NDCG@10 at each epsilon over the one that is published for SASRec."""
    peer = PUBLISHED.get(name, PUBLISHED["Beauty"])["SASRec"][0]
    own = found["user-factorization"]
    return {epsilon: round(own[epsilon]["ndcg@10"]["mean"] / peer, 3) for epsilon in own}


def show(results: dict[str, Any]) -> None:
    """Print one line for each model, and the published ones."""
    for name, found in results["data"].items():
        for model, levels in found.items():
            for epsilon, metrics in levels.items():
                text = "  ".join(f"{metric} {one['mean']:.4f}" for metric, one in metrics.items())
                print(f"{name:16} {model:20} {epsilon:>4}  {text}")
        for model, numbers in results["published"].get(name, {}).items():
            print(f"{name:16} {model:20} published  ndcg@10 {numbers[0]:.4f}  hr@10 {numbers[1]:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default="Beauty,Toys_and_Games")
    parser.add_argument("--epsilons", default="1,5,10,inf")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--part", choices=("validation", "test"), default="test")
    options = harness.options(parser, toy={"datasets": "Beauty", "epsilons": "5", "seeds": 1})
    data = {name: measured(name, options) for name in options.datasets.split(",")}
    results = {
        "data": data,
        "part": options.part,
        "delta": DELTA,
        "published": PUBLISHED,
        "ratio": {name: ratios(name, found) for name, found in data.items()},
    }
    harness.tell(results, options.json, show)


if __name__ == "__main__":
    main()
