"""`discreet evaluate`: measure one model on held-out ratings or interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.cli.options.declared import AsJson, Data, Learning, Paying, Reading
from discreet.cli.options.measuring import Measuring, Privately
from discreet.cli.options.parsing import parse_columns
from discreet.cli.options.sources import On, opened
from discreet.cli.output.printing import emit, remark_on_delta, show
from discreet.cli.private_scores import measure_privately

if TYPE_CHECKING:
    from rich.table import Table

    from discreet.evaluation.results import Evaluation
    from discreet.models.estimator import Estimator


def evaluate(
    data: Data,
    learning: Learning,
    measuring: Measuring,
    reading: Reading,
    privately: Privately,
    paying: Paying,
    on: On = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on a held-out part of the data, next to simple baselines.

    Don't publish scores without --private: they have no noise.
    """
    estimator = learning.estimator(implicit=reading.implicit)
    if privately.asked(paying):
        measure_privately([estimator], data, measuring, reading, privately, paying, on, as_json=as_json)
        return
    result, timed, held_out = _measured(estimator, data, measuring, reading, on)
    if as_json:
        emit(result.to_json())
        return
    runs = "" if measuring.repeat > 1 else " One run can't show small differences: use --repeat 5."
    what = "interactions" if reading.implicit else "ratings"
    show(
        _table(result, f"{estimator.name} on {data}; held out: {held_out}"),
        f"The fits aren't kept, and their noise comes from --seed: {result.guarantee.short()}",
        f"The scores are computed from held-out {what} without noise: don't publish them.{runs}",
        *_advice(estimator, result, measuring, timed=timed),
    )


#: Remark about a model with two purposes where only ratings are scored.
ALSO_LISTS = (
    "also learns recommendations from the same budget. --metric hr@10 scores them. --for ratings spends the "
    "whole budget on ratings."
)


def _advice(estimator: Estimator, result: Evaluation, measuring: Measuring, *, timed: bool) -> list[str]:
    """Return advice from the scores: a baseline is as good, or the budget is shared."""
    said = measuring.hints(result.metrics, timed=timed)
    behind = {name: of for name in result.metrics if (of := _not_behind(result, name))}
    if behind and result.guarantee.epsilon < float("inf"):
        simpler = "popularity" if "popularity" in behind.values() else "biases"
        other = f", or use the simpler --model {simpler}" if estimator.name != simpler else ""
        said.append(
            f"{' and '.join(behind)}: no better than {' and '.join(sorted(set(behind.values())))} without "
            f"noise. More users or a larger epsilon would help{other}."
        )
    if measuring.metrics is None and getattr(estimator, "purpose", "") == "both" and "rmse" in result.metrics:
        said.append(f"This model {ALSO_LISTS}")
    return said


def _not_behind(result: Evaluation, name: str) -> str:
    """Return the best simple baseline of a metric if the model does not beat it, else nothing."""
    from discreet.evaluation.metrics import Metric

    value, of = _best_simple(result, name)
    if not of:
        return ""
    sign = 1 if Metric.parse(name).lower_is_better else -1
    return of if sign * result.metrics[name].mean >= sign * value else ""


def _best_simple(result: Evaluation, name: str) -> tuple[float, str]:
    """Return the score and the name of the best simple baseline. The name is empty without a baseline."""
    from discreet.evaluation.metric_kinds import ListMetric, RatingMetric
    from discreet.evaluation.metrics import Metric
    from discreet.evaluation.references import PREFIX

    metric = Metric.parse(name)
    # Random items have the highest diversity, so for metrics that ignore held-out items baselines mean
    # nothing.
    compared = isinstance(metric.definition, ListMetric | RatingMetric)
    simple = [
        (known[name].mean, of.removeprefix(PREFIX))
        for of, known in result.references.items()
        if compared and name in known
    ]
    return (min if metric.lower_is_better else max)(simple, default=(0.0, ""))


def _baseline(result: Evaluation, name: str) -> str:
    """Return the best baseline. If none is best, return all of them, so that a score can be compared."""
    value, of = _best_simple(result, name)
    if of:
        return f"{value:.4f} ({of})"
    from discreet.evaluation.references import PREFIX

    known = {of.removeprefix(PREFIX): scores for of, scores in result.references.items()}
    return "\n".join(f"{scores[name].mean:.4f} ({of})" for of, scores in known.items() if name in scores)


def _measured(
    estimator: Estimator, data: str, measuring: Measuring, reading: Reading, on: str | None
) -> tuple[Evaluation, bool, str]:
    """Return the scores, whether the data have times, and what was held out."""
    from discreet.core.progress import terminal_progress
    from discreet.data.inputs import folder_of
    from discreet.data.interactions import Interactions
    from discreet.evaluation.protocol import evaluate as measure
    from discreet.sources.shards import is_shard_folder

    with terminal_progress(None) as report, opened(data, reading, None, on, report) as source:
        remark_on_delta([estimator], source.facts)
        result = measure(
            estimator,
            source,
            split=measuring.split,
            metrics=measuring.metrics,
            repeat=measuring.repeat,
            seed=measuring.seed,
            item_features=measuring.item_features,
            progress=report,
            # They are fitted on rows in memory.
            references=isinstance(source, Interactions),
            folder=None if is_shard_folder(data) else folder_of(data, reading.layout),
            columns=parse_columns(reading.columns),
        )
        timed = getattr(source, "times", None) is not None
        return result, timed, measuring.plan(result.metrics, source).held_out(timed=timed)


def _table(result: Evaluation, title: str) -> Table:
    """Return a row for each metric: the model's score, which way is better, and baselines."""
    from rich.table import Table

    from discreet.evaluation.metrics import Metric

    table = Table("metric", "mean", "std", "runs", "better", "simple baseline", title=title)
    for name, score in result.metrics.items():
        table.add_row(
            name,
            f"{score.mean:.4f}",
            f"{score.std:.4f}" if len(score.values) > 1 else "-",
            str(len(score.values)),
            "lower" if Metric.parse(name).lower_is_better else "higher",
            _baseline(result, name) or "-",
        )
    return table
