"""Experiments of "Differentially private implicit matrix factorization" (Ran, Ye, Huang, Xu and Hu).

    discreet papers reproduce dpimf [--quick] [--out FOLDER] [--data ml-10m=FOLDER] [--data yahoo=FOLDER]

The printed procedure is NOT PRIVATE (papers/dpimf/NOTES.md): it trains without noise, then solves one side
once with noise. Lists of popular items are measured with it, and so is `implicit-objective`, which is private
for whole histories. The axis of the paper's Figures 5, 7 and 8 is ten times too large: their numbers at
epsilon 1 to 10 are those of its tables at 0.1 to 1, which is the axis here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from discreet.papers.dpimf.printed_losses import LOWERED, METHODS, VARIANTS
from discreet.papers.dpimf.theory import room_to_learn
from discreet.reproduce import copies
from discreet.reproduce.dpimf.claims import (
    federated_claims,
    figure5_claims,
    figure78_claims,
    popularity_claims,
    table_claims,
    theory_claims,
)
from discreet.reproduce.dpimf.experiments import (
    best_without_privacy,
    curves_of,
    ground_truth,
    neighbors,
    noise_on_matrix,
    private_model,
    without_noise,
)
from discreet.reproduce.dpimf.federation import federations
from discreet.reproduce.dpimf.figures import federation_panel, figure5_panels, figure78_panels, theorem5_panel
from discreet.reproduce.dpimf.protocol import (
    BUDGETS,
    COPIES,
    EPSILONS,
    FEW_EPSILONS,
    FILMS,
    INVERSE,
    PRINTED_DENSITIES,
    SHOP,
    SIDES,
    Bench,
    Parts,
    Place,
    Values,
)
from discreet.reproduce.dpimf.sampling import figure6
from discreet.reproduce.dpimf.theory import theory
from discreet.reproduce.figures import draw
from discreet.reproduce.running import NotReached, Run


def measure(run: Run) -> Mapping[str, Sequence[float]]:
    """Return the values of every claim, by its ID."""
    wanted = run.pick(full=(FILMS, SHOP), quick=(FILMS,), toy=(FILMS, SHOP))
    # Copies of the other datasets: their curves are drawn, and no claim is about them.
    wanted += tuple(place for place in COPIES if place.data in run.data)
    found = {place.label: _measured(place, run) for place in wanted if copies.available(place.data, run.say)}
    values: Values = {
        f"settings-nonzero-{data}": [room_to_learn(*printed)] for data, printed in PRINTED_DENSITIES.items()
    }
    for label in ("ml100k", "amazon"):
        if parts := found.get(label):
            for claims in (table_claims, figure5_claims, figure78_claims, theory_claims, popularity_claims):
                values |= run.part(claims, label, parts)
    if films := found.get("ml100k"):
        values |= run.part(federated_claims, films)
        run.part(lambda: draw(run, "algorithm-1", [federation_panel(films)]))
        run.part(lambda: draw(run, "theorem5", [theorem5_panel(films["theory"])]))
    run.part(lambda: draw(run, "figure-5", figure5_panels(found)))
    for number, side in (("7", "items"), ("8", "users")):
        run.part(
            lambda number=number, side=side: draw(
                run, f"figure-{number}", figure78_panels(found, number, side)
            )
        )
    return values | run.part(figure6, run) | run.part(private_model, run)


def _measured(place: Place, run: Run) -> Parts:
    """Run all experiments on one dataset; keep as many draws of each as were reached."""
    found = _Reached()
    draws, few = run.pick(full=10, quick=1, toy=1), run.pick(full=3, quick=1, toy=1)

    def gather(name: str, count: int, work: Callable[[Bench, int], Any]) -> None:
        def made() -> dict[str, Any]:
            def step(seed: int) -> Any:
                return run.step(f"{place.label} {name} {seed}", lambda: work(place.bench(seed), seed))

            return {name: run.draws(count, step)}

        found.update(run.part(made))

    setting = place.setting
    for side in SIDES:
        gather(f"tables {side}", draws, curves_of(setting, side, METHODS))
        gather(f"tables lower noise {side}", draws, curves_of(setting, side, tuple(LOWERED)))
        gather(f"tables inverse {side}", few, curves_of(setting, side, INVERSE))
    for name, (alpha0, budget) in BUDGETS.items():
        if name != "ours":
            own = replace(setting, alpha0=alpha0, budget=budget)
            gather(f"figure 5 {name}", few, curves_of(own, "items", VARIANTS))
    if place.label == "ml100k" and run.size == "full":
        plain = replace(place.printed, regularization=place.printed.regularization / 943)
        gather("tables printed setting items", few, curves_of(place.printed, "items", ("opt",)))
        gather("tables plain setting items", few, curves_of(plain, "items", ("opt",)))
    noise_panel = replace(setting, alpha0=BUDGETS["noise-panel"][0], budget=BUDGETS["noise-panel"][1])
    gather("noise", draws, lambda bench, seed: noise_on_matrix(bench, noise_panel, seed))
    near = run.pick(full=FEW_EPSILONS, quick=(0.5,), toy=(0.5,))
    gather("neighbors low", few, lambda bench, seed: neighbors(bench, near, seed))
    gather("ground truth", few, lambda bench, seed: ground_truth(bench, place.printed.factors, run, seed))
    popular = run.pick(full=EPSILONS, quick=(1.0,), toy=(1.0,))
    gather("beside", draws, lambda bench, seed: without_noise(bench, setting, popular, seed))
    gather("theory", draws, lambda bench, seed: theory(bench, setting, seed))
    if place.label == "amazon":
        gather("ceiling", draws, best_without_privacy)
    if place.label == "ml100k":
        federations(place, run, gather)
    return found


class _Reached(dict[str, list[Any]]):
    """Draws by the name of their experiment. A lookup of one that was not reached stops its part."""

    def __missing__(self, name: str) -> list[Any]:
        raise NotReached(name)
