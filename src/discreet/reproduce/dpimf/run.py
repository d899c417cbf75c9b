"""Every table and figure of the paper again, each beside lists of popular items.

The printed procedure is NOT PRIVATE (see printed.py and NOTES.md). The last part measures this package's own
`implicit-objective`, which is private for whole histories, under the same protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from discreet.papers.dpimf.printed import LOWERED, METHODS, VARIANTS, Method, Setting, Side
from discreet.reproduce import DrawnValues, Run
from discreet.reproduce.dpimf import experiments, tables
from discreet.reproduce.dpimf.comparisons import compare
from discreet.reproduce.dpimf.federation import LOCAL, PARTIES, ROUNDS, PrintedPlan
from discreet.reproduce.dpimf.plots import draw
from discreet.reproduce.dpimf.protocol import Bench, bench
from discreet.reproduce.running import NotReached

ML100K = Setting(factors=8, regularization=0.015, epochs=10, alpha0=0.95, budget=(1 / 3, 1 / 3, 1 / 3))
AMAZON = Setting(factors=8, regularization=0.01, epochs=3, alpha0=0.95, budget=(1 / 3, 1 / 3, 1 / 3))
#: What the paper prints: lambda 0.07 and 20 factors for ML-10M, 1.0 and 8 for Amazon; no number of epochs.
PRINTED_ML = Setting(factors=20, regularization=0.07, epochs=10)
PRINTED_YAHOO = Setting(factors=16, regularization=1.0, epochs=10)
PRINTED_AMAZON = Setting(factors=8, regularization=1.0, epochs=10)
SIDES: tuple[Side, ...] = ("items", "users")
FEDERATED: tuple[Method, ...] = ("opt", "opt-IS", *LOWERED)
FEW_ROUNDS, SOME_ROUNDS = 2, 10


class Place(NamedTuple):
    """Name a data set, what it is called in claims, the setting found for it and the one printed."""

    data: str
    label: str
    setting: Setting
    printed: Setting

    def bench(self, seed: int) -> Bench:
        """Return the protocol on this data set."""
        return _bench(self.data, seed)


class Parts(dict[str, list[Any]]):
    """Hold draws by the name of their experiment; one that was not reached stops what needs it."""

    def __missing__(self, name: str) -> list[Any]:
        raise NotReached(name)


class Results:
    """Collect what one data set gave: under each name a list over draws, every draw a step of the run."""

    def __init__(self, run: Run, label: str) -> None:
        self._run, self._label = run, label
        self.found = Parts()

    def gather(self, name: str, count: int, work: Callable[[int], Any]) -> None:
        """Make the draws of one experiment, or find them made; keep as many as were reached."""

        def draws() -> dict[str, Any]:
            return {
                name: self._run.draws(
                    count, lambda seed: self._run.step(f"{self._label} {name} {seed}", work, seed)
                )
            }

        self.found |= self._run.part(draws)


def measure(run: Run) -> Mapping[str, Sequence[float] | DrawnValues]:
    """Return the values of every claim's runs."""
    films = Place("movielens-100k", "ml100k", ML100K, PRINTED_ML)
    shop = Place("amazon-instant-video", "amazon", AMAZON, PRINTED_AMAZON)
    wanted = run.pick(full=(films, shop), quick=(films,), toy=(films,))
    # Copies of the other datasets: their curves are kept, and no claim is about them.
    wanted += tuple(
        Place(name, label, printed, printed)
        for name, label, printed in (("ml-10m", "ml10m", PRINTED_ML), ("yahoo", "yahoo", PRINTED_YAHOO))
        if name in run.data
    )
    places = [place for place in wanted if bench(place.data, 0)]
    found: dict[str, Any] = {}
    for place in places:
        results = Results(run, place.label)
        _tables(place, run, results)
        _figures(place, run, results)
        _federations(place, run, results)
        found[place.label] = results.found
        if place.label not in ("ml100k", "amazon"):
            run.write(f"curves_{place.label}.json", results.found)
    found |= {"figure 6": [], "private": {}}
    found |= run.part(lambda: {"figure 6": _figure6(run)}) | run.part(lambda: {"private": _private(run)})
    if run.folder and run.size == "full":
        draw(found, run.folder, run.part)
    return compare(found, run)


def _tables(place: Place, run: Run, results: Results) -> None:
    """Run tables and theory on one data set, both sides."""
    draws, setting = run.pick(full=10, quick=1, toy=1), place.setting
    few = run.pick(full=tables.EPSILONS, quick=tables.EPSILONS, toy=(1.0,))
    for side in SIDES:
        curves = _curves(place, setting, side, tables.EPSILONS)
        results.gather(f"tables {side}", draws, curves(METHODS))
        results.gather(f"tables lower noise {side}", draws, curves(tuple(LOWERED)))
        if run.size == "full":
            own = _curves(place, place.printed, side, tables.EPSILONS)
            results.gather(f"tables printed setting {side}", draws, own(METHODS))
    results.gather("beside", draws, lambda seed: experiments.beside(place.bench(seed), setting, few, seed))
    results.gather("theory", draws, lambda seed: experiments.theory(place.bench(seed), setting, seed))
    if place.label == "amazon":
        results.gather("ceiling", draws, lambda seed: experiments.ceiling(place.bench(seed), seed))


