"""Plot errors over epsilon beside the printed numbers, and errors beside the printed rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.reproduce import save_plot
from discreet.reproduce.frank_wolfe.methods import CLEAR, MCSHERRY, MEAN


def plot(
    name: str,
    epsilons: Sequence[float],
    lines: Mapping[str, Sequence[Sequence[float]]],
    printed: Sequence[float] | None,
    folder: Path,
) -> None:
    """Draw one line a method; what is not private at its epsilon is dotted, what is printed is black."""
    figure, axes = _figure(1)
    axis = axes[0]
    colors = [*(f"C{place}" for place in range(10)), "k", "y", "m", "c", "g"]
    for (method, runs), color in zip(lines.items(), colors, strict=False):
        table = np.array(runs)
        flat = method in (MEAN, CLEAR)
        style = ":" if "NOT PRIVATE" in method else "--" if flat else "-"
        marker = None if flat else "o"
        axis.errorbar(
            epsilons,
            table.mean(axis=0),
            _error(table),
            label=method,
            linestyle=style,
            marker=marker,
            color=color,
        )
    if printed:
        values = " ".join(f"{value:g}" for value in printed)
        axis.plot(epsilons, printed, "kx:", label=f"printed, read off a figure ± .003: {values}")
    axis.set_xscale("log")
    axis.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axis.set(xlabel="epsilon (delta = 1e-6, a person's whole history)", ylabel="RMSE", title=name)
    # Noise for one rating at epsilon / 80 leaves the picture; everything else stays in it.
    highest = max(np.mean(runs, axis=0).max() for method, runs in lines.items() if method != MCSHERRY)
    axis.set_ylim(top=1.1 * highest)
    axis.legend(fontsize=6, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _save(figure, folder / f"{name}.svg")


def _error(table: np.ndarray) -> np.ndarray | None:
    """Return the standard error over the splits, if there are several."""
    return table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else None


def plot_rates(
    name: str, curves: Mapping[str, Sequence[Any]], exponents: Mapping[str, float], folder: Path
) -> None:
    """Draw errors over each quantity, and the printed slope through the first of them."""
    figure, axes = _figure(len(curves))
    for axis, (over, (x, runs)) in zip(axes, curves.items(), strict=True):
        mean = np.mean(runs, axis=0)
        axis.loglog(x, mean, "o-", label="measured")
        axis.loglog(
            x, mean[0] * (np.array(x) / x[0]) ** exponents[over], "k:", label=f"slope {exponents[over]:.2f}"
        )
        axis.set(xlabel=over, title=f"{name} over {over}")
        axis.legend(fontsize=7)
    _save(figure, folder / f"{name}.svg")


def _figure(panels: int) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (9.0, 4.2) if panels == 1 else (3.4 * panels, 3.2)
    figure, axes = plt.subplots(1, panels, figsize=size, squeeze=False)
    return figure, axes[0]


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    save_plot(figure, path)
    plt.close(figure)
