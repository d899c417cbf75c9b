"""Draw the README's picture from benchmarks/results/accuracy.json: lists and ratings against epsilon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
from making import ROOT, making

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = ROOT / "benchmarks" / "results" / "accuracy.json"
PICTURE = ROOT / "docs" / "images" / "overview.png"
DATA = "movielens-1m"
# Metric: title, the private models with the words and style of their lines, and the baseline.
PANELS: dict[str, tuple[str, dict[str, tuple[str, str]], str]] = {
    "hr@10": (
        "Lists: hit rate at 10 (higher is better)",
        {
            "choices-only": ("user-factorization --implicit", "o-"),
            "user-factorization": ("user-factorization", "s--"),
            "popularity": ("popularity", "^:"),
        },
        "ease",
    ),
    "rmse": (
        "Ratings: RMSE in stars (lower is better)",
        {"user-factorization": ("user-factorization", "s--"), "biases": ("biases", "^:")},
        "als",
    ),
}


def draw(results: dict[str, Any], path: Path) -> None:
    """Write the picture."""
    figure, both = plt.subplots(1, 2, figsize=(10, 3.8))
    for axes, (metric, (title, models, baseline)) in zip(both, PANELS.items(), strict=True):
        for model, (label, style) in models.items():
            means, spreads = results["means"][DATA][model], results["spreads"][DATA][model]
            epsilons = sorted((one for one in means if one != "inf"), key=float)
            axes.errorbar(
                [float(one) for one in epsilons],
                [means[one][metric] for one in epsilons],
                [spreads[one][metric] for one in epsilons],
                fmt=style,
                label=label,
            )
        level = results["means"][DATA][baseline]["inf"][metric]
        axes.axhline(level, color="black", lw=0.8, label=f"{baseline}, not private")
        axes.set(title=title, xscale="log", xlabel="epsilon for a user's whole history")
        axes.legend(fontsize=8)
    figure.suptitle(
        f"MovieLens 1M, {results['people'][DATA]:,} users, delta {results['delta']:g}, three seeds"
    )
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    with making(__doc__) as made:
        draw(json.loads(RESULTS.read_text(encoding="utf8")), made.place(PICTURE))
