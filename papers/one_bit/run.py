"""Run the experiments of "One-bit matrix completion with differential privacy" again.

`measure` returns the values behind `claims.toml` and writes the five figures and their numbers to `results/`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from one_bit_rates import slopes
from one_bit_real import curves, folder, movielens, restaurants
from one_bit_synthetic import errors

LINKS = ("logistic", "probit")
PRIVATE = ("input", "objective", "gradient", "output")
Curves = Mapping[str, Sequence[Sequence[float]]]


def measure(*, quick: bool, say: Callable[[str], None]) -> dict[str, Sequence[float]]:
    """Return the values of every claim, by its id."""
    found: dict[str, Sequence[float]] = {}
    found |= _figure_1(2 if quick else 40, say)
    found |= _figure_2(2 if quick else 10, (1.0, 4.0) if quick else (1.0, 2.0, 4.0, 7.0, 10.0), say)
    found |= _figure_3(3 if quick else 10, say)
    found |= _figures_4_and_5(1 if quick else 10, (0.2, 0.8) if quick else (0.2, 0.4, 0.6, 0.8), say)
    say("rates of the theorems")
    for name, values in slopes(1 if quick else 5).items():
        found[f"rate-{name}"] = values
    return found


def _figure_1(draws: int, say: Callable[[str], None]) -> dict[str, Sequence[float]]:
    epsilons = (1.0, 2.0, 4.0, 7.0, 10.0) if draws > 5 else (1.0, 4.0, 10.0)
    found: dict[str, Sequence[float]] = {}
    for link in LINKS:
        say(f"figure 1, {link}: {draws} draws")
        lines = errors(link, epsilons, range(draws))
        _write(f"figure-1-{link}", epsilons, lines, "epsilon", "average relative error")
        for method in PRIVATE:
            found[f"fig1-{link}-{method}-falls"] = [
                first - last for first, last in zip(lines[method][0], lines[method][-1], strict=True)
            ]
        found[f"fig1-{link}-output-at-4"] = _ratio(lines["output"][epsilons.index(4.0)], lines["clear"][0])
        for method in ("input", "objective", "gradient"):
            found[f"fig1-{link}-{method}-at-10"] = _ratio(lines[method][-1], lines["clear"][-1])
    return found


def _figure_2(runs: int, epsilons: Sequence[float], say: Callable[[str], None]) -> dict[str, Sequence[float]]:
    split = movielens()
    if split is None:
        return {}
    say(f"figure 2: {runs} runs")
    lines = curves([split] * runs, epsilons)
    _write("figure-2", epsilons, lines, "epsilon", "accuracy on ML-100K, u1")
    found: dict[str, Sequence[float]] = {
        f"fig2-{method}-at-4": lines[method][epsilons.index(4.0)] for method in PRIVATE
    }
    found["fig2-clear"] = lines["clear"][0][:1]
    return found


def _figure_3(runs: int, say: Callable[[str], None]) -> dict[str, Sequence[float]]:
    splits = [restaurants(seed) for seed in range(runs)]
    known = [split for split in splits if split is not None]
    if not known:
        return {}
    say(f"figure 3: {runs} runs")
    epsilons = (1.0, 4.0, 10.0)
    lines = curves(known, epsilons)
    _write("figure-3", epsilons, lines, "epsilon", "accuracy on restaurants")
    return {
        f"fig3-{method}-rises": [
            last - first for first, last in zip(lines[method][0], lines[method][-1], strict=True)
        ]
        for method in PRIVATE
    }


def _figures_4_and_5(
    draws: int, shares: Sequence[float], say: Callable[[str], None]
) -> dict[str, Sequence[float]]:
    found: dict[str, Sequence[float]] = {}
    for figure, link in ((5, "logistic"), (4, "probit")):
        say(f"figure {figure}: {draws} draws")
        by_share = [errors(link, (4.0,), range(draws), observed=share) for share in shares]
        lines = {method: [each[method][0] for each in by_share] for method in ("clear", *PRIVATE)}
        _write(f"figure-{figure}", shares, lines, "observed share at epsilon = 4", "average relative error")
        for method in PRIVATE:
            found[f"fig{figure}-{method}-falls"] = [
                first - last for first, last in zip(lines[method][0], lines[method][-1], strict=True)
            ]
    return found


def _ratio(values: Sequence[float], beside: Sequence[float]) -> list[float]:
    return [float(np.mean(values) / np.mean(beside))]


def _write(name: str, x: Sequence[float], lines: Curves, x_label: str, y_label: str) -> None:
    """Write a figure and its numbers: mean and sample standard deviation over the runs."""
    folder().mkdir(exist_ok=True)
    table: dict[str, Any] = {"x": list(x), "x_label": x_label, "y_label": y_label, "lines": {}}
    for method, values in lines.items():
        spread = [float(np.std(v, ddof=1)) if len(v) > 1 else 0.0 for v in values]
        table["lines"][method] = {
            "mean": [round(float(np.mean(v)), 5) for v in values],
            "std": [round(s, 5) for s in spread],
            "runs": len(values[0]),
        }
    (folder() / f"{name}.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf8")
    _plot(name, table)


def _plot(name: str, table: Mapping[str, Any]) -> None:
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
    figure.savefig(folder() / f"{name}.png", dpi=90)
    plt.close(figure)
