"""The experiments that the paper on two rating-collection mechanisms should have had.

It prints theorems and no numbers. Measured here: Theorems 1 and 2 by counting, Theorem 3's bound beside
sharper ones that can fail, the constant of statement (5), and how well ratings are recovered over epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.collect.device import collect_cells
from discreet.collect.hidden_items import cell_mechanism
from discreet.core.randomness import PrivacyRandom
from discreet.core.rows import Rows
from discreet.data.splits import random_split
from discreet.reproduce import DrawnValues, Run, copies
from discreet.reproduce.collection.figures import draw
from discreet.reproduce.collection.recovery import Errors, recovery_errors
from discreet.reproduce.collection.theorems import theorem3
from discreet.reproduce.collection.world import make_world
from discreet.solvers.low_rank.nuclear import recover

Values = dict[str, Sequence[float] | DrawnValues]

EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
KINDS = ("stars", "numbers")
#: Two sizes of a matrix with the same shape: a constant must not grow from one to the other.
SIZES = ((60, 50), (240, 200))
#: What is known of real data: epsilons, runs, and about how far ratings lie from what can be predicted.
REAL = {
    "restaurant-consumer": ((1.0, 2.0, 4.0, 6.0, 8.0), 10, 0.6),
    "movielens-100k": ((0.5, 2.0, 4.0, 6.0, 8.0), 10, 0.9),
}


def measure(run: Run) -> Values:
    """Return the values of every claim's runs; a full run that is kept also draws pictures."""
    values: Values = {}
    kept: dict[str, Any] = {"bound": {}, "constant": {}, "synthetic": {}, "real": {}}
    for kind in KINDS:
        for part in (_theorems, _statement_five, _synthetic):
            run.part(lambda part=part, kind=kind: part(kind, run, values, kept))
    for name in run.pick(full=tuple(REAL), quick=("restaurant-consumer",), toy=("restaurant-consumer",)):
        if copies.find(name) is not None:
            run.part(lambda name=name: _real(name, run, values, kept))
    run.write("results.json", kept)
    if run.folder and run.size == "full" and run.complete:
        draw(kept, run.folder)
    return values


def _theorems(kind: str, run: Run, values: Values, kept: dict[str, Any]) -> None:
    """Count the largest loss of a report, and draw reports to see which bounds on rho hold how tightly."""
    # A share of 0.95 that may differ by 0.02 is decided by some thousand draws.
    draws = run.pick(full=1600, quick=40, toy=4)
    rows = [
        run.step(f"theorem 3 {kind} {epsilon:g}, {draws} draws", theorem3, kind, epsilon, draws)
        for epsilon in EPSILONS
    ]
    kept["bound"][kind] = rows
    made = draws * len(rows)
    values[f"loss-{kind}"] = [row["worst loss"] / row["epsilon"] for row in rows]
    for name, key in (("coverage", "below printed"), ("sharp-coverage", "below sharp")):
        values[f"{name}-{kind}"] = _share([row[key] for row in rows], draws)
    values[f"worst-coverage-{kind}"] = _share([row["worst below"] for row in rows], draws)
    for name, top, below in (
        ("looseness", "printed", "mean"),
        ("sharp-looseness", "sharp", "mean"),
        ("worst-looseness", "worst sharp", "worst mean"),
    ):
        ratios = [row[top] / row[below] for row in rows]
        # The error of a mean of ratios whose divisors are means of draws.
        errors = [
            ratio * row[f"{below} spread"] / row[below] for ratio, row in zip(ratios, rows, strict=True)
        ]
        error = math.hypot(*errors) / math.sqrt(draws) / len(rows)
        values[f"{name}-{kind}"] = DrawnValues(ratios, made, error)
    values[f"printed-over-worst-{kind}"] = [row["worst printed"] / row["worst sharp"] for row in rows]
    world = make_world(kind, seed=1, people=60, items=50)
    values[f"rank-{kind}"] = [float(np.linalg.matrix_rank(world.truth))]


def _share(shares: Sequence[float], draws: int) -> DrawnValues:
    """Return shares of draws with the binomial error of their mean."""
    variance = sum(share * (1 - share) for share in shares) / draws
    return DrawnValues(shares, draws * len(shares), math.sqrt(variance) / len(shares))


def _statement_five(kind: str, run: Run, values: Values, kept: dict[str, Any]) -> None:
    """Find C0 in |Theta_hat - Theta| <= C0 rho / sqrt(p), and whether it grows with the matrix."""
    sizes = run.pick(full=SIZES, quick=SIZES, toy=((24, 20), (48, 40)))

    def both(seed: int) -> list[list[float]]:
        return [
            run.step(f"statement (5) {kind} {people} {seed}", _constants, kind, people, items, seed)
            for people, items in sizes
        ]

    found = [one for pair in run.draws(run.pick(full=10, quick=1, toy=1), both) for one in pair]
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
        errors = run.draws(
            run.pick(full=10, quick=1, toy=1),
            lambda seed, e=epsilon: Errors(
                *run.step(f"recovery {kind} {e:g} {seed}", _recovery, kind, people, items, e, seed)
            ),
        )
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
        errors = run.draws(
            run.pick(full=runs, quick=1, toy=1),
            lambda seed, e=epsilon: Errors(
                *run.step(f"{name} {e:g} {seed}", _held_out, name, e, seed, intrinsic)
            ),
        )
        _compare(name, epsilon, errors, values)
        rows.append([epsilon, *np.mean(errors, axis=0).tolist(), *np.std(errors, axis=0).tolist()])
    kept["real"][name] = sorted(rows)


def _held_out(name: str, epsilon: float, seed: int, intrinsic: float) -> Errors:
    split = random_split(copies.load(name), 0.1, seed)
    test = split.test.rows(), split.test.items, split.test.values
    return recovery_errors(split.train, test, epsilon, seed, intrinsic)


def _compare(name: str, epsilon: float, errors: Sequence[Errors], values: Values) -> None:
    """Keep by how much the corrected recovery is below the others: negative is better."""
    for what in ("plain", "items", "mean"):
        key = f"{name}-{epsilon:g}-below-{what}"
        values[key] = [one.corrected - getattr(one, what) for one in errors]
    values[f"{name}-{epsilon:g}-corrected"] = [one.corrected for one in errors]
