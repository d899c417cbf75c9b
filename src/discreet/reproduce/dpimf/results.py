"""Results of the DPIMF experiments: values of claims, and the figures with the printed points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from discreet.papers.dpimf.printed_losses import VARIANTS, Floats
from discreet.papers.dpimf.theory import composed
from discreet.reproduce.dpimf import experiments as runs
from discreet.reproduce.dpimf.experiments import Parts
from discreet.reproduce.figures import Panel, PlottedLine, draw, level, measured
from discreet.reproduce.papers import printed_numbers
from discreet.reproduce.running import Found, Run

_NAMES = {"str": "strawman", "com": "complementary", "sym": "symmetric", "opt": "optimal"}


def values_of(found: Mapping[str, Parts], run: Run) -> Found:
    """Return the values of the claims about each dataset, and draw the figures."""
    values: Found = {}
    for label in (label for label in ("ml100k", "amazon") if label in found):
        for claims in (table_claims, figure5_claims, figure78_claims, theory_claims, popularity_claims):
            values |= run.part(claims, label, found[label])
    if films := found.get("ml100k"):
        values |= run.part(federated_claims, films)
        run.part(lambda: draw(run, "algorithm-1", [federation_panel(films)]))
        run.part(lambda: draw(run, "theorem5", [theorem5_panel(films["theory"])]))
    run.part(lambda: draw(run, "figure-5", figure5_panels(found)))
    for number, side in (("7", "items"), ("8", "users")):
        run.part(lambda n=number, s=side: draw(run, f"figure-{n}", figure78_panels(found, n, s)))
    return values


# Claims.


def _each(draws: Iterable[Any], value: Callable[[Any], Any]) -> list[float]:
    return [float(value(one)) for one in draws]


def metric_of(one: Mapping[str, Any], method: str, column: int = 0) -> Floats:
    """Return one method's curve over epsilon: column 0 is HR, 1 is NDCG."""
    return np.asarray(one[method], dtype=np.float64)[:, column]


def _over(draws: Sequence[Any], better: str, worse: str) -> list[float]:
    """Return the mean over epsilon of one method's HR minus another's, for each draw."""
    return _each(draws, lambda one: (metric_of(one, better) - metric_of(one, worse)).mean())


def _distances(
    draws: Sequence[Any], method: str, column: int, printed: Sequence[float | None]
) -> list[float]:
    """Return the mean distance from a printed curve, for each draw; missing markers are skipped."""
    line = np.array([np.nan if value is None else value for value in printed])
    return _each(draws, lambda one: np.nanmean(np.abs(metric_of(one, method, column) - line)))


def budget_draws(parts: Parts, name: str) -> list[Any]:
    return parts["tables items" if name == "ours" else f"figure 5 {name}"]


def table_claims(label: str, parts: Parts) -> Found:
    """Compare the printed tables with both sides, and with each reading of the settings."""
    tables = printed_numbers("dpimf")["tables"][label]
    values: Found = {}
    for column, metric in enumerate(runs.METRICS):
        line = tables[metric]["opt"]
        for side, prefix in (("items", label), ("users", f"{label}-users")):
            values[f"{prefix}-{metric}-opt"] = _distances(parts[f"tables {side}"], "opt", column, line)
        for name in ("printed", "plain"):
            draws = parts.get(f"tables {name} setting items", [])
            values[f"{label}-{name}-{metric}-opt"] = _distances(draws, "opt", column, line)
    for name in runs.BUDGETS:
        for variant in VARIANTS[:3]:
            draws = budget_draws(parts, name)
            values[f"{label}-{name}-hr-{variant}"] = _distances(draws, variant, 0, tables["hr"][variant])
    return values


