"""Measure Amazon Beauty and Toys in the field's own protocol, next to published numbers without privacy.

    python benchmarks/keep.py field.py                  both files, epsilon 1, 5, 10 and inf, ten draws
    python benchmarks/field.py --datasets Beauty --epsilons inf --seeds 1

The files are those of S3-Rec (CIKM 2020): one user per line, items oldest first, every user with five items
or more. The last item is the test, the one before it validation, and training ends before both. All items of
the catalog are ranked but those of the user's history. Published models read all items but the last when they
are tested, so the validation item is in the history that a list is made from, although nothing is learned
from it. `--part validation` scores the second to last item instead, for choices. Noise is simulated, delta is
1e-5. Each draw is scored on 3,000 users, drawn anew; without noise one fit is scored on all users.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import harness
import numpy as np

DELTA = 1e-5
METRICS = ("ndcg@10", "hr@10")
TESTED = 3_000
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


def attributes(name: str, data: Any) -> Any:
    """Return the public table of items with their attributes."""
    import polars as pl

    path = Path(os.environ["DISCREET_DATA"]) / "s3rec" / f"{name}_item2attributes.json.gz"
    with gzip.open(path, "rt", encoding="utf8") as file:
        known = json.load(file)
    words = [[f"a{word}" for word in known.get(str(item), [])] for item in data.catalog.ids]
    return pl.DataFrame({"item": data.catalog.ids, "attributes": words})


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
        if epsilon in map(float, options.attributes.split(",")) and not options.toy:
            models["user-factorization, attributes"] = models["user-factorization"].clone(
                item_features=attributes(name, train)
            )
        for model, estimator in models.items():
            runs: list[dict[str, float]] = []
            start, fitting = time.process_time(), 0.0
            for seed in range(1 if math.isinf(epsilon) else options.seeds):
                begun = time.process_time()
                fit = estimator.fit(train, random=PrivacyRandom.simulate(seed))
                fitting += time.process_time() - begun
                runs.append(measure(fit, histories, tested(test, epsilon, seed), ",".join(METRICS)))
            cell: dict[str, Any] = {metric: summary([run[metric] for run in runs]) for metric in METRICS}
            cell["fit seconds"] = round(fitting / len(runs), 2)
            cell["list seconds"] = round((time.process_time() - start - fitting) / len(runs), 2)
            found.setdefault(model, {})[f"{epsilon:g}"] = cell
            print(name, model, epsilon, cell, file=sys.stderr, flush=True)
    return found


def tested(test: Any, epsilon: float, seed: int) -> Any:
    """Return the tested items of some users, other ones for each seed; without noise, of all users."""
    people = np.flatnonzero(np.diff(test.indptr))
    if math.isinf(epsilon) or people.size <= TESTED:
        return test
    some = np.random.default_rng(seed).permutation(people)[:TESTED]
    return test.where(np.isin(test.rows(), some))


def summary(runs: list[float]) -> dict[str, float]:
    """Return the mean over seeds and the sample standard deviation."""
    deviation = float(np.std(runs, ddof=1)) if len(runs) > 1 else 0.0
    return {"mean": round(float(np.mean(runs)), 5), "deviation": round(deviation, 5), "runs": len(runs)}


def ratios(name: str, found: dict[str, Any]) -> dict[str, float]:
    """Return the NDCG@10 at each epsilon over the one that is published for SASRec."""
    peer = PUBLISHED.get(name, PUBLISHED["Beauty"])["SASRec"][0]
    own = next(iter(found.values()))
    return {epsilon: round(own[epsilon]["ndcg@10"]["mean"] / peer, 3) for epsilon in own}


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"datasets": "Beauty", "epsilons": "5", "seeds": 1},
        datasets="Beauty,Toys_and_Games",
        epsilons="1,5,10,inf",
        seeds=10,
        attributes=harness.option(default="1,5,10", help="epsilons at which items also have attributes"),
        part=harness.option(choices=("validation", "test"), default="test"),
    )
    data = {name: measured(name, options) for name in options.datasets.split(",")}
    results = {
        "data": data,
        "part": options.part,
        "delta": DELTA,
        "published": PUBLISHED,
        "ratio": {name: ratios(name, found) for name, found in data.items()},
    }
    harness.tell(results, options)


if __name__ == "__main__":
    main()
