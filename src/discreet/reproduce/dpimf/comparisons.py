"""Turn what was measured into the values that the claims name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.papers.dpimf.printed import LOWERED, VARIANTS
from discreet.papers.dpimf.theory import composed, room_to_learn
from discreet.reproduce import Run
from discreet.reproduce.dpimf import tables
from discreet.reproduce.dpimf.bounds import PRINTED_SETTINGS
from discreet.reproduce.dpimf.federated_claims import federated
from discreet.reproduce.dpimf.federation import LOCAL, ROUNDS

Values = dict[str, Sequence[float]]
Floats = npt.NDArray[np.float64]
PRINTED = {
    "ml100k": (tables.HR_ML100K, tables.NDCG_ML100K),
    "amazon": (tables.HR_AMAZON, tables.NDCG_AMAZON),
}
#: How many items a party's person is solved for in the two data sets; the critique multiplies by it.
ITEMS = {"ml100k": 1682, "amazon": 1685}


def compare(found: Mapping[str, Any], run: Run) -> Values:
    """Return the values of every claim whose experiments were reached."""
    values: Values = {
        f"settings-nonzero-{data}": [room_to_learn(*printed)] for data, printed in PRINTED_SETTINGS.items()
    }
    for label in PRINTED:
        if parts := found.get(label):
            for part in (_tables, _figures, federated, _theory, _beside):
                values |= run.part(part, label, parts)
    values |= _sampling(found["figure 6"])
    for epsilon, draws in found["private"].items():
        for name, metric in ((f"private-{epsilon}", "hr@10:99"), (f"private-{epsilon}-full", "hr@10")):
            values[name] = [draw["implicit-objective"][metric] - draw["popularity"][metric] for draw in draws]
    return values


def _each(draws: Sequence[Any], value: Callable[[Any], Any]) -> list[float]:
    return [float(value(draw)) for draw in draws]


def _metric(draw: Mapping[str, Any], method: str, column: int) -> Floats:
    """Return one method's curve over epsilon: column 0 is HR, 1 is NDCG."""
    return np.asarray(draw[method], dtype=np.float64)[:, column]


def _tables(label: str, parts: Mapping[str, Any]) -> Values:
    """Hold both sides against the printed tables, and the variants against each other."""
    values: Values = {}
    for side, prefix in (("items", label), ("users", f"{label}-users")):
        draws = parts[f"tables {side}"]
        for column, name in enumerate(("hr", "ndcg")):
            for variant in VARIANTS:
                line = np.asarray(PRINTED[label][column][variant])
                values[f"{prefix}-{name}-{variant}"] = _each(
                    draws, lambda draw, v=variant, c=column, at=line: np.abs(_metric(draw, v, c) - at).mean()
                )
            own = parts.get(f"tables printed setting {side}", [])
            line = np.asarray(PRINTED[label][column]["opt"])
            values[f"{prefix}-printed-{name}-opt"] = _each(
                own, lambda draw, c=column, at=line: np.abs(_metric(draw, "opt", c) - at).mean()
            )
        for worse, better in pairwise(VARIANTS):
            values[f"{prefix}-{better}-over-{worse}"] = _over(draws, better, worse)
    return values


def _over(draws: Sequence[Any], better: str, worse: str, column: int = 0) -> list[float]:
    """Return the mean over epsilon of one method's score minus another's, for each draw."""
    return _each(draws, lambda draw: (_metric(draw, better, column) - _metric(draw, worse, column)).mean())


