"""Train other recommenders on synthetic data, and test them on real data.

    python benchmarks/synthesis.py                                    MovieLens 1M: EASE and ALS
    python benchmarks/synthesis.py --datasets gowalla,amazon-sports --epsilons 5
    python benchmarks/synthesis.py --validation                       on validation parts, to choose constants

A model is fitted on the training part with `for_synthesis`, as many synthetic users are drawn as it counted,
and a learner is trained on these alone. Then it makes lists, or predicts ratings, for real users from their
real histories. `own` is the private model itself, `popularity` the private baseline at the same epsilon, and
`real` the learner trained on the real data without privacy.

Lists are scored on the latest (without times a random) interaction of each user, `hr@10`, or with Gowalla's
own split by `recall@20`. Ratings are scored by `rmse` on a random tenth. Noise is simulated.

Every draw is kept in benchmarks/results/synthesis.json as soon as it is measured, as
`runs[data][metric][who][epsilon]`; draws that are there are not measured again, unless `--again`. With
`--validation` nothing is kept. `--json` prints the same object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import harness
import numpy as np
from keep import how

OUT = Path(__file__).with_name("results") / "synthesis.json"
DELTA = 1e-5
# EASE's ridge and the settings of the `implicit` package, chosen on validation parts.
RIDGE = 300.0
ALS = {"alpha": 5.0, "iterations": 10, "random_state": 0, "num_threads": 1}
WIDE_ALS = {"factors": 64, "regularization": 0.1}
# Synthetic users of sparse data show few directions: fewer factors and a stronger ridge fit them.
SYNTHETIC_ALS = {"amazon-sports": {"factors": 16, "regularization": 100.0}}
# Where histories are short, longer ones show a learner more: they are declared, and cost nothing.
DRAWN: dict[str, dict[str, Any]] = {"amazon-sports": {"length": 40, "order": False}}
# Learners by data set: EASE is cubic in the items, so it is for small catalogs.
LEARNERS = {"movielens-1m": ("ease",), "gowalla": ("implicit-als",), "amazon-sports": ("implicit-als",)}
TOY: dict[str, Any] = {"datasets": "movielens-100k", "epsilons": "5", "draws": 1, "users": 40}
_BLOCK = 512


def folder() -> Path:
    """Return the folder of data that `DISCREET_DATA` names."""
    return Path(os.environ["DISCREET_DATA"])


def load(name: str, *, toy: bool):
    """Return a data set; two of them are files beside the known ones."""
    from discreet.data.reading.readers import read

    if name in ("gowalla", "amazon-sports"):
        file = {"gowalla": "train.parquet", "amazon-sports": "choices.parquet"}[name]
        return read(folder() / name / file, implicit=True)
    return harness.ratings(name, toy=toy)


def list_split(name: str, data, *, validation: bool):
    """Return the training and the test part for lists."""
    import polars as pl

    from discreet.data.splits import Split, leave_one_out, random_split

    if name == "gowalla":
        if validation:
            return random_split(data, 0.1, 0)
        held = pl.read_parquet(folder() / name / "test.parquet")
        return Split(train=data, test=_aligned(data, held))
    split = leave_one_out(data)
    return leave_one_out(split.train) if validation else split


def _aligned(data, held):
    """Return interactions of a table as a part of the data: same users, same catalog."""
    rows, items = data.users.index_of(held["user"]), data.catalog.index_of(held["item"])
    order = np.lexsort((items, rows))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=data.n_users))])
    ones = np.ones(rows.size, dtype=np.float32)
    return replace(data, indptr=indptr, items=items[order].astype(np.int32), values=ones, listed=None)


def lists_of(model) -> Callable[[Any, Any], Any]:
    """Return the function that scores all items for some rows, as lists are ordered."""
    return lambda train, rows: model.worth(train, rows)


def scored(train, test, scores: Callable[[Any, Any], Any], k: int) -> float:
    """Return the mean share of a user's held-out items among the k best that they do not have yet."""
    users = np.flatnonzero(np.diff(test.indptr))
    found = 0.0
    for start in range(0, users.size, _BLOCK):
        rows = users[start : start + _BLOCK]
        numbers = np.array(scores(train, rows), dtype=np.float32)
        own = train.select_users(rows)
        numbers[own.rows(), own.items] = -np.inf
        best = np.argpartition(-numbers, k, axis=1)[:, :k]
        held = test.select_users(rows)
        listed = np.zeros(numbers.shape, dtype=bool)
        np.put_along_axis(listed, best, True, axis=1)
        hits = np.bincount(held.rows(), weights=listed[held.rows(), held.items], minlength=rows.size)
        found += float((hits / np.diff(held.indptr)).sum())
    return found / users.size


def ease_on(data, name: str):
    """Return the lists of EASE, trained on these data, without fading."""
    from discreet import Ease

    return lists_of(Ease(regularization=RIDGE, fading=0.0).fit(data))


def implicit_als_on(data, name: str):
    """Return the lists of the `implicit` package, trained on these data; users are folded in."""
    from implicit.als import AlternatingLeastSquares

    settings = SYNTHETIC_ALS.get(name, WIDE_ALS) if data.name == "synthetic" else WIDE_ALS
    learned = AlternatingLeastSquares(**ALS, **settings)
    matrix = data.to_scipy().copy()
    matrix.data = np.ones(matrix.nnz, dtype=np.float32)
    learned.fit(matrix, show_progress=False)
    items = np.asarray(learned.item_factors)

    def scores(train, rows):
        own = train.select_users(rows).to_scipy().copy()
        own.data = np.ones(own.nnz, dtype=np.float32)
        return learned.recalculate_user(np.arange(rows.size), own) @ items.T

    return scores


