"""Draw the README's picture: accuracy against epsilon on MovieLens 1M. Needs that dataset; takes minutes.

`--draw` draws it again from the committed numbers. Only what this script measures is drawn.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import matplotlib
from making import making

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from discreet import Interactions, catalog, recipes
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.evaluation.protocol import evaluate

EPSILONS = (0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 20.0)
REPEAT = 3
HERE = Path(__file__).parent / "images"


def measure(
    data: Interactions, epsilons: tuple[float, ...], repeat: int
) -> dict[str, dict[str, list[float]]]:
    """Return mean and spread of the RMSE of each model at each epsilon."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in ("user-factorization", "biases"):
        for epsilon in epsilons:
            estimator = recipes.estimator(name, {"epsilon": epsilon, "delta": 1e-5})
            score = evaluate(estimator, data, repeat=repeat).metrics["rmse"]
            found.setdefault(name, {})[str(epsilon)] = [score.mean, score.std]
    bar = evaluate(recipes.estimator("als", {"epsilon": math.inf}), data, repeat=repeat, references=True)
    found["als"] = {"inf": [bar.metrics["rmse"].mean, bar.metrics["rmse"].std]}
    for name, scores in bar.references.items():
        if "user mean" in name:
            found["user mean"] = {"none": [scores["rmse"].mean, scores["rmse"].std]}
    return found


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Write the picture."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, style in (("user-factorization", "o-"), ("biases", "s--")):
        means, spreads = zip(*found[name].values(), strict=True)
        axes.errorbar([float(e) for e in found[name]], means, spreads, fmt=style, label=f"{name} (discreet)")
    axes.axhline(found["user mean"]["none"][0], color="black", lw=0.8, ls=":", label="each person's own mean")
    axes.axhline(found["als"]["inf"][0], color="black", lw=0.8, label="als, not private")
    axes.set_xscale("log")
    axes.set_xlabel("epsilon, for a person's whole history (smaller is more private)")
    axes.set_ylabel("RMSE (stars)")
    axes.set_title("MovieLens 1M, 10 % held out, delta 1e-5")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    with making(__doc__, draw="measure nothing, draw the committed numbers") as made:
        if made.options.draw:
            numbers = json.loads((HERE / "accuracy.json").read_text(encoding="utf8"))
        elif made.toy:
            toy = popularity_skewed(n_users=40, n_items=60, mean_per_user=15)
            numbers = measure(toy, EPSILONS[-1:], 1)
        else:
            numbers = measure(catalog.load("movielens-1m"), EPSILONS, REPEAT)
        kept = json.dumps(numbers, indent=1) + "\n"
        made.place(HERE / "accuracy.json").write_text(kept, encoding="utf8")
        draw(numbers, made.place(HERE / "accuracy.png"))
