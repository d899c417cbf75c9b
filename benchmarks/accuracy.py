"""Measure every user-level model on every data set: lists and predicted ratings against epsilon, beside bars.

    python benchmarks/accuracy.py                             what is not measured yet, cheapest data first
    python benchmarks/accuracy.py --datasets jester --models user-factorization,als --again
    python benchmarks/accuracy.py --groups later --again      only what is chosen after one moment
    python benchmarks/accuracy.py --search                    a wide search over the bars' settings
    python benchmarks/accuracy.py --generated 500000          a generated file with a known best error
    python benchmarks/accuracy.py --check                     only say which cells fail

`--json` prints `{data: {model: {epsilon: {metric: mean}}}}`, or what `--search`, `--generated` or `--check`
found.
Results go to benchmarks/results/accuracy.json as `means[data][model][epsilon][metric]`, the sample standard
deviation over seeds as `spreads` in the same form and every seed's value as `runs`. A cell that is there is
not measured again, and several processes may share the file. Lists are those of `fit` and `recommend` with
default settings, on the whole catalog, everybody's latest (or without times a random) rating hidden; errors
are of a random tenth of all ratings. `amazon-sports` and `gowalla` are read from the folder that
DISCREET_DATA names; there lists are those of 3,000 people, and Gowalla has its published split and
recall@20. `choices-only` is user-factorization that reads only what was chosen.
Metrics with `later:` before their names are of everything that is chosen after one moment, which cuts off
the latest tenth; there the models called `recent-` fade with a half-life of 30 days, which was not tuned.
Bars are not private: their numbers stand under epsilon inf alone.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import harness
import numpy as np
from keep import how

OUT = Path(__file__).with_name("results") / "accuracy.json"
DELTA = 1e-5
EPSILONS = ("0.1", "0.5", "1", "2", "5", "10", "inf")
# Cheapest first.
DATASETS = (
    "restaurant-consumer",
    "amazon-instant-video",
    "movielens-100k",
    "movielens-latest-small",
    "discreet-demo",
    "movietweetings-100k",
    "jester",
    "movielens-1m",
    "amazon-sports",
    "gowalla",
)
# Files of interactions that have no name in the package, and how many people their lists are tested on.
FILES = {"amazon-sports": "choices.parquet", "gowalla": "train.parquet"}
TESTED = 3_000
LISTS = "hr@10,ndcg@10,hr@10:liked,coverage@10,novelty@10"
RATINGS = "rmse"
# What is chosen next: one moment cuts off the latest tenth of all interactions. These metrics are kept with
# "later:" before their names.
LATER, LATEST_SHARE, HALF_LIFE = "later", 0.1, 30.0
# Of files without ratings, and of a published split.
LISTED, PUBLISHED = "hr@10,ndcg@10", "recall@20,ndcg@20"
# What is measured of each model.
MODELS = {
    "user-factorization": (LISTS, RATINGS, LATER),
    "choices-only": (LISTS, LATER),
    "recent-choices": (LATER,),
    "popularity": (LISTS, LATER),
    "recent-popularity": (LATER,),
    "implicit-objective": (LISTS,),
    "biases": (RATINGS,),
    "covariance-svd": (RATINGS,),
    "frank-wolfe": (RATINGS,),
    "als": (RATINGS,),
    "implicit-als": (LISTS,),
    "ease": (LISTS, LATER),
    "item-knn": (LISTS, LATER),
    "markov-chain": (LISTS, LATER),
}
# Models under another name: the name they have in the package, and settings.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "choices-only": ("user-factorization", {"feedback": "implicit"}),
    "recent-choices": ("user-factorization", {"feedback": "implicit", "half_life": HALF_LIFE}),
    "recent-popularity": ("popularity", {"half_life": HALF_LIFE}),
}
GROUPS = {"lists": LISTS, "ratings": RATINGS, "later": LATER}
BARS = ("als", "implicit-als", "ease", "item-knn", "markov-chain")
# Wide enough that the best point lies inside.
SEARCHES: dict[str, list[dict[str, Any]]] = {
    "als": [{"factors": factors, "seed": seed} for factors in (0, 2, 4, 8, 16, 32, 64) for seed in (0, 1)],
    "implicit-als": [
        {"factors": factors, "alpha": alpha, "regularization": ridge}
        for factors in (32, 128)
        for alpha in (1.0, 16.0)
        for ridge in (8.0, 64.0, 512.0)
    ],
    "ease": [{"regularization": ridge} for ridge in (10.0, 50.0, 200.0, 1000.0, 5000.0)],
    "item-knn": [{"shrinkage": shrinkage} for shrinkage in (0.0, 10.0, 100.0, 1000.0)],
    "markov-chain": [{"smoothing": smoothing} for smoothing in (0.3, 3.0, 30.0, 300.0)],
}
TOY = {
    "datasets": ["movielens-100k"],
    "models": ["user-factorization", "als", "ease"],
    "epsilons": ["5"],
    "seeds": 1,
}


def make(model: str, epsilon: str, settings: dict[str, Any] | None = None):
    """Return the estimator; everything but epsilon and delta is its default."""
    from discreet import model_settings

    model, own = VARIANTS.get(model, (model, {}))
    given: dict[str, Any] = {"epsilon": float(epsilon), **own, **(settings or {})}
    if model not in BARS:
        given["delta"] = DELTA
    return model_settings.estimator(model, given)


def score(estimator, data, metrics: str, seed: int) -> dict[str, float]:
    """Return the metrics of one fit with simulated noise on one split; both follow from the seed."""
    from discreet.core.randomness import PrivacyRandom
    from discreet.data.splits import Split, leave_one_out, random_split
    from discreet.evaluation.scoring import measure

    if isinstance(data, Split):
        split, metrics = data, PUBLISHED
    else:
        split = random_split(data, 0.1, seed) if metrics == RATINGS else leave_one_out(data, seed)
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
    return measure(model, split.train, tested(split.test), metrics, seed=seed)


def score_later(model: str, epsilon: str, data, seed: int) -> dict[str, float]:
    """Return what one fit with simulated noise finds of everything that is chosen after one moment."""
    from discreet.core.randomness import PrivacyRandom
    from discreet.data.splits import time_split
    from discreet.evaluation.scoring import measure

    split = time_split(data, LATEST_SHARE)
    # The last day of the training part stands for the public date of a fit.
    day = datetime.fromtimestamp(float(split.train.times.max()), UTC).date().isoformat()
    settings = {"now": day} if "half_life" in VARIANTS.get(model, ("", {}))[1] else {}
    fitted = make(model, epsilon, settings).fit(split.train, random=PrivacyRandom.simulate(seed))
    found = measure(fitted, split.train, tested(split.test), LISTED, seed=seed)
    return {f"later:{metric}": value for metric, value in found.items()}


def load(name: str, *, toy: bool):
    """Return a data set, or the published split of Gowalla."""
    if toy or name not in FILES:
        return harness.ratings(name, toy=toy)
    import polars as pl

    import discreet
    from discreet.data.splits import Split

    folder = Path(os.environ["DISCREET_DATA"]) / name
    frame = pl.read_parquet(folder / FILES[name])
    if name != "gowalla":
        return discreet.from_frame(frame, name=name, implicit=True)
    both = pl.concat([frame, pl.read_parquet(folder / "test.parquet")])
    every = discreet.from_frame(both, name=name, implicit=True)
    known = set(zip(frame["user"].to_list(), frame["item"].to_list(), strict=True))
    users, items = every.users.ids[every.rows()].tolist(), every.catalog.ids[every.items].tolist()
    train = np.fromiter((pair in known for pair in zip(users, items, strict=True)), dtype=bool)
    return Split.by_mask(every, ~train)


def tested(test):
    """Return the tested interactions, of a sample of people in the large files."""
    if test.name not in FILES:
        return test
    people = np.flatnonzero(np.diff(test.indptr))
    some = np.random.default_rng(0).permutation(people)[:TESTED]
    return test.where(np.isin(test.rows(), some))


def cells(options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Yield data set, model and epsilon of everything asked for."""
    for name in options.datasets:
        for model in options.models:
            for epsilon in ["inf"] if model in BARS else options.epsilons:
                yield name, model, epsilon


