"""Write a comparison as one HTML page: what privacy costs, a table, a chart per metric, all labels.

The page is self-contained and runs no script.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from discreet.core.files import refuse_output, write_whole
from discreet.evaluation.comparison import shown_names
from discreet.evaluation.cost_of_privacy import Definition, cost_of_privacy, of_definition, promises, ran_once
from discreet.evaluation.errors import NothingGiven
from discreet.evaluation.metrics import Metric
from discreet.evaluation.references import PREFIX
from discreet.evaluation.results import GROUP_HEADER, Evaluation, Score, group_rows, spread_text
from discreet.evaluation.score_charts import chart, direction, group_chart
from discreet.privacy.guarantee import Trust
from discreet.report.guarantee import TRUST_WORDS, UNIT_WORDS
from discreet.report.numbers import number_above
from discreet.report.pages import Html, details, element, facts_table, is_page, page, table

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
    """Write the page to `path` in one step. It opens with `remarks`, such as what was held out.

    An existing file is kept unless `force`; a file that is not such a page is kept even then.
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
