"""The experiments that the paper on two rating-collection mechanisms should have had.

It prints theorems and no numbers. Measured here: Theorems 1 and 2 by counting, Theorem 3's bound beside
sharper ones that can fail, the constant of statement (5), and how well ratings are recovered over epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.collect.device import collect_cells
from discreet.collect.hidden_items import cell_mechanism
from discreet.core.randomness import PrivacyRandom
from discreet.core.rows import Rows
from discreet.data.datasets import catalog
from discreet.data.splits import random_split
from discreet.reproduce import DrawnValues, Run
from discreet.solvers.low_rank.nuclear import recover

from .figures import draw
from .recovery import Errors, recovery_errors
from .theorems import theorem3
from .world import make_world

Values = dict[str, Sequence[float] | DrawnValues]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
KINDS = ("stars", "numbers")
#: Two sizes of a matrix with the same shape: a constant must not grow from one to the other.
SIZES = ((60, 50), (240, 200))
#: What is known of real data: epsilons, runs, and about how far ratings lie from what can be predicted.
REAL = {
    "restaurant-consumer": ((1.0, 2.0, 4.0, 6.0, 8.0), 5, 0.6),
    "movielens-100k": ((0.5, 2.0, 4.0, 6.0, 8.0), 2, 0.9),
}


def measure(run: Run) -> Values:
    """Return the values of every claim's runs; a full run that is kept also draws pictures."""
    values: Values = {}
    kept: dict[str, Any] = {"bound": {}, "constant": {}, "synthetic": {}, "real": {}}
    for kind in KINDS:
        _theorems(kind, run, values, kept)
        _statement_five(kind, run, values, kept)
        _synthetic(kind, run, values, kept)
    for name in run.pick(full=tuple(REAL), quick=("restaurant-consumer",), toy=("restaurant-consumer",)):
        if catalog.find(name) is not None:
            _real(name, run, values, kept)
    run.write("results.json", kept)
    if run.folder and run.size == "full":
        draw(kept, run.folder)
    return values


def _theorems(kind: str, run: Run, values: Values, kept: dict[str, Any]) -> None:
    """Count the largest loss of a report, and draw reports to see which bounds on rho hold how tightly."""
    draws = run.pick(full=200, quick=40, toy=4)
    rows = [run.step(f"theorem 3 {kind} {epsilon:g}", theorem3, kind, epsilon, draws) for epsilon in EPSILONS]
    kept["bound"][kind] = rows
    made = draws * len(rows)
    values[f"loss-{kind}"] = [row["worst loss"] / row["epsilon"] for row in rows]
    values[f"coverage-{kind}"] = DrawnValues([row["below printed"] for row in rows], made)
    values[f"looseness-{kind}"] = DrawnValues([row["printed"] / row["mean"] for row in rows], made)
    values[f"sharp-coverage-{kind}"] = DrawnValues([row["below sharp"] for row in rows], made)
    values[f"sharp-looseness-{kind}"] = DrawnValues([row["sharp"] / row["mean"] for row in rows], made)
    values[f"worst-coverage-{kind}"] = DrawnValues([row["worst below"] for row in rows], made)
    values[f"worst-looseness-{kind}"] = DrawnValues(
        [row["worst sharp"] / row["worst mean"] for row in rows], made
    )
    values[f"printed-over-worst-{kind}"] = [row["worst printed"] / row["worst sharp"] for row in rows]
    world = make_world(kind, seed=1, people=60, items=50)
    values[f"rank-{kind}"] = [float(np.linalg.matrix_rank(world.truth))]


def _statement_five(kind: str, run: Run, values: Values, kept: dict[str, Any]) -> None:
    """Find C0 in |Theta_hat - Theta| <= C0 rho / sqrt(p), and whether it grows with the matrix."""
    found = []
    for seed in range(run.pick(full=3, quick=1, toy=1)):
        for people, items in run.pick(full=SIZES, quick=SIZES, toy=((24, 20), (48, 40))):
            step = f"statement (5) {kind} {people} {seed}"
            found.append(run.step(step, _constants, kind, people, items, seed))
    kept["constant"][kind] = found
    values[f"constant-{kind}"] = [max(max(row) for row in found)]
    values[f"constant-growth-{kind}"] = [
        max(large) / max(small) for small, large in zip(found[::2], found[1::2], strict=True)
    ]


def _constants(kind: str, people: int, items: int, seed: int) -> list[float]:
    """Return |error| sqrt(p) / rho at epsilon 2, 4 and 8, with the rho that was measured."""
    world, found = make_world(kind, seed=seed, people=people, items=items), []
    for epsilon in (2.0, 4.0, 8.0):
        mechanism = cell_mechanism(epsilon, world.data.facts)
        reports = collect_cells(world.data, mechanism, PrivacyRandom.simulate(seed)).reports
        rho = float(np.linalg.norm(world.truth[reports.rows(), reports.items] - reports.values))
        answer = recover(Rows(reports.indptr, reports.items, reports.values.astype(np.float32)), items, rho)
        error = float(np.linalg.norm(answer.left @ answer.right.T - world.truth))
        found.append(error * (reports.n_ratings / world.truth.size) ** 0.5 / rho)
    return found


def _synthetic(kind: str, run: Run, values: Values, kept: dict[str, Any]) -> None:
    people, items = run.pick(full=(300, 200), quick=(300, 200), toy=(60, 40))
    rows = []
    for epsilon in run.pick(full=EPSILONS, quick=EPSILONS, toy=(4.0,)):
        errors = []
        for seed in range(run.pick(full=2, quick=1, toy=1)):
            step = f"recovery {kind} {epsilon:g} {seed}"
            errors.append(Errors(*run.step(step, _recovery, kind, people, items, epsilon, seed)))
        _compare(f"synthetic-{kind}", epsilon, errors, values)
        rows.append([epsilon, *np.mean(errors, axis=0).tolist()])
    kept["synthetic"][kind] = rows


def _recovery(kind: str, people: int, items: int, epsilon: float, seed: int) -> Errors:
    world = make_world(kind, seed=seed, people=people, items=items)
    return recovery_errors(world.data, world.everywhere(), epsilon, seed, world.intrinsic)


def _real(name: str, run: Run, values: Values, kept: dict[str, Any]) -> None:
    epsilons, runs, intrinsic = REAL[name]
    rows = []
    for epsilon in run.pick(full=epsilons, quick=epsilons, toy=(4.0,)):
        errors = []
        for seed in range(run.pick(full=runs, quick=1, toy=1)):
            step = f"{name} {epsilon:g} {seed}"
            errors.append(Errors(*run.step(step, _held_out, name, epsilon, seed, intrinsic)))
        _compare(name, epsilon, errors, values)
        rows.append([epsilon, *np.mean(errors, axis=0).tolist(), *np.std(errors, axis=0).tolist()])
    kept["real"][name] = sorted(rows)


def _held_out(name: str, epsilon: float, seed: int, intrinsic: float) -> Errors:
    split = random_split(catalog.load(name), 0.1, seed)
    test = split.test.rows(), split.test.items, split.test.values
    return recovery_errors(split.train, test, epsilon, seed, intrinsic)


def _compare(name: str, epsilon: float, errors: Sequence[Errors], values: Values) -> None:
    """Keep by how much the corrected recovery is below the others: negative is better."""
    for what in ("plain", "items", "mean"):
        key = f"{name}-{epsilon:g}-below-{what}"
        values[key] = [one.corrected - getattr(one, what) for one in errors]
    values[f"{name}-{epsilon:g}-corrected"] = [one.corrected for one in errors]