def _figures(place: Place, run: Run, results: Results) -> None:
    """Run Figures 5, 7 and 8 on the printed axis, both sides; the tables are their other axis."""
    draws, setting = run.pick(full=10, quick=1, toy=1), place.setting
    high = run.pick(full=tables.HIGH_EPSILONS, quick=(1.0, 3.0, 10.0), toy=(1.0, 3.0, 10.0))
    for side in SIDES:
        curves = _curves(place, setting, side, high)
        results.gather(f"figures {side}", draws, curves(METHODS))
        results.gather(f"figures lower noise {side}", draws, curves(tuple(LOWERED)))
    # The weights and the parts of the budget that the paper names for Figure 5 alone.
    printed = Setting(factors=8, regularization=setting.regularization, epochs=setting.epochs)
    results.gather("figure 5", draws, _curves(place, printed, "items", high)(VARIANTS))
    results.gather("figure 5 low", draws, _curves(place, printed, "items", tables.EPSILONS)(VARIANTS))
    results.gather("noise", draws, lambda seed: experiments.noise_on_matrix(place.bench(seed), printed, seed))
    near = run.pick(full=tables.FEW_EPSILONS, quick=(3.0,), toy=(3.0,))
    results.gather("neighbors", draws, lambda seed: experiments.neighbors(place.bench(seed), near, seed))


def _curves(
    place: Place, setting: Setting, side: Side, epsilons: Sequence[float]
) -> Callable[[Sequence[Method]], Callable[[int], Any]]:
    """Return what makes, for some methods, the function from a seed to their curves."""
    return lambda methods: (
        lambda seed: experiments.curves(place.bench(seed), setting, side, epsilons, seed, methods)
    )


def _federations(place: Place, run: Run, results: Results) -> None:
    """Run Algorithm 1 with ten parties: few rounds often, all 100 rounds a few times."""
    local = run.pick(full=LOCAL, quick=LOCAL, toy=1)
    rounds = run.pick(full=FEW_ROUNDS, quick=FEW_ROUNDS, toy=1)
    high = run.pick(full=tables.HIGH_EPSILONS, quick=(1.0, 10.0), toy=(1.0, 10.0))
    for side in SIDES:
        plan = PrintedPlan(
            method="opt", epsilon=1.0, setting=place.setting, side=side, rounds=rounds, local=local
        )
        results.gather(
            f"overlap {side}",
            1,
            lambda seed, s=side: experiments.overlaps(place.bench(seed), s, PARTIES, seed),
        )
        for what, shared in (("all shared", True), ("own catalogs", False)):
            results.gather(
                f"two rounds {what} {side}",
                run.pick(full=10, quick=1, toy=1),
                lambda seed, plan=plan, shared=shared: experiments.federated_curves(
                    place.bench(seed), replace(plan, everything=shared), FEDERATED, high, seed
                ),
            )
        if run.size == "full":
            _long_federations(place, results, replace(plan, rounds=ROUNDS))


def _long_federations(place: Place, results: Results, plan: PrintedPlan) -> None:
    """Run all rounds of opt and opt-IS, a cell a step, and ten rounds of the other variants."""
    cells: list[tuple[Method, float, int]] = [
        (method, epsilon, ROUNDS) for epsilon in tables.HIGH_EPSILONS for method in ("opt", "opt-IS")
    ]
    if plan.side == "items":
        cells += [(method, epsilon, SOME_ROUNDS) for epsilon in (1.0, 10.0) for method in VARIANTS[:3]]
    for method, epsilon, rounds in cells:
        own = replace(plan, method=method, epsilon=epsilon, rounds=rounds)
        results.gather(
            f"federated {rounds} rounds {plan.side} {epsilon:g} {method}",
            3,
            lambda seed, own=own: experiments.federated(place.bench(seed), own, seed),
        )


def _figure6(run: Run) -> list[Any]:
    """Draw 20 and 100 of 2,000 people of ML-1M (the paper: of ML-10M), 20 factors as printed."""
    setting = Setting(factors=20, regularization=ML100K.regularization, epochs=5)
    if bench("movielens-1m", 0) is None:
        return []

    def weights(seed: int) -> Any:
        return run.step(
            f"figure 6 {seed}",
            lambda: experiments.drawn_weights(_bench("movielens-1m", seed), setting, 2000, (20, 100), seed),
        )

    return run.draws(run.pick(full=10, quick=1, toy=1), weights)


def _private(run: Run) -> dict[str, list[Any]]:
    """Measure this package's own model on ML-1M."""
    if run.size != "full" or bench("movielens-1m", 0) is None:
        return {}
    return {
        epsilon: run.draws(
            3,
            lambda seed, e=epsilon: run.step(
                f"ml1m private {e} {seed}",
                lambda: experiments.private(_bench("movielens-1m", seed), e, seed),
            ),
        )
        for epsilon in ("1", "2", "5", "10")
    }


@lru_cache(maxsize=2)
def _bench(name: str, seed: int) -> Bench:
    found = bench(name, seed)
    assert found is not None
    return found
