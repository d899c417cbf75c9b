"""Figures 5, 7 and 8 of DPIMF, Theorem 5 and Algorithm 1, with the printed points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from discreet.papers.dpimf.printed_losses import VARIANTS
from discreet.reproduce.dpimf.claims import all_curves, at_few, budget_draws, metric_of
from discreet.reproduce.dpimf.federation import SHARED
from discreet.reproduce.dpimf.protocol import (
    BUDGETS,
    CURVES,
    EPSILONS,
    FEW_EPSILONS,
    HIGH_EPSILONS,
    LOSS_EPSILONS,
    METRICS,
    TITLES,
    Parts,
)
from discreet.reproduce.figures import Panel, PlottedLine, level, measured
from discreet.reproduce.papers import printed_numbers

_NAMES = {"str": "strawman", "com": "complementary", "sym": "symmetric", "opt": "optimal"}


def _mean_line(
    name: str, epsilons: Sequence[float], draws: Sequence[Any], method: str, column: int
) -> PlottedLine:
    return measured(name, epsilons, [metric_of(one, method, column) for one in draws])


def figure5_panels(found: Mapping[str, Parts]) -> list[Panel]:
    """Return, for each dataset, the noise on the matrix and the HR of the four variants by reading."""
    kept, panels = printed_numbers("dpimf"), []
    for label, parts in found.items():
        if label not in kept["tables"]:
            continue
        lines = []
        x = np.linspace(-10, 10, 81)
        for variant in VARIANTS[:3]:
            scale = float(np.mean([one[variant] for one in parts["noise"]]))
            peak = kept["figure 5 noise peaks"][label][variant]
            for kind, height in (("ours", 1 / (2 * scale)), ("printed", peak)):
                density = height * np.exp(-2 * height * np.abs(x))
                lines.append(
                    PlottedLine(_NAMES[variant], x.tolist(), density.round(7).tolist(), kind=cast(Any, kind))
                )
        panels.append(
            Panel(
                f"{TITLES[label]}: noise on the matrix, epsilon 0.1", "noise", "density", lines, y_scale="log"
            )
        )
        for name, (alpha0, budget) in BUDGETS.items():
            if name == "thirds":
                continue
            lines = [_mean_line(_NAMES[v], EPSILONS, budget_draws(parts, name), v, 0) for v in VARIANTS]
            lines += [
                PlottedLine(_NAMES[v], EPSILONS, kept["tables"][label]["hr"][v], kind="printed")
                for v in VARIANTS
            ]
            words = ", ".join(f"{share:.2g}" for share in budget)
            panels.append(
                Panel(f"{TITLES[label]}: alpha0 {alpha0}, budget {words}", "epsilon", "HR@10", lines)
            )
    return panels


def figure78_panels(found: Mapping[str, Parts], number: str, side: str) -> list[Panel]:
    """Return HR and NDCG of all methods on each dataset; YahooMusic has printed curves alone."""
    panels = []
    for label, printed in printed_numbers("dpimf")[f"figure {number}"].items():
        for column, metric in enumerate(METRICS):
            lines = []
            for name, values in printed[metric].items():
                if name != "GT":
                    lines += _own_curve(found.get(label, {}), side, name, column)
                lines.append(PlottedLine(name, EPSILONS, values, kind="printed"))
            if parts := found.get(label):
                truth = float(np.mean([one["scores"][column] for one in parts["ground truth"]]))
                popular = float(np.mean([one["popularity"][0][column] for one in parts["beside"]]))
                lines += [
                    level("implicit ALS (GT), ours", EPSILONS, truth),
                    level("popular items, no noise", EPSILONS, popular),
                ]
            panels.append(
                Panel(
                    f"{TITLES[label]}, {side} solved, NOT PRIVATE", "epsilon", f"{metric.upper()}@10", lines
                )
            )
    return panels


def _own_curve(parts: Parts, side: str, name: str, column: int) -> list[PlottedLine]:
    if not parts:
        return []
    few = name in ("DPLCF", "LDPICF")
    draws = at_few(parts, side) if few else all_curves(parts, side)
    epsilons = EPSILONS if not few else FEW_EPSILONS if len(draws[0][name]) == len(FEW_EPSILONS) else (0.5,)
    return [_mean_line(name, epsilons, draws, CURVES[name], column)]


def theorem5_panel(draws: Sequence[Any]) -> Panel:
    lines = []
    for name in VARIANTS:
        lines.append(measured(_NAMES[name], LOSS_EPSILONS, [one[f"excess {name}"] for one in draws]))
        bounds = np.mean([one[f"bound {name}"] for one in draws], axis=0).tolist()
        lines.append(PlottedLine(_NAMES[name], LOSS_EPSILONS, bounds, kind="printed"))
    return Panel(
        "Theorem 5: bounds and measured losses", "epsilon", "excess loss per item", lines, "log", "log"
    )


def federation_panel(parts: Parts) -> Panel:
    """Return HR over epsilon: ten parties with noise in every query, and one solve at one center."""
    lines = [_mean_line("one noisy solve, one center", EPSILONS, parts["tables items"], "opt", 0)]
    for what in SHARED:
        draws = parts[f"two rounds {what} items"]
        epsilons = HIGH_EPSILONS if len(draws[0]["opt"]) == len(HIGH_EPSILONS) else (1.0, 10.0)
        lines.append(_mean_line(f"ten parties, {what}, two rounds", epsilons, draws, "opt", 0))
    for epsilons, words in ((EPSILONS, "axis of the tables"), (HIGH_EPSILONS, "axis of the figures")):
        lines.append(
            PlottedLine(
                f"Table III, {words}",
                epsilons,
                printed_numbers("dpimf")["tables"]["ml100k"]["hr"]["opt"],
                kind="printed",
            )
        )
    return Panel("Algorithm 1 on ML-100K, NOT PRIVATE", "epsilon per query", "HR@10", lines, x_scale="log")
