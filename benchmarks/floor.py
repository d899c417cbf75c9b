"""Compare lists with those of private popularity at the same budget: no cell should be below 0.98 of it.

    python benchmarks/floor.py                             what is not measured yet, smallest data first
    python benchmarks/floor.py --data 200x100,movielens-100k --epsilons 0.1,1 --splits later
    python benchmarks/floor.py --part validation --again   choose on a part of the training data
    python benchmarks/floor.py --check                     only list the cells that are below

A cell is a dataset, a split, a purpose (`lists` or `both`) and an epsilon. Its number is the mean HR@10 over
seeds, divided by that of `popularity`, with the standard error of that ratio over seeds. `200x100` is
generated: 200 users and 100 items of Zipf popularity in 20 groups of preference, about 15 items per user.
Lists of large files are scored on 3,000 users. Noise is simulated; delta is 1e-5. Test cells are kept in
benchmarks/results/floor.json, and `--part validation` keeps nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import accuracy
import field
import harness
import numpy as np
from keep import how

OUT = Path(__file__).with_name("results") / "floor.json"
LEAST = 0.98
EPSILONS = "0.1,0.2,0.5,1,2,5"
SPLITS = "leave-one-out,time:0.1,random:0.1"
FILES = (
    "restaurant-consumer,amazon-instant-video,movielens-100k,movielens-latest-small,discreet-demo,"
    "movietweetings-100k,movielens-1m,jester,amazon-sports,Beauty,Toys_and_Games,gowalla"
)
SHAPES = ",".join(
    f"{users}x{items}" for users in (200, 2_000, 20_000, 200_000) for items in (100, 3_000, 100_000)
)
TESTED, PER_USER, GROUPS = 3_000, 15, 20


def load(name: str, *, toy: bool) -> Any:
    """Return a dataset by its name, or a generated one by its shape."""
    if toy:
        return harness.ratings(name, toy=True)
    if name in field.PUBLISHED:
        return field.load(name, toy=False)
    users, _, items = name.partition("x")
    if users.isdigit() and items.isdigit():
        return generated(int(users), int(items))
    data = accuracy.load(name, toy=False)
    # The published split of Gowalla has no order: its training part is data like any other.
    return getattr(data, "train", data)


def generated(n_users: int, n_items: int) -> Any:
    """Return interactions in order; half of a user's come from the user's group, the others from all."""
    from discreet.data.interactions import Interactions

    random = np.random.default_rng(n_users + n_items)
    lengths = np.maximum(random.lognormal(math.log(PER_USER), 0.7, n_users).astype(int), 2)
    rows = np.repeat(np.arange(n_users), np.minimum(lengths, n_items // 2))
    popular = 1 / np.arange(1, n_items + 1) ** 0.9
    order = np.array([random.permutation(n_items) for _ in range(GROUPS)])
    place = np.searchsorted(np.cumsum(popular / popular.sum()), random.random(rows.size)).clip(0, n_items - 1)
    group = random.integers(GROUPS, size=n_users)[rows]
    own = order[group, place]
    items = np.where(random.random(rows.size) < 0.5, own, place)
    cells, first = np.unique(rows * n_items + items, return_index=True)
    # Seconds of one year, so that a moment can cut them.
    times = 1_700_000_000 + np.sort(random.integers(0, 31_536_000, rows.size))[random.permutation(rows.size)]
    return Interactions.from_arrays(
        cells // n_items,
        cells % n_items,
        np.ones(cells.size),
        times=times[first],
        low=1,
        high=1,
        n_items=n_items,
        n_users=n_users,
    )


def parts(data: Any, name: str, part: str) -> Iterator[Any]:
    """Yield the split of each seed; of a validation part, both are inside the training part."""
    from discreet.data.splits import parse_split

    plan = parse_split(name)
    seed = 0
    while True:
        split = next(iter(plan.splits(data, seed)))
        yield next(iter(plan.splits(split.train, seed))) if part == "validation" else split
        seed += 1


def fits(data: Any, split: str, *, rated: bool) -> bool:
    """Return whether a dataset has what a split, or a fit from ratings, reads."""
    timed = data.times is not None and data.times.max() > 10**8
    return (timed or not split.startswith("time")) and (not rated or data.facts.low < data.facts.high)


def hits(model: str, purpose: str, epsilon: float, split: Any, seed: int) -> float:
    """Return HR@10 of one fit on one split."""
    from discreet import Popularity, UserFactorization
    from discreet.core.randomness import PrivacyRandom
    from discreet.evaluation.scoring import measure

    cost = {"epsilon": epsilon, "delta": accuracy.DELTA}
    implicit = purpose == "lists"
    estimator: Any = (
        Popularity(**cost)
        if model == "popularity"
        else UserFactorization(**cost, feedback="implicit" if implicit else "explicit")
    )
    fitted = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
    tested = split.test
    people = np.flatnonzero(np.diff(tested.indptr))
    if people.size > 3 * TESTED:
        some = np.random.default_rng(seed).permutation(people)[:TESTED]
        tested = tested.where(np.isin(tested.rows(), some))
    return measure(fitted, split.train, tested, "hr@10")["hr@10"]


def cells(data: Any, options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Yield the splits, purposes and epsilons that a dataset allows."""
    for split in options.splits.split(","):
        for purpose in options.purposes.split(","):
            if fits(data, split, rated=purpose == "both"):
                yield from ((split, purpose, epsilon) for epsilon in options.epsilons.split(","))


