"""Values of the claims about DPIMF: tables, figures, readings and theorems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.papers.dpimf.printed_losses import VARIANTS, Floats
from discreet.papers.dpimf.theory import composed
from discreet.reproduce.dpimf.federation import LOCAL, ROUNDS
from discreet.reproduce.dpimf.protocol import (
    BUDGETS,
    EPSILONS,
    FEW_EPSILONS,
    METRICS,
    SAMPLING,
    SIDES,
    Parts,
)
from discreet.reproduce.papers import printed_numbers
from discreet.reproduce.running import Found


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
    for column, metric in enumerate(METRICS):
        line = tables[metric]["opt"]
        for side, prefix in (("items", label), ("users", f"{label}-users")):
            values[f"{prefix}-{metric}-opt"] = _distances(parts[f"tables {side}"], "opt", column, line)
        for name in ("printed", "plain"):
            draws = parts.get(f"tables {name} setting items", [])
            values[f"{label}-{name}-{metric}-opt"] = _distances(draws, "opt", column, line)
    for name in BUDGETS:
        for variant in VARIANTS[:3]:
            draws = budget_draws(parts, name)
            values[f"{label}-{name}-hr-{variant}"] = _distances(draws, variant, 0, tables["hr"][variant])
    return values


def figure5_claims(label: str, parts: Parts) -> Found:
    values: Found = {
        f"figure5-{better}-over-{worse}-{label}-{name}": _over(budget_draws(parts, name), better, worse)
        for name in BUDGETS
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
    epsilons = FEW_EPSILONS if len(near[0]["DPLCF"]) == len(FEW_EPSILONS) else (0.5,)
    return [
        {method: [curve[EPSILONS.index(epsilon)] for epsilon in epsilons] for method, curve in own.items()}
        | other
        for own, other in zip(all_curves(parts, side), near, strict=False)
    ]


def figure78_claims(label: str, parts: Parts) -> Found:
    """Compare the curves of Figures 7 (items) and 8 (users) with each other and with the printed ones."""
    values: Found = {}
    for number, side in (("7", "items"), ("8", "users")):
        curves, few = all_curves(parts, side), at_few(parts, side)
        printed = printed_numbers("dpimf")[f"figure {number}"][label]
        for reading, method in SAMPLING.items():
            for other in ("opt", "dpmf"):
                values[f"figure{number}-{reading}-over-{other}-{label}"] = _over(curves, method, other)
            for other in ("DPLCF", "LDPICF"):
                values[f"figure{number}-{reading}-over-{other.lower()}-{label}"] = _over(few, method, other)
        for column, metric in enumerate(METRICS):
            lines = printed[metric]
            for name, method in (("dpimf", "opt"), ("dpmf", "dpmf")):
                own = _distances(curves, method, column, lines[name.upper()])
                values[f"figure{number}-{name}-{label}-{metric}"] = own
            for reading, method in SAMPLING.items():
                own = _distances(curves, method, column, lines["DPIMF-IS"])
                values[f"figure{number}-{reading}-{label}-{metric}"] = own
            for name in ("DPLCF", "LDPICF"):
                if len(few[0][name]) == len(FEW_EPSILONS):
                    at = [lines[name][EPSILONS.index(epsilon)] for epsilon in FEW_EPSILONS]
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
        f"theorem3-all-{label}": [composed(1.0, items, ROUNDS, LOCAL)],
        f"theorem3-all-0.1-{label}": [composed(0.1, items, ROUNDS, LOCAL)],
    }


def popularity_claims(label: str, parts: Parts) -> Found:
    """Compare with lists of popular items, and with what is learnable without privacy."""
    popular = [one["popularity"][0][0] for one in parts["beside"]]
    values: Found = {f"{label}-popularity": popular}
    values[f"{label}-loses-to-popularity-up-to"] = [
        float(np.asarray(EPSILONS)[metric_of(one, "opt") < height].max(initial=0.0))
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
    for side in SIDES:
        for what, key in (("all shared", "shared"), ("own catalogs", "own")):
            draws = parts[f"two rounds {what} {side}"]
            for place, epsilon in ((0, "1"), (-1, "10")):
                values[f"federated-ml100k-{side}-{key}-opt-{epsilon}"] = _each(
                    draws, lambda one, p=place: one["opt"][p][0]
                )
        for epsilon in ("1", "10"):
            draws = parts.get(f"federated {ROUNDS} rounds {side} {epsilon} opt", [])
            values[f"federated-ml100k-{side}-100-opt-{epsilon}"] = _each(draws, lambda one: one[0])
        for place, name in enumerate(("overlap", "overlap-all")):
            values[f"{name}-ml100k-{side}"] = _each(parts[f"overlap {side}"], lambda one, p=place: one[p])
    return values
