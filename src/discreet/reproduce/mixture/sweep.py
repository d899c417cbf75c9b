"""Measure methods on folds and epsilons of a data set, one step each, so that a run can be stopped.

A run that is kept writes rmse_<data>.json: for each method and epsilon the error of every fold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from discreet.core.randomness import experiment_generator
from discreet.data.interactions import Interactions
from discreet.data.splits import Split, kfold
from discreet.reproduce import Run, copies
from discreet.reproduce.mixture.methods import METHODS, RANKS, TUNED, TUNING, tune, tuned_error
from discreet.reproduce.running import NotReached

SEED = 20
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0)
#: The last epsilon of Figure 3, and the methods that it shows.
FIGURE3_END, FIGURE3 = 1.6, ("local-mixture", "weighted PCA rank 1", "private-gradients")
ALS_RANKS = tuple(f"local-mixture rank {rank}" for rank in RANKS)
PCA_RANKS = tuple(f"weighted PCA rank {rank}" for rank in RANKS)
COMPARED = (*(name for name in METHODS if name not in (*ALS_RANKS, *PCA_RANKS, FIGURE3[1])), TUNED)
#: The paper says that its Jester has 2 million ratings of 73,421 people: this share of all cells.
THINNED, PRINTED_DENSITY = "jester-thinned", 2e6 / (73_421 * 100)

Errors = dict[str, dict[str, list[float]]]


class Reached(dict[str, Any]):
    """Hold errors by method or epsilon; one that was not reached stops what needs it."""

    def __missing__(self, name: str) -> Any:
        raise NotReached(name)


class SweepPart(NamedTuple):
    """Name methods, epsilons, and how many of the ten folds they are run on."""

    methods: Sequence[str]
    epsilons: Sequence[float]
    folds: int


#: What a full run measures on each data set: all ten folds, as the paper does.
FULL: dict[str, tuple[SweepPart, ...]] = {
    "movielens-100k": (
        SweepPart(COMPARED, EPSILONS, 10),
        SweepPart(("local-channel", TUNED), (math.inf,), 10),
        SweepPart(FIGURE3, (FIGURE3_END,), 10),
        SweepPart(ALS_RANKS, EPSILONS, 10),
        SweepPart(FIGURE3[1:2], EPSILONS, 10),
        SweepPart(PCA_RANKS, (0.1, 1.0, 3.0), 10),
    ),
    "restaurant-consumer": (SweepPart((*COMPARED, FIGURE3[1]), EPSILONS, 10),),
    "jester": (
        SweepPart(COMPARED, EPSILONS, 10),
        SweepPart(("local-channel", TUNED), (math.inf,), 10),
        SweepPart((FIGURE3[1], *ALS_RANKS, *PCA_RANKS), (0.1, 1.0, 3.0), 10),
    ),
    THINNED: (SweepPart((*FIGURE3, "local-sgd as described"), (0.1, 1.0), 10),),
}
QUICK = {"movielens-100k": (SweepPart((*COMPARED, FIGURE3[1]), (0.1, 1.0), 2),)}
TOY = {"movielens-100k": (SweepPart((*COMPARED, *ALS_RANKS, FIGURE3[1]), (1.0,), 1),)}


def sweep(name: str, parts: Sequence[SweepPart], run: Run) -> Errors:
    """Return {method: {epsilon: [error of each fold]}}; the first fold's training part is tuned on."""
    splits = list(islice(kfold(_load(name), 10, SEED), max(part.folds for part in parts)))
    found: Errors = Reached()
    for part in parts:
        for epsilon in part.epsilons:
            for method in part.methods:
                own = run.part(_folds, name, method, epsilon, splits[: part.folds], run)
                for key, values in own.items():
                    found.setdefault(method, Reached())[key] = values
    run.write(f"rmse_{name}.json", found)
    return found


def _folds(
    name: str, method: str, epsilon: float, splits: Sequence[Split], run: Run
) -> dict[str, list[float]]:
    """Return the error of every fold that was reached, by epsilon."""

    def error(number: int) -> float:
        step = f"{name} {method} {epsilon:g} fold {number}"
        return float(run.step(step, _error, name, method, epsilon, splits, number, run))

    return {f"{epsilon:g}": run.draws(len(splits), error)}


def _error(name: str, method: str, epsilon: float, splits: Sequence[Split], number: int, run: Run) -> float:
    split, seed = splits[number], 1000 * SEED + number
    if method != TUNED:
        return round(METHODS[method](split, epsilon, seed), 5)
    grid = run.pick(full=TUNING, quick=TUNING, toy=TUNING[:2])
    best = run.step(f"{name} tuning {epsilon:g}", tune, splits[0].train, epsilon, SEED, grid)
    return round(tuned_error(split, epsilon, seed, best), 5)


def _load(name: str) -> Interactions:
    """Return a data set; the thinned Jester is a random part of ours, as sparse as the paper says."""
    if name != THINNED:
        return copies.load(name)
    whole = copies.load("jester")
    share = PRINTED_DENSITY * whole.n_users * whole.n_items / whole.n_ratings
    return whole.where(experiment_generator(SEED, THINNED).random(whole.n_ratings) < share)
