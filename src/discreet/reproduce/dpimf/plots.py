"""Draw every table and figure again: ours beside what is printed, and lists of popular items beside both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.papers.dpimf.printed import LOWERED, METHODS, VARIANTS
from discreet.reproduce import save_plot
from discreet.reproduce.dpimf import tables
from discreet.reproduce.dpimf.comparisons import PRINTED
from discreet.reproduce.dpimf.experiments import LOSS_EPSILONS

TITLES = {"ml100k": "ML-100K", "amazon": "Amazon"}
TABLES = {"ml100k": ("III", "IV"), "amazon": ("VII", "VIII")}
#: What the text prints for Figure 7 at epsilon 10; the figures' own values are not printed.
AT_TEN = {"amazon": (0.6, 0.5)}
METRICS = ("HR@10", "NDCG@10")
COLORS = {name: f"C{place}" for place, name in enumerate((*METHODS, "DPLCF", "LDPICF"))}


def draw(found: Mapping[str, Any], folder: Path, part: Callable[..., Any]) -> None:
    """Write every picture whose experiments were reached."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    here = {label: found[label] for label in TITLES if found.get(label)}
    if not here:
        return
    for side in ("items", "users"):
        part(_save, plt, here, folder / f"tables_{side}.svg", lambda *at, s=side: _table(*at, s))
    for name, side in (("figure7", "items"), ("figure8", "users")):
        part(_save, plt, here, folder / f"{name}.svg", lambda *at, s=side: _overall(*at, s))
    part(_figure5, plt, here, folder / "figure5.svg")
    part(_figure6, plt, found["figure 6"], folder / "figure6.svg")
    part(lambda: _theorem5(plt, here["ml100k"]["theory"], folder / "theorem5.svg"))
    plt.close("all")


