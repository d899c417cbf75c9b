"""Draw the README's picture from benchmarks/results/accuracy.json: lists and ratings against epsilon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from figure_style import BLUE, GREEN, ORANGE, RED, epsilon_axis, use_style
from making import ROOT, Making

RESULTS = ROOT / "benchmarks" / "results" / "accuracy.json"
PICTURE = ROOT / "docs" / "images" / "overview.png"
DATA = "movielens-1m"
# The words, style and color of each model's line: the same in both panels and in docs/images/accuracy.png.
LINES = {
    "user-factorization": ("user-factorization", "o-", BLUE),
    "biases": ("biases", "s--", ORANGE),
    "choices-only": ("user-factorization --implicit", "D-", GREEN),
    "popularity": ("popularity", "^:", RED),
}
# Metric: title, the private models, and the best baseline without privacy.
PANELS = {
    "hr@10": (
        "Lists: hit rate at 10 (higher is better)",
        ("choices-only", "user-factorization", "popularity"),
        "markov-chain",
    ),
    "rmse": ("Ratings: RMSE in stars (lower is better)", ("user-factorization", "biases"), "als"),
}


def draw(results: dict[str, Any], path: Path) -> None:
    """Write the picture: one legend for both panels, and the name of each baseline on its line."""
    use_style()
    figure, both = plt.subplots(1, 2, figsize=(10, 4))
    named = {}
    for axes, (metric, (title, models, baseline)) in zip(both, PANELS.items(), strict=True):
        for model in models:
            label, style, color = LINES[model]
            means, spreads = results["means"][DATA][model], results["spreads"][DATA][model]
            epsilons = sorted((one for one in means if one != "inf"), key=float)
            named[label] = axes.errorbar(
                [float(one) for one in epsilons],
                [means[one][metric] for one in epsilons],
                [spreads[one][metric] for one in epsilons],
                fmt=style,
                color=color,
            )
        level = results["means"][DATA][baseline]["inf"][metric]
        axes.axhline(level, color="black", lw=0.8)
        axes.text(
            0.02,
            level,
            f"{baseline}, not private",
            fontsize=8,
            va="bottom",
            transform=axes.get_yaxis_transform(),
        )
        axes.set(title=title)
        epsilon_axis(axes)
        axes.margins(y=0.1)
    figure.suptitle(
        f"MovieLens 1M, {results['people'][DATA]:,} users, delta {results['delta']:g}, three seeds"
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.legend(named.values(), named.keys(), loc="lower center", ncols=len(named), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def build(made: Making) -> None:
    """Write the files of this module."""
    draw(json.loads(RESULTS.read_text(encoding="utf8")), made.place(PICTURE))