def _figures(label: str, parts: Mapping[str, Any]) -> Values:
    """Compare curves of Figures 5, 7 (items) and 8 (users): over epsilon 1 to 10, and over 0.1 to 1 (`low`).

    The text's numbers for epsilon 1 to 10 are those of the tables at 0.1 to 1, so both axes are judged.
    """
    values = _figure5(label, parts["figure 5"], "") | _figure5(label, parts["figure 5 low"], "-low")
    values[f"figure5-noise-com-{label}"] = _each(parts["noise"], lambda scale: scale["com"] / scale["str"])
    values[f"figure5-noise-sym-{label}"] = _each(parts["noise"], lambda scale: scale["sym"] / scale["com"])
    truth = np.asarray(parts["beside"][0]["no noise"][0])
    for figure, side in (("figure7", "items"), ("figure8", "users")):
        for axis, name in (("", "figures"), ("-low", "tables")):
            draws = [
                dict(own) | dict(lower)
                for own, lower in zip(
                    parts[f"{name} {side}"], parts[f"{name} lower noise {side}"], strict=False
                )
            ]
            values |= _over_others(figure, label, draws, axis)
        draws = [
            dict(own) | _at_few(own, near)
            for own, near in zip(parts[f"figures {side}"], parts["neighbors"], strict=False)
        ]
        values |= _over_neighbors(figure, label, draws, truth)
    for name in ("DPLCF", "LDPICF"):
        values[f"figure7-{name.lower()}-{label}"] = _each(
            parts["neighbors"], lambda draw, n=name: _metric(draw, n, 0).mean()
        )
    values[f"figure8-over-figure7-{label}"] = [
        float((_metric(users, "opt-IS", 0) - _metric(items, "opt-IS", 0)).mean())
        for users, items in zip(parts["figures users"], parts["figures items"], strict=False)
    ]
    return values


def _figure5(label: str, draws: Sequence[Any], axis: str) -> Values:
    values: Values = {}
    for worse, better in (("com", "sym"), ("str", "com"), ("str", "sym"), ("str", "opt")):
        key = f"figure5-{better}-over-{worse}-{label}"
        values[f"{key}{axis}"] = _over(draws, better, worse)
        values[f"{key}{axis}-end"] = _each(
            draws, lambda draw, b=better, w=worse: (_metric(draw, b, 0) - _metric(draw, w, 0))[-1]
        )
        values[f"{key}{axis}-upper"] = _each(
            draws, lambda draw, b=better, w=worse: (_metric(draw, b, 0) - _metric(draw, w, 0))[-5:].mean()
        )
    values[f"figure5-opt-best-{label}{axis}"] = _each(
        draws,
        lambda draw: (
            _metric(draw, "opt", 0) - np.max([_metric(draw, v, 0) for v in VARIANTS[:3]], axis=0)
        ).min(),
    )
    return values


def _over_others(figure: str, label: str, draws: Sequence[Any], axis: str) -> Values:
    """Compare opt-IS, with the noise kept and lowered, with opt and DPMF."""
    values: Values = {}
    for column, name in enumerate(("hr", "ndcg")):
        key = f"{label}-{name}{axis}"
        for other in ("opt", "dpmf"):
            values[f"{figure}-is-over-{other}-{key}"] = _over(draws, "opt-IS", other, column)
            for lowered, weight in LOWERED.items():
                values[f"{figure}-lower{weight:g}-over-{other}-{key}"] = _over(draws, lowered, other, column)
        values[f"{figure}-opt-end-{key}"] = _each(draws, lambda draw, c=column: _metric(draw, "opt", c)[-1])
        values[f"{figure}-rises-{key}"] = _each(
            draws, lambda draw, c=column: _metric(draw, "opt", c)[-1] - _metric(draw, "opt", c)[0]
        )
    return values


def _over_neighbors(figure: str, label: str, draws: Sequence[Any], truth: Floats) -> Values:
    """Compare opt-IS with the two methods that flip bits, and with the model without noise."""
    values: Values = {}
    for column, name in enumerate(("hr", "ndcg")):
        key = f"{label}-{name}"
        for other in ("DPLCF", "LDPICF"):
            values[f"{figure}-is-over-{other.lower()}-{key}"] = _over(draws, "opt-IS, few", other, column)
        values[f"{figure}-left-{key}"] = _each(
            draws, lambda draw, c=column: truth[c] - _metric(draw, "opt-IS", c)[-1]
        )
    return values


