"""What each tuned setting of user-factorization is worth: HR@10 and RMSE at half and at double.

    nice python benchmarks/ablation.py --data movielens-100k --seeds 5        epsilon 1 and 5
    python benchmarks/ablation.py --data movielens-1m --constants strong,quality_ridge

Scored on a validation part: everybody's latest item is put aside and never used, and the one before it is
hidden. Noise is simulated; a constant is compared with the usual value seed by seed. A constant that a fit
does not read cannot change it, so nothing is run for it. Where a constant may not be doubled (shares of the
budget, weights of at most 1) the largest value that may be used is taken. Results go into
benchmarks/results/ablation.json after each constant, so that a run may be stopped and continued with the
constants that are left; docs/build.py constants makes a page of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import is_dataclass, replace
from operator import attrgetter
from typing import Any

import harness
import numpy as np

from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.splits import Split, leave_one_out
from discreet.evaluation import measure
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.models.user_factorization.settings import FactorizationSettings

RESULTS = harness.HERE / "results" / "ablation.json"
DELTA = 1e-5
METRICS = {"both": "hr@10,rmse", "ratings": "rmse", "lists": "hr@10"}
# Weights of a geometric decay.
AT_MOST_ONE = ("near", "apart", "back")
FACTORS = {"half": (0.5, 0.75), "double": (2.0, 1.5, 1.25)}
USUAL = FactorizationSettings()


class Recorded:
    """Settings that remember which of them are read."""

    def __init__(self, settings: object, seen: set[str], prefix: str = "") -> None:
        self.settings, self.seen, self.prefix = settings, seen, prefix

    def __getattr__(self, name: str) -> object:
        value = getattr(self.settings, name)
        if is_dataclass(value):
            return Recorded(value, self.seen, f"{name}.")
        self.seen.add(self.prefix + name)
        return value


def replaced(name: str, value: float) -> FactorizationSettings:
    """Return the settings with one value changed; a group's settings have its name in front."""
    group, _, own = name.rpartition(".")
    if group:
        return replace(USUAL, **{group: replace(getattr(USUAL, group), **{own: value})})
    return replace(USUAL, **{own: value})


def tried(name: str, factor: float) -> float:
    """Return a setting times a factor; whole numbers stay whole."""
    value = attrgetter(name)(USUAL)
    if isinstance(value, int):
        return max(round(value * factor), 1)
    return min(value * factor, 1.0) if name in AT_MOST_ONE else value * factor


def validation(data: Interactions) -> Split:
    """Hide everybody's second-latest item; the latest one is not there at all."""
    return leave_one_out(leave_one_out(data, 0).train, 0)


def scores(
    split: Split, epsilon: float, purpose: str, seeds: range, settings: Any = USUAL
) -> dict[str, list[float]]:
    """Return each metric, seed by seed."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        estimator = UserFactorization.with_settings(settings)(epsilon=epsilon, delta=DELTA, purpose=purpose)
        model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
        for metric, value in measure(model, split.train, split.test, METRICS[purpose]).items():
            found.setdefault(metric, []).append(float(value))
    return found


Cell = tuple[float, str]


def measured(
    split: Split, cells: list[Cell], seeds: range, settings: Any = USUAL
) -> dict[Cell, dict[str, list[float]]]:
    """Return every metric of every cell, seed by seed."""
    return {
        (epsilon, purpose): scores(split, epsilon, purpose, seeds, settings) for epsilon, purpose in cells
    }


def changed(name: str, side: str, split: Split, seeds: range, usual: dict[Cell, dict]) -> dict | None:
    """Return the differences from the usual value at half or double; None where no such value may be."""
    for factor in FACTORS[side]:
        value = tried(name, factor)
        try:
            found = measured(split, list(usual), seeds, replaced(name, value))
        except ParameterError:
            continue
        differences = {
            f"{purpose} {metric} at {epsilon:g}": np.subtract(values, usual[epsilon, purpose][metric])
            for (epsilon, purpose), metrics in found.items()
            for metric, values in metrics.items()
        }
        return {"value": value} | {
            cell: {"mean": float(one.mean()), "error": float(one.std(ddof=1) / np.sqrt(one.size))}
            for cell, one in differences.items()
        }
    return None


def ablate(name: str, options: argparse.Namespace) -> dict:
    """Return the usual scores of a data set, and what each constant changes where it is read."""
    split = validation(harness.ratings(name, toy=options.toy))
    seeds = range(options.seeds)
    usual, reads = {}, {}
    for epsilon in map(float, options.epsilons.split(",")):
        for purpose in options.purposes.split(","):
            reads[epsilon, purpose] = set()
            recorded = Recorded(USUAL, reads[epsilon, purpose])
            usual |= measured(split, [(epsilon, purpose)], seeds, recorded)
    found: dict = {
        "seeds": options.seeds,
        "delta": DELTA,
        "usual": {
            f"{purpose} {metric} at {epsilon:g}": {
                "mean": float(np.mean(values)),
                "spread": float(np.std(values, ddof=1)),
            }
            for (epsilon, purpose), metrics in usual.items()
            for metric, values in metrics.items()
        },
        "constants": {},
    }
    names = options.constants.split(",") if options.constants else list(USUAL.described())
    for number, one in enumerate(names, 1):
        cells = {cell: metrics for cell, metrics in usual.items() if one in reads[cell]}
        found["constants"][one] = (
            {side: changed(one, side, split, seeds, cells) for side in FACTORS} if cells else {}
        )
        if not options.toy:
            keep(name, found)
            print(f"{name}: {number} of {len(names)}, {one}", file=sys.stderr, flush=True)
    return found


def keep(name: str, found: dict) -> None:
    """Add what is measured so far to the committed results; those of other seeds or cells are replaced."""
    kept = json.loads(RESULTS.read_text(encoding="utf8")) if RESULTS.exists() else {}
    kept.setdefault("data", {})
    before = kept["data"].get(name, {})
    if {**before, "constants": 0} == {**found, "constants": 0}:
        found = {**found, "constants": {**before["constants"], **found["constants"]}}
    kept["data"][name] = found
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf8")


def main() -> None:
    toy = {
        "data": "toy",
        "epsilons": "5",
        "purposes": "both",
        "seeds": 2,
        "constants": "question_share,items.users_to_count,first_share",
    }
    options = harness.options(
        __doc__,
        toy=toy,
        data=harness.option(default="discreet-demo,movielens-100k", help="names separated by commas"),
        epsilons="1,5",
        purposes="both,ratings,lists",
        seeds=5,
        constants=harness.option(default="", help="names separated by commas; all by default"),
    )
    results = {"data": {name: ablate(name, options) for name in options.data.split(",")}}
    harness.tell(results, options)


if __name__ == "__main__":
    main()
