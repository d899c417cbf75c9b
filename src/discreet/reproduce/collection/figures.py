"""Draw the bound against the measured misfit, and the errors of recovery over epsilon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.reproduce import save_plot

BOUNDS = {
    "printed": "Theorem 3, 95 %",
    "worst sharp": "any truth, rated truly, 95 %",
    "sharp": "this truth, 95 %",
    "mean": "measured mean",
    "worst mean": "measured mean, worst truth",
}
NAMES = ("corrected", "plain", "debiased item means", "debiased mean")


def draw(kept: dict[str, Any], folder: Path) -> None:
    """Write two pictures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5))
    for axis, (kind, rows) in zip(axes, kept["bound"].items(), strict=True):
        epsilons = [row["epsilon"] for row in rows]
        for name, label in BOUNDS.items():
            axis.plot(epsilons, [row[name] for row in rows], marker="o", markersize=3, label=label)
        axis.set(title=kind, xlabel="epsilon a cell", ylabel="rho", yscale="log")
    axes[0].legend(fontsize=7)
    figure.tight_layout()
    save_plot(figure, folder / "rho.svg")
    panels = {f"low rank, {kind}": rows for kind, rows in kept["synthetic"].items()} | kept["real"]
    figure, axes = pyplot.subplots(1, len(panels), figsize=(4 * len(panels), 3.5))
    for axis, (title, rows) in zip(axes, panels.items(), strict=True):
        for place, label in enumerate(NAMES, start=1):
            axis.plot([row[0] for row in rows], [row[place] for row in rows], marker="o", label=label)
        axis.set(title=title, xlabel="epsilon a cell", ylabel="RMSE")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    save_plot(figure, folder / "recovery.svg")
    pyplot.close("all")
