"""`discreet evaluate`: measure one model on held-out ratings."""

from __future__ import annotations

from rich.table import Table

from discreet.cli.options.declared import AsJson, Data, Learning, Paying, Reading
from discreet.cli.options.measuring import Measuring, Privately
from discreet.cli.options.sources import On, opened
from discreet.cli.output.printing import emit, remark_on_delta, show
from discreet.cli.private_scores import measure_privately


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
    """Evaluate a model on held-out ratings. Do not publish scores without --private: they have no noise."""
    estimator = learning.estimator(implicit=reading.implicit)
    if privately.asked(paying):
        measure_privately([estimator], data, measuring, reading, privately, paying, on, as_json=as_json)
        return
    from discreet.core.progress import terminal_progress
    from discreet.data.inputs import folder_of
    from discreet.distributed.shards import is_shard_folder
    from discreet.evaluation.protocol import evaluate as measure

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
            folder=None if is_shard_folder(data) else folder_of(data, reading.layout),
        )
    if as_json:
        emit(result.to_json())
        return
    table = Table("metric", "mean", "std", "runs", title=f"{estimator.name} on {data}, {measuring.split}")
    for name, score in result.metrics.items():
        spread = f"{score.std:.4f}" if len(score.values) > 1 else "-"
        table.add_row(name, f"{score.mean:.4f}", spread, str(len(score.values)))
    show(
        table,
        f"The noise of these fits was {result.guarantee.short()}",
        "The scores are computed from held-out ratings without noise: do not publish them.",
    )