TRAINERS = {"ease": ease_on, "implicit-als": implicit_als_on}


def measure_lists(
    name: str, data, options: argparse.Namespace, kept: Kept
) -> Iterator[tuple[str, str, str, float]]:
    """Yield metric, who, epsilon and score of every draw."""
    from discreet import Popularity, PrivacyRandom, UserFactorization, synthesize

    split = list_split(name, data, validation=options.validation)
    metric, k = ("recall@20", 20) if name == "gowalla" else ("hr@10", 10)
    learners = LEARNERS.get(name, ("ease",))

    def score(scores) -> float:
        return scored(split.train, split.test, scores, min(k, data.n_items - 1))

    for learner in learners:
        if not kept.count(metric, f"{learner} on real", "inf"):
            yield metric, f"{learner} on real", "inf", score(TRAINERS[learner](split.train, name))
    for epsilon in options.epsilons.split(","):
        for draw in range(kept.count(metric, "popularity", epsilon), options.draws):
            random = PrivacyRandom.simulate(draw)
            recipe = UserFactorization(
                epsilon=float(epsilon), delta=DELTA, feedback="implicit", for_synthesis=True
            )
            model = recipe.fit(split.train, random=random)
            yield metric, "own", epsilon, score(lists_of(model))
            made = synthesize(model, options.users, seed=draw, **DRAWN.get(name, {}))
            for learner in learners:
                yield metric, f"{learner} on synthetic", epsilon, score(TRAINERS[learner](made, name))
            counted = Popularity(epsilon=float(epsilon), delta=DELTA).fit(split.train, random=random)
            yield metric, "popularity", epsilon, score(lists_of(counted))


def measure_ratings(data, options: argparse.Namespace, kept: Kept) -> Iterator[tuple[str, str, str, float]]:
    """Yield metric, who, epsilon and error of every draw."""
    from discreet import Als, PrivacyRandom, UserFactorization, synthesize
    from discreet.data.splits import random_split

    epsilons = options.epsilons.split(",")
    for draw in range(options.draws):
        missing = [one for one in epsilons if kept.count("rmse", "als on synthetic", one) <= draw]
        if not missing:
            continue
        split = random_split(data, 0.1, draw)
        split = random_split(split.train, 0.1, draw) if options.validation else split
        test = split.test

        def error(model, split=split, test=test) -> float:
            predicted = model.predict(split.train, test.rows(), test.items)
            return float(np.sqrt(np.mean((predicted - test.values) ** 2)))

        if kept.count("rmse", "als on real", "inf") <= draw:
            yield "rmse", "als on real", "inf", error(Als().fit(split.train))
        for epsilon in missing:
            recipe = UserFactorization(epsilon=float(epsilon), delta=DELTA, for_synthesis=True)
            model = recipe.fit(split.train, random=PrivacyRandom.simulate(draw))
            yield "rmse", "own", epsilon, error(model)
            made = synthesize(model, options.users, seed=draw)
            yield "rmse", "als on synthetic", epsilon, error(Als().fit(made))


class Kept:
    """Hold the runs of one data set; every new one is written at once, if `path` says where."""

    def __init__(self, name: str, path: Path | None, *, again: bool) -> None:
        self.name, self.path = name, path
        self.runs: dict[str, dict[str, dict[str, list[float]]]] = {}
        if path is not None and path.exists() and not again:
            self.runs = json.loads(path.read_text(encoding="utf8"))["runs"].get(name, {})

    def count(self, metric: str, who: str, epsilon: str) -> int:
        """Return how many runs there are."""
        return len(self.runs.get(metric, {}).get(who, {}).get(epsilon, []))

    def add(self, metric: str, who: str, epsilon: str, value: float) -> None:
        """Keep one more run, and say so."""
        cells = self.runs.setdefault(metric, {}).setdefault(who, {})
        cells.setdefault(epsilon, []).append(round(value, 5))
        print(f"{self.name:14} {metric:10} {who:26} epsilon {epsilon:>4}  {value:.4f}", file=sys.stderr)
        if self.path is not None:
            found = json.loads(self.path.read_text(encoding="utf8")) if self.path.exists() else {"runs": {}}
            found = {
                **how("synthesis.py", []),
                "delta": DELTA,
                "runs": {**found["runs"], self.name: self.runs},
            }
            self.path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure what is missing, and return the runs of all data sets that were asked for."""
    harness.use_threads(1, toy=options.toy)
    found: dict[str, Any] = {}
    path = None if options.toy or options.validation else OUT
    for name in options.datasets.split(","):
        data = load(name, toy=options.toy)
        kept = Kept(name, path, again=options.again)
        parts: list[Iterator[tuple[str, str, str, float]]] = []
        if "lists" in options.tasks.split(","):
            parts.append(measure_lists(name, data, options, kept))
        if "ratings" in options.tasks.split(",") and data.facts.low < data.facts.high:
            parts.append(measure_ratings(data, options, kept))
        for part in parts:
            for run in part:
                kept.add(*run)
        found[name] = kept.runs
    return {"delta": DELTA, "runs": found}


def main(argv: list[str] | None = None) -> None:
    """Measure and tell."""
    options = harness.options(
        __doc__,
        toy=TOY,
        datasets="movielens-1m",
        epsilons="inf,10,5,1",
        draws=3,
        users=harness.option(type=int, help="how many users to draw; by default as many as were counted"),
        tasks="lists,ratings",
        again=harness.flag("measure anew what is kept"),
        validation=harness.flag("use validation parts of the training data"),
    )
    harness.tell(measure(options), options)


if __name__ == "__main__":
    main()
