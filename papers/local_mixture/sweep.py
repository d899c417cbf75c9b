"""Measure every method on every fold and epsilon of a data set, and keep what was measured.

A run that is kept writes rmse_<data>.json: for each method and epsilon the error of every fold.
"""

from __future__ import annotations

import math
from itertools import islice

from discreet.data.datasets import catalog
from discreet.data.splits import kfold
from discreet.reproduce import Run

from .methods import EPSILONS, methods

SEED = 20
WITHOUT_PRIVACY = ("local-channel", "local-sgd tuned")


def sweep(name: str, say, *, run: Run, folds: int = 10, epsilons=EPSILONS) -> dict:
    """Return {method: {epsilon: [error of each fold]}}; the first fold's training part is tuned on."""
    data = catalog.load(name)
    splits = list(islice(kfold(data, 10, SEED), folds))
    chosen = methods(splits[0].train, SEED, epsilons, say)
    found: dict[str, dict[str, list[float]]] = {method: {} for method in chosen}
    for number, split in enumerate(splits):
        for epsilon in (*epsilons, math.inf):
            for method, score in chosen.items():
                if math.isinf(epsilon) and method not in WITHOUT_PRIVACY:
                    continue
                value = score(split, epsilon, 1000 * SEED + number)
                found[method].setdefault(f"{epsilon:g}", []).append(value)
                say(f"{name} fold {number + 1} epsilon {epsilon:g} {method}: {value:.4f}")
    run.write(f"rmse_{name}.json", rounded(found))
    return found


def rounded(found: dict) -> dict:
    return {
        method: {epsilon: [round(value, 5) for value in values] for epsilon, values in by_epsilon.items()}
        for method, by_epsilon in found.items()
    }
