"""Draw the tables' curves beside lists of popular items, and Theorem 5's bounds beside measured losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from . import tables


def draw(kept: dict[str, Any], values: dict[str, list[float]], folder: Path) -> None:
    """Write the two pictures."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2))
    for axis, (label, title, printed) in zip(
        axes,
        (("ml100k", "ML-100K", tables.HR_ML100K), ("amazon", "Amazon", tables.HR_AMAZON)),
        strict=True,
    ):
        _curves(axis, kept, values, label, printed)
        axis.set(
            title=f"{title}: the printed procedure, NOT PRIVATE", xlabel="printed epsilon", ylabel="HR@10"
        )
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(folder / "tables.png", dpi=80)
    _bounds(plt, kept, folder / "theorem5.png")


def _curves(
    axis: Any, kept: dict[str, Any], values: dict[str, list[float]], label: str, printed: dict[str, Any]
) -> None:
    for color, (name, line) in enumerate(printed.items()):
        axis.plot(tables.EPSILONS, line, "--", color=f"C{color}", linewidth=1)
        if f"{label} {name}" in kept:
            ours = np.mean(kept[f"{label} {name}"], axis=0)
            axis.plot(tables.EPSILONS, ours, "o-", color=f"C{color}", markersize=3, label=name)
    for name, style in (("opt-IS", "C4:"), ("users", "C5:"), ("dpmf", "C6:"), ("private popularity", "k-.")):
        if f"{label} {name}" in kept:
            axis.plot(tables.EPSILONS, np.mean(kept[f"{label} {name}"], axis=0), style, label=name)
    if f"{label}-popularity" in values:
        axis.axhline(np.mean(values[f"{label}-popularity"]), color="gray", label="popularity, no noise")


def _bounds(plt: Any, kept: dict[str, Any], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(6, 4.2))
    for color, name in enumerate(("str", "com", "sym", "opt")):
        if f"bound {name}" in kept:
            limits, measured = (np.mean(kept[f"{kind} {name}"], axis=0) for kind in ("bound", "excess"))
            axis.loglog((0.1, 0.3, 1.0), limits, "--", color=f"C{color}")
            axis.loglog((0.1, 0.3, 1.0), measured, "o-", color=f"C{color}", label=name)
    axis.set(xlabel="epsilon", ylabel="excess loss of an item", title="Theorem 5: bounds dashed")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=80)