def run(options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Measure what is missing, and return everything measured."""
    kept: dict[str, Any] = {"delta": accuracy.DELTA, "runs": {}}
    if options.part == "test" and out.exists():
        kept = json.loads(out.read_text(encoding="utf8"))
    for name in [] if options.check else options.data.split(","):
        data = load(name, toy=options.toy)
        for split, purpose, epsilon in cells(data, options):
            found = (
                kept["runs"].setdefault(name, {}).setdefault(split, {}).setdefault(f"{float(epsilon):g}", {})
            )
            splits = parts(data, split, options.part)
            missing = [
                model
                for model in ("popularity", purpose)
                if options.again or len(found.get(model, [])) < options.seeds
            ]
            for model in missing:
                found[model] = []
            for seed in range(options.seeds if missing else 0):
                this = next(splits)
                for model in missing:
                    found[model].append(round(hits(model, purpose, float(epsilon), this, seed), 5))
            accuracy.say(name, split, purpose, epsilon, *described(found, purpose))
            if options.part == "test" and missing:
                kept |= how("floor.py", [])
                out.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf8")
    return kept


def described(found: dict[str, list[float]], purpose: str) -> tuple[float, float, float]:
    """Return popularity's mean, the ratio of the means, and the standard error of that ratio over seeds."""
    ours, theirs = np.array(found[purpose]), np.array(found["popularity"])
    ratio = float(ours.mean() / max(theirs.mean(), 1e-9))
    off = ours - ratio * theirs
    error = float(off.std(ddof=1) / math.sqrt(off.size)) if off.size > 1 else 0.0
    return round(float(theirs.mean()), 4), round(ratio, 3), round(error / max(theirs.mean(), 1e-9), 3)


def below(kept: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells that are below the least ratio, and how far in standard errors."""
    found = []
    for name, splits in kept["runs"].items():
        for split, levels in splits.items():
            for epsilon, models in levels.items():
                for purpose in [model for model in models if model != "popularity"]:
                    base, ratio, error = described(models, purpose)
                    if ratio < LEAST:
                        cell = {"data": name, "split": split, "purpose": purpose, "epsilon": epsilon}
                        found.append(cell | {"popularity": base, "ratio": ratio, "error": error})
    return found


def main() -> None:
    toy = {"data": "toy", "epsilons": "1", "splits": "leave-one-out", "seeds": 1}
    options = harness.options(
        __doc__,
        toy=toy,
        data=f"{SHAPES},{FILES}",
        epsilons=EPSILONS,
        splits=SPLITS,
        purposes="lists,both",
        seeds=10,
        part=harness.option(choices=("validation", "test"), default="test"),
        again=harness.flag("also what was measured before"),
        check=harness.flag("measure nothing, list the cells below"),
    )
    with tempfile.TemporaryDirectory() as folder:
        kept = run(options, Path(folder) / "floor.json" if options.toy else OUT)
    count = sum(len(m) - 1 for s in kept["runs"].values() for e in s.values() for m in e.values())
    harness.tell({"cells": count, "below": below(kept), "runs": kept["runs"]}, options)


if __name__ == "__main__":
    main()