def asked(name: str, model: str, data, groups: list[str]) -> list[str]:
    """Return the metrics of a model that a data set allows, one text for each split."""
    from discreet.data.interactions import Interactions

    # Those of amazon-sports are places in a user's order, which no moment cuts.
    timed = isinstance(data, Interactions) and data.times is not None and name not in FILES
    wanted = [metrics for metrics in MODELS[model] if metrics in [GROUPS[group] for group in groups]]
    own = [metrics for metrics in wanted if metrics != LATER]
    # Files of interactions have no ratings, so that nothing can be learned from these.
    if name in FILES and RATINGS in MODELS[model]:
        return []
    kept = [LISTED] if own and name in FILES else own
    return kept + [LATER] * (LATER in wanted and timed)


def run(options: argparse.Namespace, results: Results) -> None:
    """Measure what is missing."""
    loaded: dict[str, Any] = {}
    for name, model, epsilon in cells(options):
        if not options.again and results.known(name, model, epsilon, options.groups):
            continue
        data = loaded.get(name) or load(name, toy=options.toy)
        loaded = {name: data}
        start, found = time.process_time(), {}
        for metrics in asked(name, model, data, options.groups):
            # Baselines draw nothing, so that one fit on one split is all there is.
            for seed in range(1 if metrics == LATER and model in BARS else options.seeds):
                if metrics == LATER:
                    values = score_later(model, epsilon, data, seed)
                else:
                    values = score(make(model, epsilon), data, metrics, seed)
                for metric, value in values.items():
                    found.setdefault(metric, []).append(value)
        if not found:
            continue
        results.keep(lambda all_, cell=(name, model, epsilon), runs=found: _put(all_, *cell, runs))
        people = TESTED if name in FILES else int(np.count_nonzero(np.diff(data.indptr) > 1))
        results.keep(lambda all_, name=name, people=people: all_["people"].update({name: people}))
        text = "  ".join(f"{metric} {np.mean(values):.4f}" for metric, values in found.items())
        say(f"{name}  {model}  {epsilon}  {text}  ({time.process_time() - start:.0f} s)")


