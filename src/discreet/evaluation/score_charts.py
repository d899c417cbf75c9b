"""Chart scores: a line per model by epsilon, for pages and for notebooks, and bars of one evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from discreet.core.checks import one_of
from discreet.core.errors import UnknownChoice
from discreet.evaluation.comparison import shown_names
from discreet.evaluation.cost_of_privacy import PROTECTED, Definition, of_definition, promises
from discreet.evaluation.errors import DefinitionsDiffer
from discreet.evaluation.metrics import Metric
from discreet.evaluation.references import CHANCE, PREFIX
from discreet.evaluation.results import Evaluation, spread_text
from discreet.report.charts import (
    COLORS,
    GRAY,
    Axis,
    ChartLine,
    Point,
    axes_for,
    line_chart,
    panels_for,
    plot_bars,
    plot_lines,
)
from discreet.report.pages import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def direction(metric: str) -> str:
    """Return in words whether a higher or a lower score is better."""
    return "lower is better" if Metric.parse(metric).lower_is_better else "higher is better"


def chart(found: Sequence[Evaluation], metric: str, definition: Definition | None = None) -> Html:
    """Return the chart of one metric: a line per model, dashes without privacy, gray for baselines.

    With a `definition` only guarantees of that privacy definition are drawn: the same epsilon under another
    definition is another protection.
    """
    lines = chart_lines(found, metric, definition)
    return line_chart(lines, title=_title(metric, definition), x=_epsilons(found), y=Axis(label=metric))


def plot_comparison(
    found: Sequence[Evaluation], metric: str | None, definition: str | None, ax: Axes | None
) -> Axes:
    """Draw a panel for each metric, or for the one named, with matplotlib; return the first."""
    of = _definition(found, definition)
    panels = _panels(found, metric, ax, _LINES_HEIGHT)
    for chosen, panel in panels.items():
        lines = chart_lines(found, chosen, of)
        plot_lines(panel, lines, title=_title(chosen, of), x=_epsilons(found), y=Axis(label=chosen))
    return next(iter(panels.values()))


def _definition(found: Sequence[Evaluation], definition: str | None) -> Definition | None:
    """Return the privacy definition to draw; raise for several at once."""
    promised = {"/".join(one): one for one in (one.guarantee.definition for one in found if promises(one))}
    if definition is None and len(promised) > 1:
        raise DefinitionsDiffer(definitions=tuple(promised))
    if definition is not None:
        one_of("definition", definition, promised)
    return promised[definition] if definition else next(iter(promised.values()), None)


def plot_evaluation(one: Evaluation, metric: str | None, ax: Axes | None) -> Axes:
    """Draw a panel for each metric and return the first: bars of the model and baselines, or the groups."""
    panels = _panels((one,), metric, ax, _LINES_HEIGHT if one.groups else _BARS_HEIGHT)
    for chosen, panel in panels.items():
        if one.groups:
            plot_lines(panel, _group_lines(one, chosen), **_group_frame(one, chosen))
        else:
            _bars(one, chosen, panel)
    return next(iter(panels.values()))


def group_chart(one: Evaluation, metric: str) -> Html:
    """Return the chart of one metric by group, with and without noise."""
    return line_chart(_group_lines(one, metric), values=False, **_group_frame(one, metric))


def _group_frame(one: Evaluation, metric: str) -> dict[str, Any]:
    ticks = tuple((float(place), name) for place, name in enumerate(one.groups))
    return {
        "title": f"{metric} by group: {direction(metric)}",
        "x": Axis(label="group", ticks=ticks),
        "y": Axis(label=metric),
    }


def _group_lines(one: Evaluation, metric: str) -> list[ChartLine]:
    """Return a line over the groups for the model, and one for the model without noise."""
    cost = f"epsilon {one.guarantee.epsilon:g}" if promises(one) else "NOT PRIVATE"
    lines = {f"{one.model}, {cost}": [group.metrics for group in one.groups.values()]}
    if all(group.without_noise for group in one.groups.values()):
        lines["without noise, NOT PRIVATE"] = [group.without_noise for group in one.groups.values()]
    return [
        ChartLine(
            name=name,
            points=tuple(
                Point(
                    float(place),
                    scores[metric].mean,
                    scores[metric].std,
                    f"{group}: {scores[metric].mean:.4f}",
                )
                for place, (group, scores) in enumerate(zip(one.groups, own, strict=True))
            ),
            color=number,
            dashes="7 4" if number else "",
        )
        for number, (name, own) in enumerate(lines.items())
    ]


def _bars(one: Evaluation, chosen: str, ax: Axes) -> None:
    cost = f"epsilon {one.guarantee.epsilon:g}" if promises(one) else "NOT PRIVATE"
    named = {f"{one.model}, {cost}": one.metrics}
    named |= {f"{name.removeprefix(PREFIX)}, baseline": scores for name, scores in one.references.items()}
    bars = [
        (name, scores[chosen].mean, scores[chosen].std) for name, scores in named.items() if chosen in scores
    ]
    plot_bars(ax, bars, title=f"{chosen}: {direction(chosen)}", x=chosen)


def chart_lines(
    found: Sequence[Evaluation], metric: str, definition: Definition | None
) -> tuple[ChartLine, ...]:
    """Return a line for each model, and a level for each baseline."""
    names = shown_names(found)
    lines: list[ChartLine] = []
    # Numbered over all metrics and definitions, so that a model keeps its color from chart to chart.
    for number, model in enumerate(dict.fromkeys(names)):
        mine = [
            one for one, name in zip(found, names, strict=True) if name == model and metric in one.metrics
        ]
        lines += _model_lines(mine, model, metric, number % COLORS, definition)
    return (*lines, *_baseline_lines(found, metric))


# Inches that bars of one metric, and lines, are high.
_BARS_HEIGHT, _LINES_HEIGHT = 2.4, 3.8


def _panels(
    found: Sequence[Evaluation], metric: str | None, ax: Axes | None, height: float
) -> dict[str, Axes]:
    """Return the axes for each metric: all of them in a new figure, or one; on `ax` by default the first."""
    measured = list(dict.fromkeys(name for one in found for name in one.metrics))
    if (metric is None and not measured) or (metric is not None and metric not in measured):
        raise UnknownChoice(name="metric", value=metric, choices=measured)
    if metric is None and ax is None and len(measured) > 1:
        return dict(zip(measured, panels_for(len(measured), height), strict=True))
    return {metric or measured[0]: axes_for(ax)}


def _title(metric: str, definition: Definition | None) -> str:
    protected = f" ({PROTECTED[definition[0]]} protected)" if definition else ""
    return f"{metric}: {direction(metric)}{protected}"


def _epsilons(found: Sequence[Evaluation]) -> Axis:
    epsilons = sorted({one.guarantee.epsilon for one in found if promises(one)})
    return Axis(
        label="epsilon (smaller is more private)",
        logarithmic=True,
        ticks=tuple((epsilon, f"{epsilon:g}") for epsilon in epsilons),
    )


def _model_lines(
    mine: Sequence[Evaluation], model: str, metric: str, color: int, definition: Definition | None
) -> Iterator[ChartLine]:
    private = sorted(of_definition(mine, definition), key=lambda one: one.guarantee.epsilon)
    if points := tuple(_point(one, model, metric) for one in private if promises(one)):
        yield ChartLine(name=model, points=points, color=color)
    for one in mine:
        if math.isinf(one.guarantee.epsilon):
            level = one.metrics[metric].mean
            yield ChartLine(name=f"{model}, NOT PRIVATE", level=level, color=color, dashes="7 4")


def _point(one: Evaluation, model: str, metric: str) -> Point:
    score, epsilon = one.metrics[metric], one.guarantee.epsilon
    said = f"{model}, epsilon {epsilon:g}: {metric} {spread_text(score)}, {len(score.values)} runs"
    return Point(epsilon, score.mean, score.std, said)


# Dots one by one, in pairs, in threes and far apart distinguish baselines.
_DOTS = ("2 4", "2 3 2 9", "2 3 2 3 2 9", "2 9")


def _baseline_lines(found: Sequence[Evaluation], metric: str) -> Iterator[ChartLine]:
    """Yield a labeled level for each baseline that has this metric."""
    names = dict.fromkeys(name for one in found for name in one.references)
    levels = {name.removeprefix(PREFIX): _baseline(found, name, metric) for name in names}
    # Chance is so far below that all other lines would lie on each other; the table has it.
    drawn = [(said, level) for said, level in levels.items() if level is not None and said != CHANCE]
    for number, (said, level) in enumerate(drawn):
        dots = _DOTS[number % len(_DOTS)]
        yield ChartLine(name=f"{said}, baseline", level=level, color=GRAY, dashes=dots, label=said)


def _baseline(found: Sequence[Evaluation], name: str, metric: str) -> float | None:
    scores = (one.references[name].get(metric) for one in found if name in one.references)
    return next((score.mean for score in scores if score is not None), None)
