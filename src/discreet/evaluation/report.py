"""Write a comparison as one HTML page: a table, a curve per metric, and all privacy labels.

The page is self-contained: plots are inline SVG, and it runs no script. Writing it needs the extra `report`
(matplotlib, jinja2).
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Sequence
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from discreet.core.checks import DiscreetError, ParameterError
from discreet.core.files import refuse_output, write_whole
from discreet.evaluation.comparison import variant_names
from discreet.evaluation.metrics import Metric
from discreet.evaluation.references import PREFIX
from discreet.evaluation.results import Evaluation, Score
from discreet.privacy.guarantee import TRUST_WORDS, UNIT_WORDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The name of such a page in messages.
KIND = "report of a comparison"
# The template writes this among its first lines.
_MARK, _HEAD = b'<meta name="generator" content="discreet">', 512


def require_libraries() -> None:
    """Refuse at once, before hours of fitting, if the libraries for a report are not installed."""
    try:
        for name in ("matplotlib", "jinja2"):
            import_module(name)
    except ImportError as error:
        raise DiscreetError(
            'A report needs matplotlib and jinja2. Install them with pip install "discreet[report]".'
        ) from error


def write_report(
    evaluations: Iterable[Evaluation], path: str | Path, *, title: str, force: bool = False
) -> None:
    """Write the page to `path` in one step.

    An existing file is kept unless `force`; a file that is not such a page is kept even then.
    """
    path = Path(path)
    refuse_output(path, force=force, kind=KIND, is_ours=is_report)
    write_whole(path, render_report(evaluations, title=title).encode())


def is_report(path: Path) -> bool:
    """Return whether `write_report` wrote this file, by its generator line."""
    try:
        with path.open("rb") as file:
            return _MARK in file.read(_HEAD)
    except OSError:
        return False


def render_report(evaluations: Iterable[Evaluation], *, title: str) -> str:
    """Return the page as text."""
    found = tuple(evaluations)
    if not found:
        raise ParameterError("evaluations must hold at least one to report.")
    require_libraries()
    from jinja2 import Environment

    names = tuple(dict.fromkeys(name for evaluation in found for name in evaluation.metrics))
    template = resources.files("discreet.evaluation").joinpath("report.html.jinja").read_text("utf-8")
    page: str = (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(
            title=title,
            data=found[0].data,
            metrics=names,
            rows=report_rows(found, names),
            references=reference_rows(found, names),
            groups=[
                (
                    _words(definition),
                    [
                        (name, draw_curve(found, name, definition))
                        for name in names
                        if _has(found, name, definition)
                    ],
                )
                for definition in _definitions(found)
            ],
            mixed_definitions=len(_definitions(found)) > 1,
            simulated=any(evaluation.guarantee.simulated for evaluation in found),
            raw=json.dumps([evaluation.to_json() for evaluation in found], indent=1),
        )
    )
    return page


def _definitions(found: Sequence[Evaluation]) -> list[tuple[Any, ...] | None]:
    """Return the privacy definitions of all promises; [None] if there is no promise."""
    return list(dict.fromkeys(one.guarantee.definition for one in found if _promises(one))) or [None]


def _has(found: Sequence[Evaluation], name: str, definition: tuple[Any, ...] | None) -> bool:
    return any(
        name in one.metrics and (definition is None or one.guarantee.definition == definition)
        for one in found
    )


def _words(definition: tuple[Any, ...] | None) -> str:
    if definition is None:
        return "Nothing is protected"
    unit, _, trust = definition
    return f"Protected: {UNIT_WORDS[unit]}; from {TRUST_WORDS[trust]}"


def _promises(evaluation: Evaluation) -> bool:
    return math.isfinite(evaluation.guarantee.epsilon)


def report_rows(found: Sequence[Evaluation], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row of texts for each evaluation; variants of one model are named by their settings."""
    return [_row(one, called, names) for one, called in zip(found, variant_names(found), strict=True)]


def _row(evaluation: Evaluation, called: str, names: Sequence[str]) -> dict[str, Any]:
    promise = evaluation.guarantee
    return {
        "model": called,
        "epsilon": f"{promise.epsilon:g}" if _promises(evaluation) else "∞",
        "delta": f"{promise.delta:g}" if _promises(evaluation) else "",
        "protects": f"one {promise.unit.value}, {promise.trust.value}"
        if _promises(evaluation)
        else "NOT PRIVATE",
        "scores": _cells(evaluation.metrics, names),
        "runs": len(next(iter(evaluation.metrics.values())).values),
        "fit": f"{evaluation.seconds['fit']:.2f}",
        "label": promise.rows(),
    }


def reference_rows(found: Sequence[Evaluation], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return each baseline once, with its scores from all evaluations."""
    merged: dict[str, dict[str, Score]] = {}
    for evaluation in found:
        for name, scores in evaluation.references.items():
            merged[name] = {**scores, **merged.get(name, {})}
    return [{"name": name, "scores": _cells(scores, names)} for name, scores in merged.items()]


def _cells(scores: dict[str, Score], names: Sequence[str]) -> list[str]:
    """Return mean and spread as text, a dash where there is no score."""
    cells = []
    for name in names:
        score = scores.get(name)
        spread = f" ± {score.std:.4f}" if score is not None and len(score.values) > 1 else ""
        cells.append("–" if score is None else f"{score.mean:.4f}{spread}")
    return cells


# Safe for color-blind readers, on light and dark ground; markers differ, too.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f7f7f")
_MARKERS = "osD^vPX"
# A placeholder for the color of the page's text.
_INK = "#010203"
# Text stays text, and equal numbers give equal bytes.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",
    # A dollar sign in a model's name is literal.
    "text.parse_math": False,
    "font.size": 10,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK),
}


def draw_curve(
    evaluations: Sequence[Evaluation], metric: str, definition: tuple[Any, ...] | None = None
) -> str:
    """Return the SVG of one metric: a line per model, dashes without privacy, dots for baselines.

    With a `definition` only promises of that privacy definition are drawn: the same epsilon under another
    definition is another protection.
    """
    names = variant_names(evaluations)
    with mpl.rc_context(_STYLE):
        # As wide as a phone.
        figure = Figure(figsize=(5.2, 4.4), layout="constrained")
        axes = figure.subplots()
        # Numbered over all metrics and frames, so that a model keeps its color from picture to picture.
        for number, model in enumerate(dict.fromkeys(names)):
            mine = [e for e, name in zip(evaluations, names, strict=True) if name == model]
            _draw_model(axes, [e for e in mine if metric in e.metrics], model, metric, number, definition)
        _draw_references(axes, evaluations, metric)
        _dress(axes, evaluations, metric)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
        figure.patch.set_alpha(0)
        axes.patch.set_alpha(0)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawing = text.getvalue().replace(_INK, "currentColor")
    # Inline SVG has no XML declaration.
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
    definition: tuple[Any, ...] | None,
) -> None:
    color, marker = _COLORS[number % len(_COLORS)], _MARKERS[number % len(_MARKERS)]
    finite = (e for e in evaluations if math.isfinite(e.guarantee.epsilon))
    private = sorted(
        (e for e in finite if definition is None or e.guarantee.definition == definition),
        key=lambda e: e.guarantee.epsilon,
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
