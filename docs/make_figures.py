"""Draw two pictures: errors of ratings by epsilon for docs/accuracy.md, and docs/how_many_users.md.

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
from making import ROOT, making

from discreet import Biases, Interactions, catalog
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.evaluation.protocol import evaluate
from discreet.evaluation.references import PREFIX
from discreet.planning.curves import curves

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


if __name__ == "__main__":
    with making(__doc__, draw="measure nothing, draw the committed numbers") as made:
        if made.options.draw:
            numbers = json.loads((HERE / "accuracy.json").read_text(encoding="utf8"))
        else:
            run = json.loads(RESULTS.read_text(encoding="utf8"))
            small = popularity_skewed(n_users=40, n_items=60, mean_per_user=15)
            data = small if made.toy else catalog.load(DATA)
            numbers = {**measured(run), **own_mean(data, 1 if made.toy else REPEAT)}
        kept = json.dumps(numbers, indent=1) + "\n"
        made.place(HERE / "accuracy.json").write_text(kept, encoding="utf8")
        draw(numbers, made.place(HERE / "accuracy.png"))
        draw_how_many(made.place(HERE / "how-many-users.svg"))
