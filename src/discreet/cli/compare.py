"""`discreet compare`: evaluate several models on the same splits, and write a report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options.declared import (
    AsJson,
    Data,
    Delta,
    Force,
    Paying,
    Purpose,
    Reading,
    refuse_without_ratings,
)
from discreet.cli.options.measuring import Measuring, Privately
from discreet.cli.options.parsing import complete_models, listed, numbers
from discreet.cli.output.printing import emit, remark, remark_on_delta, show
from discreet.cli.private_scores import measure_privately
from discreet.core.files import refuse_output

if TYPE_CHECKING:
    from discreet.models.estimator import Estimator


def compare(
    data: Data,
    models: Annotated[
        str,
        typer.Option(
            "--models",
            help="Models, comma-separated. Settings may follow: user-factorization:feedback=implicit.",
            autocompletion=complete_models,
        ),
    ],
    epsilons: Annotated[
        str, typer.Option("--epsilons", help="Values of epsilon, comma-separated; inf means no privacy.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the report (HTML).")],
    measuring: Measuring,
    reading: Reading,
    privately: Privately,
    paying: Paying,
    delta: Delta = None,
    purpose: Purpose = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", help="Save results to this file as they come, and skip those it already has."
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Compare several models on the same splits and write an HTML report."""
    from discreet.core.pages import is_page
    from discreet.data.inputs import files_of, folder_of
    from discreet.evaluation.comparison import compare as measure
    from discreet.evaluation.report import KIND, write_report
    from discreet.recipes import estimators

    levels = numbers("--epsilons", epsilons)
    chosen = estimators(listed(models), levels, delta, implicit=reading.implicit, purpose=purpose)
    if reading.implicit:
        refuse_without_ratings(chosen)
    if privately.asked(paying):
        measure_privately(chosen, data, measuring, reading, privately, paying, as_json=as_json)
        return
    folder = folder_of(data, reading.layout)
    read = [*files_of(data, reading.layout), *measuring.files(folder), *reading.files()]
    refuse_output(out, force=force, kind=KIND, is_ours=partial(is_page, kind=KIND), inputs=read)
    interactions = reading.load(data)
    remark_on_delta(chosen, interactions.facts)
    found = measure(
        chosen,
        interactions,
        split=measuring.split,
        metrics=measuring.metrics,
        repeat=measuring.repeat,
        seed=measuring.seed,
        item_features=measuring.item_features,
        folder=folder,
        announce=lambda one: remark(_progress(one, chosen)),
        keep=resume,
    )
    write_report(found, out, title=f"Models on {data}", force=force)
    if as_json:
        emit({"report": str(out), "evaluations": [one.to_json() for one in found]})
    else:
        from discreet.cli.output.tables import comparison_table
        from discreet.evaluation.cost_of_privacy import cost_of_privacy

        metrics = dict.fromkeys(name for one in found for name in one.metrics)
        said = [f"{name}: {' '.join(cost_of_privacy(found, name))}" for name in metrics]
        last = f"Written to {out}. The scores have no noise: do not publish them."
        show(comparison_table(found), *said, last)


def _progress(one: Estimator, chosen: Sequence[Estimator]) -> str:
    """Return which of the fits comes now, with its settings."""
    place = next(number for number, other in enumerate(chosen, start=1) if other is one)
    return f"{place} of {len(chosen)}: {one.named} at epsilon {one.epsilon:g}"