def _save(plt: Any, here: Mapping[str, Any], path: Path, panel: Any) -> None:
    """Draw HR and NDCG for each data set."""
    figure, axes = plt.subplots(len(here), 2, figsize=(11, 3.8 * len(here)), squeeze=False)
    for row, (label, parts) in zip(axes, here.items(), strict=True):
        for column, axis in enumerate(row):
            panel(axis, label, parts, column)
            axis.set(title=f"{TITLES[label]}: printed procedure, NOT PRIVATE", ylabel=METRICS[column])
            axis.set_xlabel("printed epsilon")
    for row in axes:
        row[1].legend(fontsize=5, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    save_plot(figure, path)


def _mean(draws: Sequence[Any], method: str, column: int) -> Any:
    return np.mean([np.asarray(draw[method])[:, column] for draw in draws], axis=0)


def _table(axis: Any, label: str, parts: Mapping[str, Any], column: int, side: str) -> None:
    for method in METHODS:
        if method in VARIANTS:
            axis.plot(
                tables.EPSILONS,
                PRINTED[label][column][method],
                "--",
                color=COLORS[method],
                linewidth=1,
                label=f"{method}, printed in Table {TABLES[label][column]}",
            )
        ours = _mean(parts[f"tables {side}"], method, column)
        axis.plot(tables.EPSILONS, ours, "o-", color=COLORS[method], markersize=3, label=method)
    axis.plot(
        tables.EPSILONS, _mean(parts["beside"], "private popularity", column), "k-.", label="private list"
    )
    axis.axhline(_mean(parts["beside"], "popularity", column)[0], color="gray", label="popular, no noise")


def _overall(axis: Any, label: str, parts: Mapping[str, Any], column: int, side: str) -> None:
    for method in METHODS:
        ours = _mean(parts[f"figures {side}"], method, column)
        axis.plot(tables.HIGH_EPSILONS, ours, "o-", color=COLORS[method], markersize=3, label=method)
    for name in ("DPLCF", "LDPICF"):
        near = _mean(parts["neighbors"], name, column)
        axis.plot(tables.FEW_EPSILONS, near, "s:", color=COLORS[name], markersize=3, label=name)
    for (name, _), color in zip(LOWERED.items(), ("gray", "black"), strict=True):
        lower = _mean(parts[f"figures lower noise {side}"], name, column)
        axis.plot(tables.HIGH_EPSILONS, lower, ":", color=color, label=f"{name}, NOT PRIVATE")
    few = _mean(parts[f"two rounds all shared {side}"], "opt", column)
    axis.plot(tables.HIGH_EPSILONS, few, "*", color=COLORS["opt"], markersize=6, label="opt, ten parties")
    if label in AT_TEN:
        words = f"printed (text): above {AT_TEN[label][column]:g} at 10"
        axis.plot([10], [AT_TEN[label][column]], "k*", markersize=10, label=words)
    axis.axhline(_mean(parts["beside"], "no noise", column)[0], color="black", linewidth=0.8, label="GT")


def _figure5(plt: Any, here: Mapping[str, Any], path: Path) -> None:
    """Draw the noise on the matrix, and HR of the four variants, in the setting printed for this figure."""
    figure, axes = plt.subplots(len(here), 2, figsize=(11, 3.8 * len(here)), squeeze=False)
    for (left, right), (label, parts) in zip(axes, here.items(), strict=True):
        widest = max(parts["noise"][0].values())
        places = np.linspace(-2 * widest, 2 * widest, 401)
        for variant in VARIANTS[:3]:
            scale = np.mean([draw[variant] for draw in parts["noise"]])
            left.plot(
                places, np.exp(-np.abs(places) / scale) / (2 * scale), color=COLORS[variant], label=variant
            )
        left.set(title=f"{TITLES[label]}: noise on the matrix, epsilon 0.1", xlabel="noise", ylabel="density")
        for variant in VARIANTS:
            line = _mean(parts["figure 5"], variant, 0)
            right.plot(tables.HIGH_EPSILONS, line, "o-", color=COLORS[variant], markersize=3, label=variant)
        if label == "amazon":
            right.plot([10], [0.64], "k*", markersize=10, label="opt, printed (text): .64 at 10")
            right.legend(fontsize=7)
        right.set(title=f"{TITLES[label]}: NOT PRIVATE", xlabel="printed epsilon", ylabel="HR@10")
    axes[0][0].legend()
    axes[0][1].legend(fontsize=7)
    figure.tight_layout()
    save_plot(figure, path)


def _figure6(plt: Any, draws: Sequence[Any], path: Path) -> None:
    """Draw what each way to sample costs in variance, over the least."""
    figure, axis = plt.subplots(figsize=(5, 3.6))
    for place, size in enumerate(("20", "100")):
        for shift, name in enumerate(("importance", "uniform")):
            height = np.mean([draw[size][name] for draw in draws])
            axis.bar(place + 0.3 * shift, height, 0.28, color=f"C{shift}", label=name if not place else None)
    axis.axhline(1, color="black", linewidth=0.8, label="least variance")
    axis.set(ylabel="variance over the least", title="Figure 6: 2,000 people of ML-1M, 20 factors")
    axis.set_xticks([0.15, 1.15], ["sample of 20", "sample of 100"])
    axis.legend()
    figure.tight_layout()
    save_plot(figure, path)


def _theorem5(plt: Any, draws: Sequence[Any], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(6, 4.2))
    for name in VARIANTS:
        limits, measured = (
            np.mean([draw[f"{kind} {name}"] for draw in draws], axis=0) for kind in ("bound", "excess")
        )
        axis.loglog(LOSS_EPSILONS, limits, "--", color=COLORS[name])
        axis.loglog(LOSS_EPSILONS, measured, "o-", color=COLORS[name], label=name)
    axis.set(xlabel="epsilon", ylabel="excess loss of an item", title="Theorem 5: bounds dashed")
    axis.legend()
    figure.tight_layout()
    save_plot(figure, path)