def search(options: argparse.Namespace, results: Results) -> None:
    """Measure bars over a grid of settings, on the test part itself: the best a bar could look."""
    for name in options.datasets:
        data = None
        for bar in [model for model in options.models if model in BARS]:
            for settings in SEARCHES[bar][:1] if options.toy else SEARCHES[bar]:
                label = json.dumps(settings)
                if label in results.read()["search"].get(name, {}).get(bar, {}) and not options.again:
                    continue
                data = data or harness.ratings(name, toy=options.toy)
                found = score(make(bar, "inf", settings), data, MODELS[bar][0], 0)
                put = {"name": name, "bar": bar, "label": label, "found": found}
                results.keep(lambda all_, put=put: _put_search(all_, **put))
                say(name, bar, label, {k: round(v, 4) for k, v in found.items()})


def say(*words: object) -> None:
    """Tell how far it is, beside the answer."""
    print(*words, file=sys.stderr, flush=True)


class Results:
    """A file of everything measured so far, which several processes may share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Any]:
        """Return everything measured so far."""
        if self._path.exists():
            return json.loads(self._path.read_text(encoding="utf8"))
        parts = ("people", "means", "spreads", "runs", "search", "generated")
        return {"delta": DELTA, **{part: {} for part in parts}}

    def known(self, name: str, model: str, epsilon: str, groups: list[str]) -> bool:
        """Tell whether a cell was measured."""
        cell = self.read()["means"].get(name, {}).get(model, {}).get(epsilon, {})
        return any(metric.startswith("later:") == (groups == ["later"]) for metric in cell)

    def keep(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the results in one step, also if another process does so at the same time."""
        self._path.parent.mkdir(exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            all_ = self.read()
            change(all_)
            all_ |= how("accuracy.py", [])
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(all_, indent=1, sort_keys=True) + "\n", encoding="utf8")
            new.replace(self._path)


