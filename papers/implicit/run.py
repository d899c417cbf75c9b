"""Every table and figure of the paper again, each beside lists of popular items.

The printed procedure is NOT PRIVATE (see printed.py and NOTES.md). The last part measures this package's own
`implicit-objective`, which is private for whole histories, under the same protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from discreet.reproduce import Run

from . import experiments, tables
from .comparisons import compare
from .federation import LOCAL, PARTIES, ROUNDS, Plan
from .plots import draw
from .printed import VARIANTS, Method, Setting, Side
from .protocol import bench

ML100K = Setting(factors=8, regularization=0.015, epochs=10, alpha0=0.95, budget=(1 / 3, 1 / 3, 1 / 3))
AMAZON = Setting(factors=8, regularization=0.01, epochs=3, alpha0=0.95, budget=(1 / 3, 1 / 3, 1 / 3))
SIDES: tuple[Side, ...] = ("items", "users")
#: Rounds of a federation at epsilon 1 and 10. Only `opt` over shared items runs all 100: every query draws
#: its noise anew, so that what comes out no longer moves after two rounds; claims say so.
FEDERATED: dict[Side, dict[Method, tuple[int, int]]] = {
    "items": {"opt": (ROUNDS, ROUNDS), "opt-IS": (2, 2), "str": (1, 1), "com": (1, 1), "sym": (1, 1)},
    "users": {"opt": (20, 20), "opt-IS": (2, 2)},
}
FEW_ROUNDS = 2


class Place(NamedTuple):
    """Name a data set, what it is called in claims, its setting, and how many draws each part gets."""

    data: str
    label: str
    setting: Setting
    tables: int
    figures: int


class Results:
    """Collect what one data set gave: under each name a list over draws, every draw a step of the run."""

    def __init__(self, run: Run, label: str) -> None:
        self._run, self._label = run, label
        self.found: dict[str, list[Any]] = {}

    def add(self, name: str, seed: int, work: Callable[..., Any], *args: Any) -> None:
        """Do some work, or find it done."""
        step = self._run.step(f"{self._label} {name} {seed}", work, *args)
        self.found.setdefault(name, []).append(step)


def measure(run: Run) -> Mapping[str, Sequence[float]]:
    """Return the values of every claim's runs."""
    films = Place("movielens-100k", "ml100k", ML100K, 3, 2)
    shop = Place("amazon-instant-video", "amazon", AMAZON, 1, 1)
    small = (films._replace(tables=1, figures=1),)
    places = [place for place in run.pick(full=(films, shop), quick=small, toy=small) if bench(place.data, 0)]
    results = {place.label: Results(run, place.label) for place in places}
    for place in places:
        _tables(place, run, results[place.label])
    found: dict[str, Any] = {"figure 6": _figure6(run), "private": _private(run)}
    for place in places:
        _federations(place, run, results[place.label])
        found[place.label] = results[place.label].found
    run.write("numbers.json", found)
    if run.folder and run.size == "full":
        draw(found, run.folder)
    return compare(found)


def _tables(place: Place, run: Run, results: Results) -> None:
    """Run tables and theory on one data set, both sides, and the figures on some of the draws."""
    setting = place.setting
    few = run.pick(full=tables.EPSILONS, quick=tables.EPSILONS, toy=(1.0,))
    for seed in range(place.tables):
        room = bench(place.data, seed)
        for side in SIDES:
            results.add(
                f"tables {side}", seed, experiments.curves, room, setting, side, tables.EPSILONS, seed
            )
        results.add("beside", seed, experiments.beside, room, setting, few, seed)
        results.add("theory", seed, experiments.theory, room, setting, seed)
        if place.label == "amazon":
            results.add("ceiling", seed, experiments.ceiling, room, seed)
        if seed < place.figures:
            _figures(place, run, results, seed)


def _figures(place: Place, run: Run, results: Results, seed: int) -> None:
    """Run Figures 5, 7 and 8: epsilon 1 to 10, both sides, and what they are compared with."""
    room, setting = bench(place.data, seed), place.setting
    high = run.pick(full=tables.HIGH_EPSILONS, quick=(1.0, 3.0, 10.0), toy=(1.0, 3.0, 10.0))
    for side in SIDES:
        results.add(f"figures {side}", seed, experiments.curves, room, setting, side, high, seed)
    # The setting that the paper names for Figure 5 alone.
    printed = Setting(factors=8, regularization=setting.regularization, epochs=setting.epochs)
    results.add("figure 5", seed, experiments.curves, room, printed, "items", high, seed, VARIANTS)
    results.add("noise", seed, experiments.noise_on_matrix, room, printed, seed)
    near = run.pick(full=tables.FEW_EPSILONS, quick=(3.0,), toy=(3.0,))
    results.add("neighbors", seed, experiments.neighbors, room, near, seed)


def _federations(place: Place, run: Run, results: Results) -> None:
    """Run Algorithm 1 with ten parties, once for each side, method and epsilon."""
    room = bench(place.data, 0)
    local = run.pick(full=LOCAL, quick=LOCAL, toy=1)
    few = (run.pick(full=FEW_ROUNDS, quick=FEW_ROUNDS, toy=1),) * 2
    for side, by_method in FEDERATED.items():
        results.add(f"overlap {side}", 0, experiments.overlaps, room, side, PARTIES, 0)
        plans = {**by_method, f"opt after {FEW_ROUNDS}": few} if run.size == "full" else {"opt": few}
        for label, rounds in plans.items():
            for epsilon, times in zip((1.0, 10.0), rounds, strict=True):
                plan = Plan(
                    method="opt" if label.startswith("opt after") else label,
                    epsilon=epsilon,
                    setting=place.setting,
                    side=side,
                    rounds=times,
                    local=local,
                )
                results.add(f"federated {side} {epsilon:g} {label}", 0, experiments.federated, room, plan, 0)


def _figure6(run: Run) -> list[Any]:
    """Draw 20 and 100 of 2,000 people of ML-1M (the paper: of ML-10M), 20 factors as printed."""
    setting = Setting(factors=20, regularization=ML100K.regularization, epochs=5)
    room = bench("movielens-1m", 0)
    if room is None:
        return []
    return [run.step("figure 6 0", experiments.drawn_weights, room, setting, 2000, (20, 100), 0)]


def _private(run: Run) -> dict[str, list[Any]]:
    """Measure this package's own model on ML-1M."""
    found: dict[str, list[Any]] = {}
    for seed in range(run.pick(full=1, quick=0, toy=0)):
        room = bench("movielens-1m", seed)
        for epsilon in ("1", "2", "5", "10") if room is not None else ():
            step = run.step(f"ml1m private {epsilon} {seed}", experiments.private, room, epsilon, seed)
            found.setdefault(epsilon, []).append(step)
    return found
