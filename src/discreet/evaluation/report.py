"""Write a comparison as one HTML page: what privacy costs, a table, a chart per metric, all labels.

The page is self-contained and runs no script. Notebooks draw the same charts, and terminals print the same
sentences.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core import UnknownChoice, refuse_output, write_whole
from discreet.evaluation.comparison import shown_names
from discreet.evaluation.errors import NothingGiven
from discreet.evaluation.metrics import ListMetric, Metric, RatingMetric
from discreet.evaluation.results import GROUP_HEADER, Evaluation, Score, group_rows, spread_text
from discreet.evaluation.scoring import CHANCE, PREFIX
from discreet.privacy import Neighbors, Trust, Unit
from discreet.report import (
    COLORS,
    GRAY,
    TRUST_WORDS,
    UNIT_WORDS,
    Axis,
    ChartLine,
    Charts,
    Html,
    Point,
    details,
    element,
    facts_table,
    is_page,
    line_chart,
    number_above,
    page,
    table,
)

Definition = tuple[Unit, Neighbors, Trust]
#: What is protected, within a sentence.
PROTECTED = {Unit.VALUE: "a rating value", Unit.RATING: "a rating", Unit.USER: "a whole user"}
# A sentence names the costs at so many epsilons: the ends, and what lies between.
_MOST = 3
# A score ahead of all without privacy isn't a gain from privacy, so no share of it is stated.
_NO_WORSE = "no worse"


def promises(one: Evaluation) -> bool:
    """Return whether a fit has a guarantee."""
    return math.isfinite(one.guarantee.epsilon)


def of_definition(found: Sequence[Evaluation], definition: Definition | None) -> list[Evaluation]:
    """Return the evaluations with this privacy definition; with None, all."""
    return [one for one in found if definition is None or one.guarantee.definition == definition]


def cost_of_privacy(found: Sequence[Evaluation], metric: str) -> list[str]:
    """Return what privacy costs in this metric: a sentence per privacy definition, then the baseline."""
    named = [
        (one, name) for one, name in zip(found, shown_names(found), strict=True) if metric in one.metrics
    ]
    sign = 1 if Metric.parse(metric).lower_is_better else -1
    free = [(one.metrics[metric], name) for one, name in named if not promises(one)]
    best_free = min(free, key=lambda pair: sign * pair[0].mean, default=None)
    definitions = dict.fromkeys(one.guarantee.definition for one, _ in named if promises(one))
    sentences = [_sentence(named, metric, sign, definition, best_free) for definition in definitions]
    if best_free is None:
        sentences.append("No model without privacy was measured (epsilon inf), so the cost is not known.")
    private = [one.metrics[metric] for one, _ in named if promises(one)]
    if best_free is not None and any(_cost(score, best_free[0], sign) == _NO_WORSE for score in private):
        sentences.append(
            "Noise does not improve a model: where a private fit is ahead, that is chance, or a better model "
            "without privacy was not measured."
        )
    return [*sentences, *_against_baselines(found, private, metric, sign)]


def ran_once(found: Sequence[Evaluation]) -> str:
    """Return a warning if every model ran once; empty otherwise."""
    once = all(len(score.values) == 1 for one in found for score in one.metrics.values())
    return "Every model ran once, so small differences may be luck; --repeat 3 shows the spread." * once


def _sentence(
    named: Sequence[tuple[Evaluation, str]],
    metric: str,
    sign: int,
    definition: Definition,
    best_free: tuple[Score, str] | None,
) -> str:
    mine = [(one, name) for one, name in named if promises(one) and one.guarantee.definition == definition]
    parts = []
    for epsilon in _some(sorted({one.guarantee.epsilon for one, _ in mine})):
        here = ((one.metrics[metric], name) for one, name in mine if one.guarantee.epsilon == epsilon)
        score, name = min(here, key=lambda pair: sign * pair[0].mean)
        cost = "" if best_free is None else f", {_cost(score, best_free[0], sign)}"
        parts.append(f"{score.mean:.4g} at epsilon {epsilon:g} ({name}{cost})")
    reached = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    against = (
        "" if best_free is None else f", against {best_free[0].mean:.4g} without privacy ({best_free[1]})"
    )
    return f"With {PROTECTED[definition[0]]} protected, the best model reaches {reached}{against}."


def _some(epsilons: list[float]) -> list[float]:
    """Return at most a few of them, evenly chosen, with the first and the last."""
    if len(epsilons) <= _MOST:
        return epsilons
    return [epsilons[round(place * (len(epsilons) - 1) / (_MOST - 1))] for place in range(_MOST)]


def _cost(score: Score, free: Score, sign: int) -> str:
    """Return how much worse a score is, as a share of the score without privacy, or that it is not worse."""
    worse = sign * (score.mean - free.mean)
    if len(score.values) == len(free.values) > 1:
        # The runs share their splits, so that their differences count.
        differences = np.subtract(score.values, free.values)
        if abs(worse) <= float(np.std(differences, ddof=1)):
            return "no difference beyond the spread of the runs"
    share = 100 * abs(worse / free.mean) if free.mean else math.inf
    if not worse or share < 0.05:
        return "as good"
    if worse <= 0:
        return _NO_WORSE
    if not free.mean:
        return f"{worse:.3g} worse"
    # Two digits, and never as a power of ten.
    return f"{f'{share:.2g}' if share < 99.5 else f'{share:,.0f}'}% worse"


def best_baseline(found: Sequence[Evaluation], metric: str) -> tuple[float, str]:
    """Return the score and the name of the best simple baseline; the name is empty without one."""
    named = Metric.parse(metric)
    # Chance is as diverse as can be: where held-out items do not count, baselines say nothing.
    compared = isinstance(named.definition, ListMetric | RatingMetric)
    scores = [
        (scores[metric].mean, name.removeprefix(PREFIX))
        for one in found
        for name, scores in one.references.items()
        if compared and metric in scores
    ]
    return (min if named.lower_is_better else max)(scores, key=lambda pair: pair[0], default=(0.0, ""))


def _against_baselines(
    found: Sequence[Evaluation], private: Sequence[Score], metric: str, sign: int
) -> Iterator[str]:
    value, name = best_baseline(found, metric)
    if not name:
        return
    behind = sum(sign * (score.mean - value) >= 0 for score in private)
    said = f"The best simple baseline ({name}) reaches {value:.4g}"
    if behind == len(private) > 0:
        yield f"{said}; no private model is better."
    elif behind:
        yield f"{said}; {behind} of {len(private)} private fits {'is' if behind == 1 else 'are'} not better."
    else:
        yield f"{said}."


def direction(metric: str) -> str:
    """Return in words whether a higher or a lower score is better."""
    return "lower is better" if Metric.parse(metric).lower_is_better else "higher is better"


def chart(found: Sequence[Evaluation], metric: str, definition: Definition | None = None) -> Html:
    """Return the chart of one metric: a line per model, dashes without privacy, gray for baselines.

    With a `definition` only guarantees of that privacy definition are drawn: the same epsilon under another
    definition is another protection.
    """
    protected = f" ({PROTECTED[definition[0]]} protected)" if definition else ""
    return line_chart(
        _lines(found, metric, definition),
        title=f"{metric}: {direction(metric)}{protected}",
        x=_epsilons(found),
        y=Axis(label=metric),
    )


def charts_of(found: Sequence[Evaluation], metric: str | None) -> Charts:
    """Return the charts of a page of these evaluations: of each metric, or of the one that is named."""
    measured = list(dict.fromkeys(name for one in found for name in one.metrics))
    if metric is not None and metric not in measured:
        raise UnknownChoice(name="metric", value=metric, choices=measured)
    chosen = measured if metric is None else [metric]
    groups = (group_chart(one, name) for one in found if one.groups for name in chosen)
    return Charts("".join([*_charts(found, chosen), *groups]))


def group_chart(one: Evaluation, metric: str) -> Html:
    """Return the chart of one metric by group, with and without noise."""
    ticks = tuple((float(place), name) for place, name in enumerate(one.groups))
    return line_chart(
        _group_lines(one, metric),
        title=f"{metric} by group: {direction(metric)}",
        x=Axis(label="group", ticks=ticks),
        y=Axis(label=metric),
        values=False,
    )


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


def _lines(found: Sequence[Evaluation], metric: str, definition: Definition | None) -> tuple[ChartLine, ...]:
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


#: The name of such a page in messages.
KIND = "report of a comparison"


def write_report(
    evaluations: Iterable[Evaluation],
    path: str | Path,
    *,
    title: str,
    remarks: Sequence[str] = (),
    force: bool = False,
) -> None:
    """Write the page to `path` in one step. It begins with `remarks`, such as what was held out.

    If the file exists, pass `force` to replace it. A file that isn't such a page is never replaced.
    """
    path = Path(path)
    refuse_output(path, force=force, kind=KIND, is_ours=partial(is_page, kind=KIND))
    write_whole(path, render_report(evaluations, title=title, remarks=remarks).encode())


def render_report(evaluations: Iterable[Evaluation], *, title: str, remarks: Sequence[str] = ()) -> str:
    """Return the page as text, with `remarks` at its top."""
    found = tuple(evaluations)
    if not found:
        raise NothingGiven(name="evaluations")
    metrics = tuple(dict.fromkeys(name for one in found for name in one.metrics))
    body = [
        *_opening(found, title),
        *([element("p", " ".join(remarks), "note")] if remarks else []),
        element("h2", "What privacy costs"),
        _costs(found, metrics),
        element("h2", "Scores by epsilon"),
        *_charts(found, metrics),
        *_groups(found),
        element("h2", "All scores"),
        *_scores(found, metrics),
        element("h2", "Privacy labels"),
        *_labels(found),
        element("h2", "Everything as JSON"),
        details("Show", element("pre", json.dumps([one.to_json() for one in found], indent=1))),
    ]
    return page(title, body, kind=KIND)


def _groups(found: Sequence[Evaluation]) -> Iterator[str]:
    """Yield a chart for each metric by group, and a table of what noise costs each group."""
    for one in found:
        if one.groups:
            yield element("h2", "Scores by group")
            yield from (group_chart(one, metric) for metric in one.metrics)
            yield table(GROUP_HEADER, group_rows(one), "Scores by group")


def _opening(found: Sequence[Evaluation], title: str) -> Iterator[str]:
    data = found[0].data
    # Where ratings are predicted there are some; lists alone are made of interactions.
    lists = all(Metric.parse(name).ranks for one in found for name in one.metrics)
    what = "interactions" if lists else "ratings"
    yield element("h1", title)
    yield element(
        "p", f"{data['users']:,} users, {data['items']:,} items, {data['ratings']:,} {what}", "quiet"
    )
    said = f"The scores come from held-out {what} without noise. No guarantee on this page covers them."
    if any(one.guarantee.simulated for one in found):
        said += (
            " The noise of the models was simulated from a seed, so that this page can be made again. None "
            "of these fits protects any user. With real noise, the guarantees would be those in the labels."
        )
    yield element("p", said, "warning")


def _costs(found: Sequence[Evaluation], metrics: Sequence[str]) -> Html:
    lines = (
        f"<li><strong>{escape(metric)} ({direction(metric)})</strong> {escape(' '.join(said))}</li>"
        for metric in metrics
        if (said := cost_of_privacy(found, metric))
    )
    luck = ran_once(found)
    return Html(f'<ul class="costs">{"".join(lines)}</ul>' + (element("p", luck, "quiet") if luck else ""))


def _scores(found: Sequence[Evaluation], metrics: Sequence[str]) -> Iterator[str]:
    # What is protected comes first, so that it is in sight on a telephone.
    head = ["model", "epsilon", "protects", *metrics, "delta", "runs", "fit (s)"]
    rows, kinds, previous = [], [], ""
    for row in report_rows(found, metrics):
        rows.append(
            [
                row["model"],
                row["epsilon"],
                row["protects"],
                *row["cells"],
                row["delta"],
                row["runs"],
                row["fit"],
            ]
        )
        kinds.append("first" if previous and row["model"] != previous else "")
        previous = row["model"]
    for row in reference_rows(found, metrics):
        rows.append(
            [row["name"].removeprefix(PREFIX), "", "NOT PRIVATE, baseline", *row["cells"], "", "", ""]
        )
        kinds.append("baseline" if "baseline" in kinds else "first baseline")
    numbers = {1, *range(3, len(head))}
    yield table(head, rows, "Scores of all models", numbers=numbers, kinds=kinds)
    yield element(
        "p",
        "Mean over the runs ± sample standard deviation. The best private score of each metric is bold. A "
        "name such as hr@10 ranks the whole catalog; hr@10:99 ranks among 99 sampled items. The two do not "
        "compare.",
        "quiet",
    )


def report_rows(found: Sequence[Evaluation], metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row of texts for each evaluation; variants of one model are named by their settings."""
    best = {metric: _best_private(found, metric) for metric in metrics}
    return [_row(one, called, metrics, best) for one, called in zip(found, shown_names(found), strict=True)]


