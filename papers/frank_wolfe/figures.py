"""Plot errors over epsilon, one line a method; what is not private at its epsilon is dotted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np


def plot(
    name: str, epsilons: Sequence[float], lines: Mapping[str, Sequence[Sequence[float]]], folder: Path
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for method, runs in lines.items():
        table = np.array(runs)
        flat = method.startswith("user mean") or method.endswith("without privacy")
        style = ":" if "NOT PRIVATE" in method else "--" if flat else "-"
        marker = None if flat else "o"
        axes.errorbar(
            epsilons, table.mean(axis=0), table.std(axis=0), label=method, linestyle=style, marker=marker
        )
    axes.set_xscale("log")
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.set(xlabel="epsilon (delta = 1e-6, a person's whole history)", ylabel="RMSE", title=name)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(folder / f"{name}.png", dpi=100)
    plt.close(figure)
