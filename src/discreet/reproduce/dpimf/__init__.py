"""Experiments of "Differentially private implicit matrix factorization" (Ran, Ye, Huang and Hu).

    discreet papers reproduce dpimf [--quick] [--out FOLDER] [--data ml-10m=FOLDER] [--data yahoo=FOLDER]

The printed procedure is NOT PRIVATE (papers/dpimf/NOTES.md): it trains without noise, then solves one side
once with noise. Lists of popular items are measured with it, and so is `implicit-objective`, which is private
for whole histories. The axis of the paper's Figures 5, 7 and 8 is ten times too large: their numbers at
epsilon 1 to 10 are those of its tables at 0.1 to 1, which is the axis here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from discreet.papers.dpimf.printed_losses import VARIANTS
from discreet.papers.dpimf.theory import room_to_learn
from discreet.reproduce import copies
from discreet.reproduce.dpimf import experiments as runs
from discreet.reproduce.dpimf.experiments import Parts, Place, Work
from discreet.reproduce.dpimf.results import values_of
from discreet.reproduce.dpimf.theorems import figure6, theory
from discreet.reproduce.running import Found, Reached, Run


def measure(run: Run) -> Found:
    """Return the values of every claim, by its ID."""
    wanted = run.pick(full=(runs.FILMS, runs.SHOP), quick=(runs.FILMS,), toy=(runs.FILMS, runs.SHOP))
    # Copies of the other datasets: their curves are drawn, and no claim is about them.
    wanted += tuple(place for place in runs.COPIES if place.data in run.data)
    found = {place.label: _measured(place, run) for place in wanted if copies.available(place.data, run.say)}
    values: Found = {
        f"settings-nonzero-{data}": [room_to_learn(*printed)]
        for data, printed in runs.PRINTED_DENSITIES.items()
    }
    values |= values_of(found, run)
    return values | run.part(figure6, run) | run.part(runs.private_model, run)


def _measured(place: Place, run: Run) -> Parts:
    """Run all experiments on one dataset; keep as many draws of each as were reached."""
    found = Reached()

    def gather(name: str, work: Work, *, full: int = 10) -> None:
        step = f"{place.label} {name}"
        found.update(run.part(run.by, name, step, partial(_on_bench, place, work), full=full))

    setting = place.setting
    for side in runs.SIDES:
        gather(f"tables {side}", runs.curves_of(setting, side, runs.METHODS))
        gather(f"tables lower noise {side}", runs.curves_of(setting, side, tuple(runs.LOWERED)))
        gather(f"tables inverse {side}", runs.curves_of(setting, side, runs.INVERSE), full=3)
    for name, (alpha0, budget) in runs.BUDGETS.items():
        if name != "ours":
            own = replace(setting, alpha0=alpha0, budget=budget)
            gather(f"figure 5 {name}", runs.curves_of(own, "items", VARIANTS), full=3)
    if place.label == "ml100k" and run.size == "full":
        plain = replace(place.printed, regularization=place.printed.regularization / 943)
        gather("tables printed setting items", runs.curves_of(place.printed, "items", ("opt",)), full=3)
        gather("tables plain setting items", runs.curves_of(plain, "items", ("opt",)), full=3)
    noise_panel = replace(
        setting, alpha0=runs.BUDGETS["noise-panel"][0], budget=runs.BUDGETS["noise-panel"][1]
    )
    gather("noise", partial(runs.noise_on_matrix, noise_panel))
    near = run.pick(full=runs.FEW_EPSILONS, quick=(0.5,), toy=(0.5,))
    gather("neighbors low", partial(runs.neighbors, near), full=3)
    gather("ground truth", partial(runs.ground_truth, place.printed.factors, run), full=3)
    popular = run.pick(full=runs.EPSILONS, quick=(1.0,), toy=(1.0,))
    gather("beside", partial(runs.without_noise, setting, popular))
    gather("theory", partial(theory, setting))
    if place.label == "amazon":
        gather("ceiling", runs.best_without_privacy)
    if place.label == "ml100k":
        runs.federations(place, run, gather)
    return found


def _on_bench(place: Place, work: Work, *, seed: int) -> Any:
    return work(place.bench(seed), seed)
