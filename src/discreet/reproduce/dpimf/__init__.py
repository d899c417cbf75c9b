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
from discreet.reproduce.dpimf.experiments import (
    BUDGETS,
    COPIES,
    EPSILONS,
    FEW_EPSILONS,
    FILMS,
    INVERSE,
    LOWERED,
    METHODS,
    PRINTED_DENSITIES,
    SHOP,
    SIDES,
    Parts,
    Place,
    Work,
    best_without_privacy,
    curves_of,
    federations,
    ground_truth,
    neighbors,
    noise_on_matrix,
    private_model,
    without_noise,
)
from discreet.reproduce.dpimf.results import values_of
from discreet.reproduce.dpimf.theorems import figure6, theory
from discreet.reproduce.running import Found, Reached, Run


def measure(run: Run) -> Found:
    """Return the values of every claim, by its ID."""
    wanted = run.pick(full=(FILMS, SHOP), quick=(FILMS,), toy=(FILMS, SHOP))
    # Copies of the other datasets: their curves are drawn, and no claim is about them.
    wanted += tuple(place for place in COPIES if place.data in run.data)
    found = {place.label: _measured(place, run) for place in wanted if copies.available(place.data, run.say)}
    values: Found = {
        f"settings-nonzero-{data}": [room_to_learn(*printed)] for data, printed in PRINTED_DENSITIES.items()
    }
    values |= values_of(found, run)
    return values | run.part(figure6, run) | run.part(private_model, run)


def _measured(place: Place, run: Run) -> Parts:
    """Run all experiments on one dataset; keep as many draws of each as were reached."""
    found = Reached()

    def gather(name: str, work: Work, *, full: int = 10) -> None:
        step = f"{place.label} {name}"
        found.update(run.part(run.by, name, step, partial(_on_bench, place, work), full=full))

    setting = place.setting
    for side in SIDES:
        gather(f"tables {side}", curves_of(setting, side, METHODS))
        gather(f"tables lower noise {side}", curves_of(setting, side, tuple(LOWERED)))
        gather(f"tables inverse {side}", curves_of(setting, side, INVERSE), full=3)
    for name, (alpha0, budget) in BUDGETS.items():
        if name != "ours":
            own = replace(setting, alpha0=alpha0, budget=budget)
            gather(f"figure 5 {name}", curves_of(own, "items", VARIANTS), full=3)
    if place.label == "ml100k" and run.size == "full":
        plain = replace(place.printed, regularization=place.printed.regularization / 943)
        gather("tables printed setting items", curves_of(place.printed, "items", ("opt",)), full=3)
        gather("tables plain setting items", curves_of(plain, "items", ("opt",)), full=3)
    noise_panel = replace(setting, alpha0=BUDGETS["noise-panel"][0], budget=BUDGETS["noise-panel"][1])
    gather("noise", partial(noise_on_matrix, noise_panel))
    near = run.pick(full=FEW_EPSILONS, quick=(0.5,), toy=(0.5,))
    gather("neighbors low", partial(neighbors, near), full=3)
    gather("ground truth", partial(ground_truth, place.printed.factors, run), full=3)
    popular = run.pick(full=EPSILONS, quick=(1.0,), toy=(1.0,))
    gather("beside", partial(without_noise, setting, popular))
    gather("theory", partial(theory, setting))
    if place.label == "amazon":
        gather("ceiling", best_without_privacy)
    if place.label == "ml100k":
        federations(place, run, gather)
    return found


def _on_bench(place: Place, work: Work, *, seed: int) -> Any:
    return work(place.bench(seed), seed)