def _at_few(own: Mapping[str, Any], near: Mapping[str, Any]) -> dict[str, Any]:
    """Return the neighbors' curves, and that of opt-IS at the few epsilons which they were run at."""
    high = tables.HIGH_EPSILONS if len(own["opt-IS"]) == len(tables.HIGH_EPSILONS) else (1.0, 3.0, 10.0)
    few = tables.FEW_EPSILONS if len(near["DPLCF"]) == len(tables.FEW_EPSILONS) else (3.0,)
    return dict(near) | {"opt-IS, few": [own["opt-IS"][high.index(epsilon)] for epsilon in few]}


def _theory(label: str, parts: Mapping[str, Any]) -> Values:
    """Return shares of the bounds, orders and slopes of measured losses, and what a person's row costs."""
    draws = parts["theory"]

    def shares(draw: Mapping[str, Any]) -> float:
        return max(np.max(np.divide(draw[f"excess {v}"], draw[f"bound {v}"])) for v in VARIANTS)

    def ordered(draw: Mapping[str, Any]) -> float:
        losses = [np.asarray(draw[f"excess {variant}"]) for variant in VARIANTS]
        return float(np.mean([one >= other for one, other in pairwise(losses)]))

    def slope(draw: Mapping[str, Any]) -> float:
        return min(np.log(draw[f"excess {v}"][0] / draw[f"excess {v}"][-1]) / np.log(10.0) for v in VARIANTS)

    return {
        f"theorem5-largest-share-{label}": _each(draws, shares),
        f"theorem5-order-{label}": _each(draws, ordered),
        f"theorem5-slope-{label}": _each(draws, slope),
        f"theorem4-largest-share-{label}": _each(draws, lambda draw: draw["theorem 4"][0]),
        f"corollary1-{label}": _each(draws, lambda draw: np.mean(draw["corollary"])),
        f"algorithm3-slack-{label}": _each(draws, lambda draw: draw["slack"][0]),
        f"theorem2-error-{label}": _each(draws, lambda draw: draw["amplified"][0]),
        f"theorem3-row-{label}": _each(draws, lambda draw: draw["row loss"][1]),
        f"theorem3-row-median-{label}": _each(draws, lambda draw: draw["row loss"][0]),
        f"theorem3-all-{label}": [composed(1.0, ITEMS[label], ROUNDS, LOCAL)],
        f"theorem3-all-0.1-{label}": [composed(0.1, ITEMS[label], ROUNDS, LOCAL)],
    }


def _beside(label: str, parts: Mapping[str, Any]) -> Values:
    """Compare with lists of popular items, and with what is learnable without privacy."""
    popular = [draw["popularity"][0][0] for draw in parts["beside"]]
    values: Values = {f"{label}-popularity": popular}
    values[f"{label}-no-noise"] = [draw["no noise"][0][0] for draw in parts["beside"]]
    beaten = []
    for draw, list_score in zip(parts["tables items"], popular, strict=False):
        below = np.asarray(tables.EPSILONS)[_metric(draw, "opt", 0) < list_score]
        beaten.append(float(below.max(initial=0.0)))
    values[f"{label}-loses-to-popularity-up-to"] = beaten
    values[f"theorem4-effect-{label}"] = [
        _effect(*pair) for pair in zip(parts["beside"], parts["tables items"], strict=False)
    ]
    if "ceiling" in parts:
        values[f"{label}-best-without-privacy"] = [draw["best"] for draw in parts["ceiling"]]
        values[f"{label}-held-out-in-training"] = [draw["leaked"] for draw in parts["ceiling"]]
    return values


def _effect(beside: Mapping[str, Any], table: Mapping[str, Any]) -> float:
    """Return what another loss costs in HR, over what noise at epsilon 1 costs (complementary variant)."""
    other, first = beside["no noise, complementary loss"][0][0], beside["no noise, original loss"][0][0]
    return float(abs(other - first) / max(other - _metric(table, "com", 0)[-1], 1e-9))


def _sampling(draws: Sequence[Mapping[str, Any]]) -> Values:
    """Return how near importance weights are to those of least variance, and what uniform ones cost."""
    return {
        f"figure6-{what}-{size}": [draw[size][what] for draw in draws]
        for size in ("20", "100")
        for what in ("close", "importance", "uniform", "noise")
    }
