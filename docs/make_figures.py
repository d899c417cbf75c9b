"""Draw errors of ratings by epsilon (docs/accuracy.md), how many users, attacks, and Beauty and Toys.

The first needs MovieLens 1M. Its models come from benchmarks/results/accuracy.json. Each user's mean isn't
there, so it is measured on as many splits. `--draw` measures nothing and draws the committed numbers again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from figure_style import epsilon_axis, use_style
from making import ROOT, Making

from discreet import Biases, Interactions, catalog
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.evaluation.protocol import evaluate
from discreet.evaluation.references import PREFIX
from discreet.planning.curves import curves
from discreet.report.odds import power

RESULTS = ROOT / "benchmarks" / "results" / "accuracy.json"
DATA = "movielens-1m"
REPEAT = 3
HERE = Path(__file__).parent / "images"

Numbers = dict[str, dict[str, list[float]]]


def measured(run: dict[str, Any]) -> Numbers:
    """Return mean and spread of the RMSE of each model at each epsilon, as the accuracy run has them."""
    means, spreads = run["means"][DATA], run["spreads"][DATA]
    found: Numbers = {}
    for name in ("user-factorization", "biases", "als"):
        for epsilon in sorted(means[name], key=float):
            if name == "als" or epsilon != "inf":
                pair = [means[name][epsilon]["rmse"], spreads[name][epsilon]["rmse"]]
                found.setdefault(name, {})[epsilon] = pair
    return found


def draw_attacks(path: Path) -> None:
    """Write the picture of attacks on published models, against the bound of ours."""
    run = json.loads((RESULTS.parent / "attacks.json").read_text(encoding="utf8"))["result"]
    use_style()
    figure, axes = plt.subplots(figsize=(7, 4))
    rates = run["alarms"]
    for row in run["rows"]:
        if row["attacked"] == "users":
            (line,) = axes.plot(rates, row["curve"], label=row["model"])
            if row["epsilon"] is not None:
                most = [power(row["epsilon"], run["delta"], rate) for rate in rates]
                axes.plot(rates, most, ls=":", color=line.get_color(), label="bound of the line above")
    axes.set(xscale="log", yscale="log", xlabel="false alarms", ylabel="detected users", ylim=(5e-4, 1.1))
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def own_mean(data: Interactions, repeat: int) -> Numbers:
    """Return the error of each user's own mean, which learns nothing."""
    beside = evaluate(Biases(epsilon=math.inf), data, repeat=repeat, references=True).references
    score = beside[f"{PREFIX}user mean"]["rmse"]
    return {"user mean": {"none": [score.mean, score.std]}}


def draw(found: Numbers, path: Path) -> None:
    """Write the picture."""
    use_style()
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, style in (("user-factorization", "o-"), ("biases", "s--")):
        means, spreads = zip(*found[name].values(), strict=True)
        axes.errorbar([float(e) for e in found[name]], means, spreads, fmt=style, label=f"{name} (discreet)")
    axes.axhline(found["user mean"]["none"][0], color="black", lw=0.8, ls=":", label="each user's own mean")
    axes.axhline(found["als"]["inf"][0], color="black", lw=0.8, label="als, not private")
    epsilon_axis(axes)
    axes.set_ylabel("RMSE (stars)")
    axes.set_title("MovieLens 1M, 10% held out, delta 1e-5")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_how_many(path: Path) -> None:
    """Write the picture of the gain that is left, by epsilon times users per item."""
    use_style()
    figure, axes = plt.subplots(figsize=(7, 4))
    marks = iter("osD^v")
    for curve in curves():
        if curve.metric == "hr@10":
            sizes = [epsilon * curve.people / curve.items for epsilon, _ in curve.points]
            kept = [100 * curve.share(value) for _, value in curve.points]
            axes.plot(sizes, kept, marker=next(marks), label=f"{curve.dataset} ({curve.people:,} users)")
    axes.axhline(0, color="black", lw=0.8, ls=":")
    axes.set_xscale("log")
    axes.set_ylim(-65, 100)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("epsilon times users per item")
    axes.set_ylabel("share of the possible gain (%)")
    axes.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def draw_field(found: dict[str, Any], path: Path) -> None:
    """Write the picture of Beauty and Toys: our lists by epsilon, and published models without privacy."""
    use_style()
    figure, panels = plt.subplots(1, len(found["data"]), figsize=(9, 3.8), squeeze=False)
    for axes, (name, models) in zip(panels[0], found["data"].items(), strict=True):
        for model, style in (("user-factorization", "o-"), ("popularity", "s--")):
            cells = {float(epsilon): cell["ndcg@10"] for epsilon, cell in models[model].items()}
            private = sorted(epsilon for epsilon in cells if math.isfinite(epsilon))
            axes.errorbar(
                private,
                [cells[epsilon]["mean"] for epsilon in private],
                [cells[epsilon]["deviation"] for epsilon in private],
                fmt=style,
                label=f"{model}, private",
            )
        if math.inf in cells:
            without = models["user-factorization"]["inf"]["ndcg@10"]["mean"]
            axes.axhline(without, color="black", lw=0.8, ls=":", label="user-factorization, no noise")
        for peer, side in (("SASRec", "bottom"), ("BERT4Rec", "bottom"), ("GRU4Rec", "top")):
            level = found["published"][name][peer][0]
            axes.axhline(level, color="gray", lw=0.8)
            # To the right of the panel, where no curve is.
            right = axes.get_yaxis_transform()
            axes.text(1.01, level, peer, va=side, fontsize=8, transform=right)
        epsilon_axis(axes, (1, 5, 10))
        axes.set(title=name.replace("_", " "), ylabel="NDCG@10")
    handles, names = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncol=len(names), fontsize=8)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path)
    plt.close(figure)


def build(made: Making) -> None:
    """Write the files of this module."""
    if made.options.draw:
        numbers = json.loads((HERE / "accuracy.json").read_text(encoding="utf8"))
    else:
        run = json.loads(RESULTS.read_text(encoding="utf8"))
        small = popularity_skewed(n_users=40, n_items=60, mean_per_user=15)
        data = small if made.toy else catalog.load(DATA)
        numbers = {**measured(run), **own_mean(data, 1 if made.toy else REPEAT)}
    kept = json.dumps(numbers, indent=1) + "\n"
    made.write(HERE / "accuracy.json", kept)
    draw(numbers, made.place(HERE / "accuracy.png"))
    draw_how_many(made.place(HERE / "how-many-users.svg"))
    draw_attacks(made.place(HERE / "attacks.png"))
    field = json.loads(RESULTS.with_name("field.json").read_text(encoding="utf8"))["result"]
    draw_field(field, made.place(HERE / "field.svg"))
