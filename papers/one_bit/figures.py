"""Draw the figures and keep the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.reproduce import Run

from .methods import LABELS


def keep(
    run: Run, name: str, x: Sequence[float], lines: Mapping[str, np.ndarray], x_label: str, y_label: str
) -> None:
    """Write a figure and its numbers: mean and sample standard deviation over the draws."""
    shown = {LABELS.get(method, method): _summary(values) for method, values in lines.items()}
    run.write(f"{name}.json", {"x": list(x), "x_label": x_label, "y_label": y_label, "lines": shown})
    if run.folder is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.4))
    for method, line in shown.items():
        axes.errorbar(x, line["mean"], line["std"], label=method, marker="o", markersize=3, capsize=2)
    if "error" in y_label:
        axes.set_yscale("log")
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(run.folder / f"{name}.png", dpi=80)
    plt.close(figure)


def table(
    run: Run, name: str, x: Sequence[float], lines: Mapping[str, np.ndarray], x_label: str, y_label: str
) -> None:
    """Write numbers that the paper has no figure for."""
    shown = {method: _summary(values) for method, values in lines.items()}
    run.write(f"{name}.json", {"x": list(x), "x_label": x_label, "y_label": y_label, "lines": shown})


def _summary(values: np.ndarray) -> dict[str, Any]:
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    return {
        "mean": [round(float(value), 5) for value in values.mean(axis=0)],
        "std": [round(float(value), 5) for value in spread],
        "runs": len(values),
    }
