"""Audit published claims, all of epsilon 1, and our own promise in the place of each.

`measure` returns the values behind `claims.toml`; a full run writes a picture and its numbers to `results/`.
"""

from __future__ import annotations

import math

from discreet.audit.games.bounds import least_share
from discreet.audit.games.stopping import Plan, play
from discreet.audit.neighboring import SyntheticSpec
from discreet.audit.white_box.structure import examine
from discreet.privacy.accounting.gaussian import gaussian_delta, gaussian_multiplier
from discreet.recipes import MODELS
from discreet.reproduce import save_plot
from discreet.reproduce.audit.attacks import (
    frank_wolfe_noise,
    labels_beyond_one,
    parallel_items,
    probit_verdicts,
    whole_matrix,
)

CLAIMED, ERROR = 1.0, 0.01
INSTEAD = {
    "whole-matrix": "one-bit-output",
    "parallel-items": "implicit-objective",
    "frank-wolfe-noise": "frank-wolfe",
    "probit": "one-bit-objective",
    "labels": "user-factorization",
}


def measure(run):
    """Return the values of every claim, by its id."""
    say, games = run.say, run.pick(full=200_000, quick=20_000, toy=500)
    found = {}
    for name, attack, delta, most in (
        ("whole-matrix", whole_matrix(), 0.0, min(games, 20_000)),
        ("parallel-items", parallel_items(), 0.0, min(games, 2_000)),
        ("frank-wolfe-noise", frank_wolfe_noise(), 1e-6, games),
        ("labels", labels_beyond_one(), 1e-5, games),
    ):
        say(f"{name}: {most:,} games")
        curve = _gaussian(delta) if delta else None
        plan = Plan(lessons=max(most // 4, 500), games=most, error=ERROR, enough=math.inf)
        outcome = play(attack, plan, epsilon=CLAIMED, delta=delta, distance=curve, seed=1)
        found[f"{name}-exact"] = [attack.paid(delta)]
        found[f"{name}-refuted"] = [max(outcome.refuted, outcome.curve or 0.0) if outcome.broken else 0.0]
    right, cells = probit_verdicts()
    say(f"probit: {right} of {cells} verdicts read")
    share = least_share(right, cells, ERROR)
    found["probit-read"] = [right / cells]
    found["probit-refuted"] = [math.log(share / (1 - share))]
    found["frank-wolfe-noise-delta"] = [gaussian_delta(math.sqrt(math.log(1e6)) / 4, CLAIMED)]
    for name, model in INSTEAD.items():
        inside = examine(MODELS[model](epsilon=CLAIMED), SyntheticSpec(people=8, items=6, per_person=3))
        found[f"{name}-ours"] = [inside.refuted]
    if run.folder:
        _draw(found, run.folder)
    return found


def _gaussian(delta):
    def distance(epsilon):
        return gaussian_delta(gaussian_multiplier(epsilon, delta), 0.0) if epsilon > 0 else 0.0

    return distance


def _draw(found, folder):
    """Draw what was refuted."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    titles = {
        "whole-matrix": "one-bit output,\nwhole matrix",
        "parallel-items": "implicit objective,\n737 items",
        "frank-wolfe-noise": "Frank-Wolfe\nexperiments",
        "probit": "probit\nobjective",
        "labels": "labels taken\nfor at most 1",
    }
    figure, axes = pyplot.subplots(figsize=(8, 3.6))
    for side, what, color in ((-0.2, "refuted", "#c44"), (0.2, "ours", "#48a")):
        heights = [found[f"{name}-{what}"][0] for name in titles]
        places = [place + side for place in range(len(titles))]
        axes.bar(
            places, heights, 0.4, color=color, label={"refuted": "as published", "ours": "ours instead"}[what]
        )
    axes.axhline(CLAIMED, color="black", linewidth=1, linestyle="--", label="the claim")
    axes.set_xticks(range(len(titles)), titles.values(), fontsize=8)
    axes.set_ylabel("epsilon refuted, at 99 %")
    axes.legend(frameon=False)
    figure.tight_layout()
    save_plot(figure, folder / "claims.svg")
    pyplot.close(figure)
