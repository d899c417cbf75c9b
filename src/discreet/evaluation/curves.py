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
from discreet.evaluation.variants import variant_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Told apart by people who see few colors, on light and dark ground, and by marker besides.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f7f7f")
_MARKERS = "osD^vPX"
# Stands for the color of the page's text, whatever that is.
_INK = "#010203"
# Text stays text, and the same numbers give the same bytes.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",
    # A dollar sign in the name of a model is one.
    "text.parse_math": False,
    "font.size": 10,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
}


def draw_curve(evaluations: Sequence[Evaluation], metric: str, frame: tuple[Any, ...] | None = None) -> str:
    """Return the SVG of one metric: a line a model, dashes without privacy, dots for references.

    With a `frame` only promises in it are drawn: the same epsilon in another one does not mean the same.
    """
    names = variant_names(evaluations)
    with mpl.rc_context(_STYLE):
        # As wide as a phone, so that it need not shrink there.
        figure = Figure(figsize=(5.2, 4.4), layout="constrained")
        axes = figure.subplots()
        # Numbered over all metrics and frames, so that a model keeps its color from picture to picture.
        for number, model in enumerate(dict.fromkeys(names)):
            mine = [e for e, name in zip(evaluations, names, strict=True) if name == model]
            _draw_model(axes, [e for e in mine if metric in e.metrics], model, metric, number, frame)
        _draw_references(axes, evaluations, metric)
        _dress(axes, evaluations, metric)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
        figure.patch.set_alpha(0)
        axes.patch.set_alpha(0)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawing = text.getvalue().replace(_INK, "currentColor")
    # Inside a page there is no place for an XML declaration.
    return drawing[drawing.index("<svg") :]


def _dress(axes: Axes, evaluations: Sequence[Evaluation], metric: str) -> None:
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


def _draw_model(
    axes: Axes,
    evaluations: Sequence[Evaluation],
    name: str,
    metric: str,
    number: int,
    frame: tuple[Any, ...] | None,
) -> None:
    color, marker = _COLORS[number % len(_COLORS)], _MARKERS[number % len(_MARKERS)]
    finite = (e for e in evaluations if math.isfinite(e.guarantee.epsilon))
    private = sorted(
        (e for e in finite if frame is None or e.guarantee.frame == frame), key=lambda e: e.guarantee.epsilon
    )
    if private:
        axes.errorbar(
            [e.guarantee.epsilon for e in private],
            [e.metrics[metric].mean for e in private],
            yerr=[e.metrics[metric].std for e in private],
            color=color,
            marker=marker,
            capsize=3,
            label=name,
        )
    for evaluation in evaluations:
        if math.isinf(evaluation.guarantee.epsilon):
            mean = evaluation.metrics[metric].mean
            axes.axhline(mean, color=color, linestyle="--", label=f"{name}, NOT PRIVATE")


def _draw_references(axes: Axes, evaluations: Sequence[Evaluation], metric: str) -> None:
    drawn: set[str] = set()
    for name, scores in (pair for e in evaluations for pair in e.references.items()):
        if metric in scores and name not in drawn:
            color = str(0.45 + 0.1 * (len(drawn) % 3))
            label = f"{name.removeprefix(PREFIX)} (reference)"
            axes.axhline(scores[metric].mean, color=color, linestyle=":", label=label)
            drawn.add(name)