def figure5_claims(label: str, parts: Parts) -> Found:
    values: Found = {
        f"figure5-{better}-over-{worse}-{label}-{name}": _over(budget_draws(parts, name), better, worse)
        for name in runs.BUDGETS
        for better, worse in (("com", "str"), ("sym", "str"), ("sym", "com"), ("opt", "sym"))
    }
    values[f"figure5-noise-com-{label}"] = _each(parts["noise"], lambda scale: scale["com"] / scale["str"])
    values[f"figure5-noise-sym-{label}"] = _each(parts["noise"], lambda scale: scale["sym"] / scale["com"])
    return values


def all_curves(parts: Parts, side: str) -> list[dict[str, Any]]:
    """Return, for each draw, the curves of all methods over the ten epsilons."""
    names = (f"tables {side}", f"tables lower noise {side}", f"tables inverse {side}")
    return [
        {method: curve for part in draws for method, curve in part.items()}
        for draws in zip(*(parts[name] for name in names), strict=False)
    ]


def at_few(parts: Parts, side: str) -> list[dict[str, Any]]:
    """Return the curves of all methods, the neighbors' included, at the epsilons of the neighbors."""
    near = parts["neighbors low"]
    epsilons = runs.FEW_EPSILONS if len(near[0]["DPLCF"]) == len(runs.FEW_EPSILONS) else (0.5,)
    return [
        {
            method: [curve[runs.EPSILONS.index(epsilon)] for epsilon in epsilons]
            for method, curve in own.items()
        }
        | other
        for own, other in zip(all_curves(parts, side), near, strict=False)
    ]


def figure78_claims(label: str, parts: Parts) -> Found:
    """Compare the curves of Figures 7 (items) and 8 (users) with each other and with the printed ones."""
    values: Found = {}
    for number, side in (("7", "items"), ("8", "users")):
        curves, few = all_curves(parts, side), at_few(parts, side)
        printed = printed_numbers("dpimf")[f"figure {number}"][label]
        for reading, method in runs.SAMPLING.items():
            for other in ("opt", "dpmf"):
                values[f"figure{number}-{reading}-over-{other}-{label}"] = _over(curves, method, other)
            for other in ("DPLCF", "LDPICF"):
                values[f"figure{number}-{reading}-over-{other.lower()}-{label}"] = _over(few, method, other)
        for column, metric in enumerate(runs.METRICS):
            lines = printed[metric]
            for name, method in (("dpimf", "opt"), ("dpmf", "dpmf")):
                own = _distances(curves, method, column, lines[name.upper()])
                values[f"figure{number}-{name}-{label}-{metric}"] = own
            for reading, method in runs.SAMPLING.items():
                own = _distances(curves, method, column, lines["DPIMF-IS"])
                values[f"figure{number}-{reading}-{label}-{metric}"] = own
            for name in ("DPLCF", "LDPICF"):
                if len(few[0][name]) == len(runs.FEW_EPSILONS):
                    at = [lines[name][runs.EPSILONS.index(epsilon)] for epsilon in runs.FEW_EPSILONS]
                    values[f"figure{number}-{name.lower()}-{label}-{metric}"] = _distances(
                        few, name, column, at
                    )
            truth = next(value for value in lines["GT"] if value is not None)
            values[f"figure{number}-gt-{label}-{metric}"] = _each(
                parts["ground truth"], lambda one, c=column, t=truth: abs(one["scores"][c] - t)
            )
        values[f"figure{number}-rises-{label}"] = _each(
            curves, lambda one: metric_of(one, "opt")[-1] - metric_of(one, "opt")[0]
        )
    values[f"figure8-over-figure7-{label}"] = [
        float((metric_of(users, "opt") - metric_of(items, "opt")).mean())
        for users, items in zip(parts["tables users"], parts["tables items"], strict=False)
    ]
    return values


