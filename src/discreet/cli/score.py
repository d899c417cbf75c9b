"""`discreet model score`: measure a model file as it is served, on data it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.cli.errors import OptionDoesNotApply, UnsupportedByModel
from discreet.cli.options.declared import AsJson, Data, ModelFile, Reading
from discreet.cli.options.measuring import Measuring
from discreet.cli.options.parsing import parse_columns
from discreet.cli.output.printing import emit, show

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.models.fitted import FittedModel


def score(
    model: ModelFile, data: Data, measuring: Measuring, reading: Reading, as_json: AsJson = False
) -> None:
    """Score a model file as it is served, without fitting. Any model works, also from parties or devices.

    The first part of each split is the history, and the rest is to be predicted. Use data that the model has
    not seen: --split time:DATE with the date of the fit. Don't publish the scores: they have no noise.
    """
    from discreet.models.storage import load
    from discreet.report.notes import SCORES_NOT_COVERED

    fitted = load(model)
    past = _read(fitted, data, reading)
    found, held_out, asked = _scores(fitted, past, data, measuring, reading)
    if as_json:
        emit(
            {
                "model": fitted.name,
                "held_out": held_out,
                "on": asked,
                "metrics": found,
                "note": SCORES_NOT_COVERED,
            }
        )
        return
    from rich.table import Table

    table = Table("metric", "model", "best simple baseline", title=f"{model} on {data}; held out: {held_out}")
    for name, scores in found.items():
        simple = scores.get("simple")
        table.add_row(
            name, f"{scores['mean']:.4f}", "-" if simple is None else f"{simple:.4f} ({scores['by']})"
        )
    seen = (
        " If the model was fitted on what is held out here, its scores are too good: use --split time:DATE "
        "with the date of its fit."
    ) * (not (measuring.split or "").startswith("time:"))
    repeats = " Only the first of repeated interactions counts." if past.facts.low == past.facts.high else ""
    show(
        table,
        f"Scored on {asked}. Items that the model doesn't know are skipped.{repeats} The baseline learned "
        f"from these histories without noise.{seen}",
        *(
            f"{name}: no better than {scores['by']} without noise."
            for name, scores in found.items()
            if _behind(name, scores)
        ),
        "Scores have no noise: don't publish them.",
        *measuring.hints(found, timed=past.times is not None),
    )


def _behind(name: str, scores: dict[str, Any]) -> bool:
    """Return whether a simple baseline is as good. Metrics of variety have no direction."""
    from discreet.evaluation.metric_kinds import ListMetric, RatingMetric
    from discreet.evaluation.metrics import Metric

    metric = Metric.parse(name)
    if scores["simple"] is None or not isinstance(metric.definition, ListMetric | RatingMetric):
        return False
    sign = 1 if metric.lower_is_better else -1
    return bool(sign * scores["mean"] >= sign * scores["simple"])


def _read(fitted: FittedModel, data: str, reading: Reading) -> Interactions:
    """Return the data in the model's catalog. Items that the model doesn't know are skipped."""
    from dataclasses import replace

    if reading.items is not None:
        raise OptionDoesNotApply(
            options=("--items",), to="a fitted model", why="a fitted model has its own catalog"
        )
    facts = fitted.facts
    rated = facts.low != facts.high
    implicit, duplicates = reading.implicit or not rated, reading.duplicates
    if implicit:
        if duplicates in ("mean", "count"):
            raise OptionDoesNotApply(
                options=("--duplicates",),
                to="metrics of lists",
                why="recommendations are new items, so the first of repeated pairs counts",
            )
        # The last repeat would move an item that a user had long before a date behind it, and then ask for
        # it.
        duplicates = "first"
    known = replace(reading, drop_unknown=True, implicit=implicit, duplicates=duplicates)
    scale = (facts.low, facts.high, facts.step) if not implicit else (None, None, None)
    return known.load(data, catalog=fitted.catalog, scale=scale, remembered=fitted.schema)


def _scores(
    fitted: FittedModel, past: Interactions, data: str, measuring: Measuring, reading: Reading
) -> tuple[dict[str, dict[str, Any]], str, str]:
    """Return each metric's mean over the splits and best baseline, what was held out, and how much."""
    from discreet.data.inputs import folder_of
    from discreet.evaluation.metrics import Metric, parse_metrics
    from discreet.evaluation.references import PREFIX, baselines
    from discreet.evaluation.results import Score
    from discreet.evaluation.scoring import measure

    metrics = parse_metrics(measuring.metrics or _usual(fitted, past))
    plan = measuring.plan(map(str, metrics), past)
    if past.facts.low == past.facts.high and any(not metric.ranks for metric in metrics):
        raise UnsupportedByModel(
            model=fitted.name, option="metrics of predicted ratings", why="it was fitted for lists"
        )
    where: dict[str, Any] = {
        "folder": folder_of(data, reading.layout),
        "columns": parse_columns(reading.columns),
    }
    parts = [
        part
        for number in range(measuring.repeat)
        for part in plan.splits(past, measuring.seed + number, **where)
    ]
    how: dict[str, Any] = {"seed": measuring.seed, "item_features": measuring.item_features}
    mine = Score.gather(measure(fitted, one.train, one.test, metrics, **how) for one in parts)
    simple = [baselines(one.train, one.test, metrics, **how) for one in parts]
    found: dict[str, dict[str, Any]] = {}
    for name, score_ in mine.items():
        best = min if Metric.parse(name).lower_is_better else max
        known = {way: Score.gather(run[way] for run in simple).get(name) for way in simple[0]}
        means = [(one.mean, way.removeprefix(PREFIX)) for way, one in known.items() if one is not None]
        value, by = best(means) if means else (None, None)
        found[name] = {"mean": score_.mean, "runs": list(score_.values), "simple": value, "by": by}
    people, rows = (sum(many) for many in zip(*(_asked(one.test) for one in parts), strict=True))
    return found, plan.held_out(timed=past.times is not None), f"{rows:,} rows of {people:,} users"


def _asked(test: Interactions) -> tuple[int, int]:
    """Return the number of users with held-out rows, and the number of these rows."""
    import numpy as np

    return int(np.count_nonzero(np.diff(test.indptr))), test.n_ratings


def _usual(fitted: FittedModel, past: Interactions) -> list[str]:
    """Return the default metrics: errors if there are ratings, and hits of lists."""
    if fitted.above is not None:
        return ["accuracy"]
    return ["hr@10", "ndcg@10"] if past.facts.low == past.facts.high else ["rmse"]