def _put(all_: dict[str, Any], name: str, model: str, epsilon: str, runs: dict[str, list[float]]) -> None:
    spread = {metric: float(np.std(v, ddof=1)) if len(v) > 1 else 0.0 for metric, v in runs.items()}
    mean = {metric: float(np.mean(values)) for metric, values in runs.items()}
    for key, numbers in (("means", mean), ("spreads", spread), ("runs", runs)):
        rounded = {m: np.round(values, 6).tolist() for m, values in numbers.items()}
        all_[key].setdefault(name, {}).setdefault(model, {}).setdefault(epsilon, {}).update(rounded)


def _put_search(all_: dict[str, Any], name: str, bar: str, label: str, found: dict[str, float]) -> None:
    rounded = {metric: round(value, 6) for metric, value in found.items()}
    all_["search"].setdefault(name, {}).setdefault(bar, {})[label] = rounded


def generated(n_users: int, options: argparse.Namespace, results: Results) -> None:
    """Measure on ratings of known origin: no model can be better than who knows the items' true vectors."""
    from accuracy_generated import known_world

    world = known_world(n_users)
    for model in options.models:
        if RATINGS not in MODELS[model]:
            continue
        for epsilon in ["inf"] if model in BARS else ["1", "5"]:
            found = score(make(model, epsilon), world.data, RATINGS, 0)["rmse"]
            best = world.best_error(0)
            entry = {"rmse": round(found, 5), "best": round(best, 5), "over": round(found / best - 1, 5)}
            results.keep(
                lambda all_, where=(model, epsilon), entry=entry: (
                    all_["generated"]
                    .setdefault(f"{n_users} x {world.data.n_items}", {})
                    .setdefault(where[0], {})
                    .update({where[1]: entry})
                )
            )
            say(f"generated {n_users:,}", model, epsilon, entry)


def _listed(text: str) -> list[str]:
    return text.split(",")


def _epsilons(text: str) -> list[str]:
    """Return epsilons as they are kept: .1 is 0.1."""
    return [f"{float(epsilon):g}" for epsilon in _listed(text)]


def main() -> None:
    options = harness.options(
        __doc__,
        toy=TOY,
        datasets=harness.option(type=_listed, default=list(DATASETS)),
        models=harness.option(type=_listed, default=list(MODELS)),
        epsilons=harness.option(type=_epsilons, default=list(EPSILONS)),
        seeds=3,
        groups=harness.option(type=_listed, default=list(GROUPS), help="lists, ratings, later"),
        again=harness.flag("also what was measured before"),
        search=harness.flag("search over the bars' settings"),
        generated=harness.option(type=int, help="measure on this many generated people"),
        check=harness.flag("measure nothing, say which cells fail"),
    )
    if not options.toy:
        measure(options, OUT)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder) / "accuracy.json")


def measure(options: argparse.Namespace, out: Path) -> None:
    """Measure what is asked for into a file, and say what the file holds."""
    results, part = Results(out), "means"
    if options.generated:
        generated(options.generated, options, results)
        part = "generated"
    elif options.search:
        search(options, results)
        part = "search"
    elif not options.check:
        run(options, results)
    from accuracy_checks import failures

    all_ = results.read()
    found = failures(all_) if options.check else all_[part]
    harness.tell(found, options)


if __name__ == "__main__":
    main()
