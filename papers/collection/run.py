"""The experiments that the paper on two rating-collection mechanisms should have had.

It prints theorems and no numbers. Measured here: how often Theorem 3's bound holds and how loose it is, the
constant of statement (5), and how well ratings are recovered, as printed and corrected, over epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.collect.catalog.choosing import cell_mechanism
from discreet.collect.catalog.device import collect_cells
from discreet.collect.catalog.rho import rho_bound, rho_expected
from discreet.data.datasets import catalog
from discreet.data.splits import random_split
from discreet.randomness import PrivacyRandom
from discreet.reproduce import Run
from discreet.solvers.low_rank.nuclear import recover
from discreet.solvers.rows import Rows

from .figures import draw
from .recovery import Errors, recovery_errors
from .world import World, make_world

Values = dict[str, list[float]]

GAMMA = 0.05
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
KINDS = ("stars", "numbers")
#: What is known of real data: epsilons, runs, and about how far ratings lie from what can be predicted.
REAL = {
    "restaurant-consumer": ((1.0, 2.0, 4.0, 6.0, 8.0), 5, 0.6),
    "movielens-100k": ((0.5, 2.0, 4.0, 6.0, 8.0), 2, 0.9),
}


def measure(run: Run) -> dict[str, Sequence[float]]:
    """Return the values of every claim's runs; a full run that is kept also draws pictures."""
    quick, say = run.size != "full", run.say
    values: Values = {}
    kept: dict[str, Any] = {"bound": {}, "constant": {}, "synthetic": {}, "real": {}}
    for name in REAL:
        if catalog.find(name) is not None and not (quick and name == "movielens-100k"):
            _real(name, quick, values, kept, run)
    for kind in KINDS:
        say(f"Theorem 3, {kind}")
        _theorem(kind, run.pick(full=200, quick=40, toy=4), values, kept)
        _statement_five(kind, 1 if quick else 3, values, kept)
        say(f"recovery of a low-rank matrix, {kind}")
        _synthetic(kind, 1 if quick else 2, values, kept)
    run.write("results.json", kept)
    if run.folder and not quick:
        draw(kept, run.folder)
    return values


def _misfits(world: World, epsilon: float, draws: int) -> np.ndarray:
    """Return |P(Theta - Z)| in the paper's units for many draws of the reports."""
    mechanism = cell_mechanism(epsilon, world.data.facts)
    found = []
    for seed in range(draws):
        reports = collect_cells(world.data, mechanism, PrivacyRandom.simulate(seed)).reports
        truth = world.truth[reports.rows(), reports.items]
        found.append(float(np.linalg.norm(truth - reports.values)) / world.unit)
    return np.array(found)


def _theorem(kind: str, draws: int, values: Values, kept: dict[str, Any]) -> None:
    world = make_world(kind, seed=1, people=60, items=50)
    rows = []
    for epsilon in EPSILONS:
        mechanism = cell_mechanism(epsilon, world.data.facts)
        size = {"people": 60, "items": 50, "rated": world.data.n_ratings, "intrinsic": world.intrinsic}
        bound, usual = rho_bound(mechanism, gamma=GAMMA, **size), rho_expected(mechanism, **size)
        misfits = _misfits(world, epsilon, draws)
        values.setdefault(f"coverage-{kind}", []).append(float(np.mean(misfits <= bound)))
        values.setdefault(f"looseness-{kind}", []).append(bound / float(misfits.mean()))
        rows.append([epsilon, bound, usual, float(misfits.mean()), float(misfits.max())])
    kept["bound"][kind] = rows


def _statement_five(kind: str, runs: int, values: Values, kept: dict[str, Any]) -> None:
    """Find the constant C0 in |Theta_hat - Theta| <= C0 rho / sqrt(p), with the rho that was measured."""
    found = []
    for seed in range(runs):
        world = make_world(kind, seed=seed, people=120, items=100)
        for epsilon in (2.0, 4.0, 8.0):
            mechanism = cell_mechanism(epsilon, world.data.facts)
            reports = collect_cells(world.data, mechanism, PrivacyRandom.simulate(seed)).reports
            scaled = (reports.values - world.origin) / world.unit
            truth = (world.truth - world.origin) / world.unit
            rho = float(np.linalg.norm(truth[reports.rows(), reports.items] - scaled))
            answer = recover(Rows(reports.indptr, reports.items, scaled.astype(np.float32)), 100, rho)
            share = reports.n_ratings / truth.size
            error = float(np.linalg.norm(answer.left @ answer.right.T - truth))
            found.append([epsilon, error * share**0.5 / rho])
    values[f"constant-{kind}"] = [max(row[1] for row in found)]
    kept["constant"][kind] = found


def _synthetic(kind: str, runs: int, values: Values, kept: dict[str, Any]) -> None:
    rows = []
    for epsilon in EPSILONS:
        errors = []
        for seed in range(runs):
            world = make_world(kind, seed=seed, people=300, items=200)
            errors.append(
                recovery_errors(world.data, world.everywhere(), epsilon, seed, world.intrinsic / world.unit)
            )
        _compare(f"synthetic-{kind}", epsilon, errors, values)
        rows.append([epsilon, *np.mean(errors, axis=0).tolist()])
    kept["synthetic"][kind] = rows


def _real(name: str, quick: bool, values: Values, kept: dict[str, Any], run: Run) -> None:
    epsilons, runs, intrinsic = REAL[name]
    rows = []
    for epsilon in epsilons:
        errors = []
        for seed in range(1 if quick else runs):
            split = random_split(catalog.load(name), 0.1, seed)
            test = split.test.rows(), split.test.items, split.test.values
            errors.append(recovery_errors(split.train, test, epsilon, seed, intrinsic))
            run.say(f"{name}, epsilon {epsilon:g}: {errors[-1]}")
        _compare(name, epsilon, errors, values)
        rows.append([epsilon, *np.mean(errors, axis=0).tolist(), *np.std(errors, axis=0).tolist()])
    kept["real"][name] = sorted(rows)


def _compare(name: str, epsilon: float, errors: Sequence[Errors], values: Values) -> None:
    """Keep by how much the corrected recovery is below the others: negative is better."""
    for what in ("plain", "items", "mean"):
        key = f"{name}-{epsilon:g}-below-{what}"
        values[key] = [one.corrected - getattr(one, what) for one in errors]
    values[f"{name}-{epsilon:g}-corrected"] = [one.corrected for one in errors]
