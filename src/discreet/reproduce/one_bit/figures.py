"""Draw the figures and keep the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.reproduce import Run, save_plot
from discreet.reproduce.one_bit.methods import LABELS

#: What the text prints for a figure; the figures' own values are not printed.
PRINTED = {
    f"figure-2-{link}": (4.0, 0.68, "printed (text): all above 0.68 at 4") for link in ("logistic", "probit")
}


def keep(
    run: Run, name: str, x: Sequence[float], lines: Mapping[str, np.ndarray], x_label: str, y_label: str
) -> None:
    """Write a figure and its numbers: mean over the draws, with bars of one standard error."""
    shown = {LABELS.get(method, method): _summary(values) for method, values in lines.items()}
    run.write(f"{name}.json", {"x": list(x), "x_label": x_label, "y_label": y_label, "lines": shown})
    if run.folder is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.4))
    for method, line in shown.items():
        axes.errorbar(x, line["mean"], line["error"], label=method, marker="o", markersize=3, capsize=2)
    if name in PRINTED:
        at, height, words = PRINTED[name]
        axes.plot([at], [height], "k*", markersize=9, label=words)
    if "error" in y_label:
        axes.set_yscale("log")
    draws = min(line["runs"] for line in shown.values())
    axes.set(xlabel=x_label, ylabel=y_label, title=f"{draws} draws, ± one standard error")
    axes.legend(fontsize=7)
    figure.tight_layout()
    save_plot(figure, run.folder / f"{name}.svg")
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
        "error": [round(float(value), 5) for value in spread / np.sqrt(len(values))],
        "runs": len(values),
    }