def theory_claims(label: str, parts: Parts) -> Found:
    """Return shares of the bounds, orders and slopes of measured losses, and the cost of a user's row."""
    draws, items = parts["theory"], {"ml100k": 1682, "amazon": 1685}[label]

    def shares(one: Mapping[str, Any]) -> float:
        return max(float(np.max(np.divide(one[f"excess {v}"], one[f"bound {v}"]))) for v in VARIANTS)

    def ordered(one: Mapping[str, Any]) -> float:
        losses = [np.asarray(one[f"excess {variant}"]) for variant in VARIANTS]
        return float(np.mean([first >= second for first, second in pairwise(losses)]))

    def slope(one: Mapping[str, Any]) -> float:
        return min(float(np.log10(one[f"excess {v}"][0] / one[f"excess {v}"][-1])) for v in VARIANTS)

    return {
        f"theorem5-largest-share-{label}": _each(draws, shares),
        f"theorem5-order-{label}": _each(draws, ordered),
        f"theorem5-slope-{label}": _each(draws, slope),
        f"theorem4-largest-share-{label}": _each(draws, lambda one: one["theorem 4"][0]),
        f"corollary1-{label}": _each(draws, lambda one: np.mean(one["corollary"])),
        f"algorithm3-slack-{label}": _each(draws, lambda one: one["slack"][0]),
        f"theorem2-error-{label}": _each(draws, lambda one: one["amplified"][0]),
        f"theorem3-row-{label}": _each(draws, lambda one: one["row loss"][1]),
        f"theorem3-row-median-{label}": _each(draws, lambda one: one["row loss"][0]),
        f"theorem3-all-{label}": [composed(1.0, items, runs.ROUNDS, runs.LOCAL)],
        f"theorem3-all-0.1-{label}": [composed(0.1, items, runs.ROUNDS, runs.LOCAL)],
    }


def popularity_claims(label: str, parts: Parts) -> Found:
    """Compare with lists of popular items, and with what is learnable without privacy."""
    popular = [one["popularity"][0][0] for one in parts["beside"]]
    values: Found = {f"{label}-popularity": popular}
    values[f"{label}-loses-to-popularity-up-to"] = [
        float(np.asarray(runs.EPSILONS)[metric_of(one, "opt") < height].max(initial=0.0))
        for one, height in zip(parts["tables items"], popular, strict=False)
    ]
    # The cost of the other loss in HR, over the cost of noise at epsilon 1 (complementary variant).
    values[f"theorem4-effect-{label}"] = [
        abs(own - first) / max(own - float(metric_of(table, "com")[-1]), 1e-9)
        for one, table in zip(parts["beside"], parts["tables items"], strict=False)
        for own, first in [(one["no noise, complementary loss"][0][0], one["no noise, original loss"][0][0])]
    ]
    if "ceiling" in parts:
        values[f"{label}-best-without-privacy"] = [one["best"] for one in parts["ceiling"]]
    return values


def federated_claims(parts: Parts) -> Found:
    values: Found = {}
    for side in runs.SIDES:
        for what, key in (("all shared", "shared"), ("own catalogs", "own")):
            draws = parts[f"two rounds {what} {side}"]
            for place, epsilon in ((0, "1"), (-1, "10")):
                values[f"federated-ml100k-{side}-{key}-opt-{epsilon}"] = _each(
                    draws, lambda one, p=place: one["opt"][p][0]
                )
        for epsilon in ("1", "10"):
            draws = parts.get(f"federated {runs.ROUNDS} rounds {side} {epsilon} opt", [])
            values[f"federated-ml100k-{side}-100-opt-{epsilon}"] = _each(draws, lambda one: one[0])
        for place, name in enumerate(("overlap", "overlap-all")):
            values[f"{name}-ml100k-{side}"] = _each(parts[f"overlap {side}"], lambda one, p=place: one[p])
    return values


