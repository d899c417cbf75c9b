"""Draw a metric against epsilon as SVG text. Needs matplotlib, so it is imported only for a report."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from discreet.evaluation.evaluation import Evaluation
from discreet.evaluation.metrics import Metric
from discreet.evaluation.references import PREFIX

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by people who see few colors, and by marker besides (Okabe and Ito's palette).
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = "osD^vPX"
# Text stays text, and the same numbers give the same bytes.
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "discreet", "font.size": 11}


def draw_curve(evaluations: Sequence[Evaluation], metric: str) -> str:
    """Return the SVG of one metric: a line a model, dashes without privacy, dots for references."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(8, 4.2), layout="constrained")
        axes = figure.subplots()
        # Numbered over all metrics, so that a model keeps its color from picture to picture.
        for number, model in enumerate(dict.fromkeys(e.model for e in evaluations)):
            shown = [e for e in evaluations if e.model == model and metric in e.metrics]
            _draw_model(axes, shown, metric, number)
        _draw_references(axes, evaluations, metric)
        epsilons = sorted({e.guarantee.epsilon for e in evaluations if math.isfinite(e.guarantee.epsilon)})
        if epsilons:
            axes.set_xscale("log")
            axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.set_xlabel("epsilon (smaller is more private)")
        better = "lower is better" if Metric.parse(metric).lower_is_better else "higher is better"
        axes.set_ylabel(f"{metric} ({better})")
        axes.grid(alpha=0.25)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawing = text.getvalue()
    # Inside a page there is no place for an XML declaration.
    return drawing[drawing.index("<svg") :]


def _draw_model(axes: Axes, evaluations: Sequence[Evaluation], metric: str, number: int) -> None:
    color, marker = _COLORS[number % len(_COLORS)], _MARKERS[number % len(_MARKERS)]
    private = sorted(
        (e for e in evaluations if math.isfinite(e.guarantee.epsilon)), key=lambda e: e.guarantee.epsilon
    )
    if private:
        promise = private[0].guarantee
        axes.errorbar(
            [e.guarantee.epsilon for e in private],
            [e.metrics[metric].mean for e in private],
            yerr=[e.metrics[metric].std for e in private],
            color=color,
            marker=marker,
            capsize=3,
            label=f"{private[0].model} ({promise.unit.value}, {promise.trust.value})",
        )
    for evaluation in evaluations:
        if math.isinf(evaluation.guarantee.epsilon):
            mean = evaluation.metrics[metric].mean
            axes.axhline(mean, color=color, linestyle="--", label=f"{evaluation.model}, NOT PRIVATE")


def _draw_references(axes: Axes, evaluations: Sequence[Evaluation], metric: str) -> None:
    drawn: set[str] = set()
    for name, scores in (pair for e in evaluations for pair in e.references.items()):
        if metric in scores and name not in drawn:
            color = str(0.35 + 0.15 * (len(drawn) % 4))
            label = f"{name.removeprefix(PREFIX)} (reference)"
            axes.axhline(scores[metric].mean, color=color, linestyle=":", label=label)
            drawn.add(name)
