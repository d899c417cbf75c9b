"""Draw the figures and keep the numbers behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Lines = Mapping[str, Sequence[Sequence[float]]]


@dataclass(frozen=True)
class Figures:
    """Write figures to a folder, or nowhere."""

    folder: Path | None

    def keep(self, name: str, x: Sequence[float], lines: Lines, x_label: str, y_label: str) -> None:
        """Write a figure and its numbers: mean and sample standard deviation over the runs."""
        if self.folder is None:
            return
        self.folder.mkdir(exist_ok=True)
        table = {
            "x": list(x),
            "x_label": x_label,
            "y_label": y_label,
            "lines": {method: _summary(values) for method, values in lines.items()},
        }
        (self.folder / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf8")
        _plot(self.folder / f"{name}.png", table)


def _summary(values: Sequence[Sequence[float]]) -> dict[str, Any]:
    return {
        "mean": [round(float(np.mean(v)), 5) for v in values],
        "std": [round(float(np.std(v, ddof=1)), 5) if len(v) > 1 else 0.0 for v in values],
        "runs": len(values[0]),
    }


def _plot(path: Path, table: Mapping[str, Any]) -> None:
    try:
        import matplotlib
    except ModuleNotFoundError:
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.4))
    for method, line in table["lines"].items():
        axes.errorbar(table["x"], line["mean"], yerr=line["std"], label=method, marker="o", markersize=3)
    axes.set_xlabel(table["x_label"])
    axes.set_ylabel(table["y_label"])
    if "relative error" in table["y_label"]:
        axes.set_yscale("log")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)