# Figures.


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
                f"{runs.TITLES[label]}: noise on the matrix, epsilon 0.1",
                "noise",
                "density",
                lines,
                y_scale="log",
            )
        )
        for name, (alpha0, budget) in runs.BUDGETS.items():
            if name == "thirds":
                continue
            lines = [_mean_line(_NAMES[v], runs.EPSILONS, budget_draws(parts, name), v, 0) for v in VARIANTS]
            lines += [
                PlottedLine(_NAMES[v], runs.EPSILONS, kept["tables"][label]["hr"][v], kind="printed")
                for v in VARIANTS
            ]
            words = ", ".join(f"{share:.2g}" for share in budget)
            panels.append(
                Panel(f"{runs.TITLES[label]}: alpha0 {alpha0}, budget {words}", "epsilon", "HR@10", lines)
            )
    return panels


def figure78_panels(found: Mapping[str, Parts], number: str, side: str) -> list[Panel]:
    """Return HR and NDCG of all methods on each dataset; YahooMusic has printed curves alone."""
    panels = []
    for label, printed in printed_numbers("dpimf")[f"figure {number}"].items():
        for column, metric in enumerate(runs.METRICS):
            lines = []
            for name, values in printed[metric].items():
                if name != "GT":
                    lines += _own_curve(found.get(label, {}), side, name, column)
                lines.append(PlottedLine(name, runs.EPSILONS, values, kind="printed"))
            if parts := found.get(label):
                truth = float(np.mean([one["scores"][column] for one in parts["ground truth"]]))
                popular = float(np.mean([one["popularity"][0][column] for one in parts["beside"]]))
                lines += [
                    level("implicit ALS (GT), ours", runs.EPSILONS, truth),
                    level("popular items, no noise", runs.EPSILONS, popular),
                ]
            panels.append(
                Panel(
                    f"{runs.TITLES[label]}, {side} solved, NOT PRIVATE",
                    "epsilon",
                    f"{metric.upper()}@10",
                    lines,
                )
            )
    return panels


def _own_curve(parts: Parts, side: str, name: str, column: int) -> list[PlottedLine]:
    if not parts:
        return []
    few = name in ("DPLCF", "LDPICF")
    draws = at_few(parts, side) if few else all_curves(parts, side)
    epsilons = (
        runs.EPSILONS
        if not few
        else runs.FEW_EPSILONS
        if len(draws[0][name]) == len(runs.FEW_EPSILONS)
        else (0.5,)
    )
    return [_mean_line(name, epsilons, draws, runs.CURVES[name], column)]


def theorem5_panel(draws: Sequence[Any]) -> Panel:
    lines = []
    for name in VARIANTS:
        lines.append(measured(_NAMES[name], runs.LOSS_EPSILONS, [one[f"excess {name}"] for one in draws]))
        bounds = np.mean([one[f"bound {name}"] for one in draws], axis=0).tolist()
        lines.append(PlottedLine(_NAMES[name], runs.LOSS_EPSILONS, bounds, kind="printed"))
    return Panel(
        "Theorem 5: bounds and measured losses", "epsilon", "excess loss per item", lines, "log", "log"
    )


def federation_panel(parts: Parts) -> Panel:
    """Return HR over epsilon: ten parties with noise in every query, and one solve at one center."""
    lines = [_mean_line("one noisy solve, one center", runs.EPSILONS, parts["tables items"], "opt", 0)]
    for what in runs.SHARED:
        draws = parts[f"two rounds {what} items"]
        epsilons = runs.HIGH_EPSILONS if len(draws[0]["opt"]) == len(runs.HIGH_EPSILONS) else (1.0, 10.0)
        lines.append(_mean_line(f"ten parties, {what}, two rounds", epsilons, draws, "opt", 0))
    for epsilons, words in (
        (runs.EPSILONS, "axis of the tables"),
        (runs.HIGH_EPSILONS, "axis of the figures"),
    ):
        lines.append(
            PlottedLine(
                f"Table III, {words}",
                epsilons,
                printed_numbers("dpimf")["tables"]["ml100k"]["hr"]["opt"],
                kind="printed",
            )
        )
    return Panel("Algorithm 1 on ML-100K, NOT PRIVATE", "epsilon per query", "HR@10", lines, x_scale="log")