def _best_private(found: Sequence[Evaluation], metric: str) -> Evaluation | None:
    sign = 1 if Metric.parse(metric).lower_is_better else -1
    private = [one for one in found if promises(one) and metric in one.metrics]
    return min(private, key=lambda one: sign * one.metrics[metric].mean, default=None)


def _row(
    one: Evaluation, called: str, metrics: Sequence[str], best: dict[str, Evaluation | None]
) -> dict[str, Any]:
    promise = one.guarantee
    return {
        "model": called,
        "epsilon": f"{promise.epsilon:g}" if promises(one) else "∞",
        "delta": f"{promise.delta:g}" if promises(one) else "",
        "protects": f"one {promise.unit.value}, {promise.trust.value}" if promises(one) else "NOT PRIVATE",
        "scores": [spread_text(one.metrics.get(name)) for name in metrics],
        "cells": [_cell(one.metrics.get(name), best=best[name] is one) for name in metrics],
        "runs": str(len(next(iter(one.metrics.values())).values)),
        "fit": f"{one.seconds['fit']:.2f}",
    }


def reference_rows(found: Sequence[Evaluation], metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Return each baseline once, with its scores from all evaluations."""
    merged: dict[str, dict[str, Score]] = {}
    for evaluation in found:
        for name, scores in evaluation.references.items():
            merged[name] = {**scores, **merged.get(name, {})}
    return [
        {
            "name": name,
            "scores": [spread_text(scores.get(metric)) for metric in metrics],
            "cells": [_cell(scores.get(metric)) for metric in metrics],
        }
        for name, scores in merged.items()
    ]


def _cell(score: Score | None, *, best: bool = False) -> str:
    mean, _, spread = spread_text(score).partition(" ± ")
    mean = f'<span class="best">{mean}</span>' if best else mean
    return Html(mean + (f' <span class="spread">± {spread}</span>' if spread else ""))


def _charts(found: Sequence[Evaluation], metrics: Sequence[str]) -> Iterator[str]:
    promised = dict.fromkeys(one.guarantee.definition for one in found if promises(one))
    definitions: list[Definition | None] = [*promised] or [None]
    if len(definitions) > 1:
        yield element(
            "p",
            "These models have different privacy definitions: they protect a rating value, a rating or a "
            "whole user, from the public or also from the collector. The same epsilon does not mean the same "
            "protection, so each definition has its own charts.",
            "warning",
        )
    for definition in definitions:
        yield element("h3", _words(definition))
        for metric in metrics:
            if any(metric in one.metrics for one in of_definition(found, definition)):
                yield chart(found, metric, definition)
    repeated = any(len(score.values) > 1 for one in found for score in one.metrics.values())
    spread = "Bars show the spread over the runs. " if repeated else ""
    yield element(
        "p",
        f"{spread}Dashed lines are models without privacy, dotted lines simple baselines: useful models lie "
        "between them. Point at a mark to read its numbers; the legend shows the value at the right end.",
        "quiet",
    )


def _words(definition: Definition | None) -> str:
    if definition is None:
        return "Nothing is protected"
    unit, _, trust = definition
    # A comparison simulates the collection of local models.
    where = " in a real collection; this comparison read the raw ratings" if trust is Trust.LOCAL else ""
    return f"Protected: {UNIT_WORDS[unit]}; from {TRUST_WORDS[trust]}{where}"


def _labels(found: Sequence[Evaluation]) -> Iterator[str]:
    named = list(zip(found, shown_names(found), strict=True))
    for model in dict.fromkeys(name for _, name in named):
        mine = [one.guarantee for one, name in named if name == model]
        inside = (
            details(f"epsilon {number_above(one.epsilon)}", facts_table(one.rows(), f"Label of {model}"))
            for one in mine
        )
        yield details(model, Html("".join(inside)))
