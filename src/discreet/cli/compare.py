"""`discreet compare`: evaluate several models on the same splits, and write a report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.errors import OptionNeeds
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
from discreet.cli.options.parsing import complete_models, listed, numbers, parse_columns
from discreet.cli.output.printing import emit, remark, remark_on_delta, show
from discreet.cli.private_scores import measure_privately
from discreet.core.files import refuse_output

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.evaluation.comparison import Comparison
    from discreet.models.estimator import Estimator


def compare(
    data: Data,
    *,
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            help="Models, comma-separated. Settings may follow: user-factorization:feedback=implicit. "
            "Default: user-factorization and its simplest alternative.",
            autocompletion=complete_models,
        ),
    ] = None,
    epsilons: Annotated[
        str | None,
        typer.Option(
            "--epsilons", help="Values of epsilon, comma-separated; inf means no privacy. Default: 1,5,inf."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to write a report (HTML). Default: no report.")
    ] = None,
    measuring: Measuring,
    reading: Reading,
    privately: Privately,
    paying: Paying,
    delta: Delta = None,
    purpose: Purpose = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", help="Save results to this file as they are measured, and skip those it already has."
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Compare several models on the same held-out part of the data, in a table and on an HTML page."""
    chosen = _chosen(models, epsilons, delta, purpose, reading, private=privately.private)
    if privately.asked(paying):
        measure_privately(chosen, data, measuring, reading, privately, paying, as_json=as_json)
        if out is not None:
            remark("discreet: private scores are printed; --out was not used.")
        return
    from discreet.data.inputs import folder_of

    folder = folder_of(data, reading.layout)
    if out is not None:
        _refuse_report(out, data, measuring, reading, folder, force=force)
    interactions = reading.load(data)
    remark_on_delta(chosen, interactions.facts)
    found = _measured(chosen, interactions, measuring, reading, folder, resume)
    timed = interactions.times is not None
    metrics = dict.fromkeys(name for one in found for name in one.metrics)
    held_out = measuring.plan(metrics, interactions).held_out(timed=timed)
    hints = _hints(chosen, found, measuring, timed=timed)
    if out is not None:
        from discreet.evaluation.report import write_report

        said = [f"Held out: {held_out}.", *hints]
        write_report(found, out, title=f"Models on {data}", remarks=said, force=force)
    if as_json:
        emit(
            {
                "report": None if out is None else str(out),
                "evaluations": [one.to_json() for one in found],
            }
        )
    else:
        _show(found, data, held_out, out, hints)


_USUAL_EPSILONS = "1,5,inf"
# The first models of the README, by feedback.
_USUAL_MODELS = {False: "user-factorization,biases", True: "user-factorization,popularity"}


def _chosen(
    models: str | None,
    epsilons: str | None,
    delta: float | None,
    purpose: str | None,
    reading: Reading,
    *,
    private: bool,
) -> list[Estimator]:
    """Return every model at every epsilon; raise for options that don't go together."""
    from discreet.recipes import estimators

    levels = numbers("--epsilons", ("1" if private else _USUAL_EPSILONS) if epsilons is None else epsilons)
    if private and len(levels) != 1:
        raise OptionNeeds(
            options=("--private",),
            needs="one epsilon, as in --epsilons 1",
            why="all models are measured together at one cost",
        )
    lists = reading.implicit or purpose == "lists"
    named = listed(_USUAL_MODELS[lists] if models is None else models)
    chosen = estimators(named, levels, delta, implicit=reading.implicit, purpose=purpose)
    if reading.implicit:
        refuse_without_ratings(chosen)
    return chosen


def _refuse_report(
    out: Path, data: str, measuring: Measuring, reading: Reading, folder: Path | None, *, force: bool
) -> None:
    """Raise, before anything is measured, for a page that would overwrite something else."""
    from discreet.data.inputs import files_of
    from discreet.evaluation.report import KIND
    from discreet.report.pages import is_page

    read = [*files_of(data, reading.layout), *measuring.files(folder), *reading.files()]
    refuse_output(out, force=force, kind=KIND, is_ours=partial(is_page, kind=KIND), inputs=read)


def _measured(
    chosen: Sequence[Estimator],
    data: Interactions,
    measuring: Measuring,
    reading: Reading,
    folder: Path | None,
    resume: Path | None,
) -> Comparison:
    from discreet.core.progress import terminal_progress
    from discreet.evaluation.comparison import compare as measure

    with terminal_progress(None) as report:

        def announce(one: Estimator) -> None:
            remark(_progress(one, chosen))
            report("compare models", _place(one, chosen) - 1, len(chosen))

        return measure(
            chosen,
            data,
            split=measuring.split,
            metrics=measuring.metrics,
            repeat=measuring.repeat,
            seed=measuring.seed,
            item_features=measuring.item_features,
            folder=folder,
            columns=parse_columns(reading.columns),
            announce=announce,
            keep=resume,
        )


def _hints(chosen: Sequence[Estimator], found: Comparison, measuring: Measuring, *, timed: bool) -> list[str]:
    """Return remarks that the scores don't show: shared budgets, and rows that look alike."""
    from discreet.cli.evaluate import ALSO_LISTS

    metrics = dict.fromkeys(name for one in found for name in one.metrics)
    said = measuring.hints(metrics, timed=timed)
    shared = [one.name for one in chosen if getattr(one, "purpose", "") == "both"]
    if shared and list(metrics) == ["rmse"]:
        said.append(f"{shared[0]} {ALSO_LISTS}")
    if any(one.name == "popularity" for one in chosen):
        said.append(
            "The model popularity counts every user equally, however long the history, even at epsilon inf. "
            "The baseline popularity counts every interaction. So the two differ even without noise."
        )
    return said


def _show(found: Comparison, data: str, held_out: str, out: Path | None, hints: Sequence[str]) -> None:
    """Print the scores, and below them what privacy costs by each metric."""
    from discreet.cli.output.tables import comparison_table
    from discreet.evaluation.cost_of_privacy import cost_of_privacy, ran_once

    metrics = dict.fromkeys(name for one in found for name in one.metrics)
    said = [f"{name}: {' '.join(cost_of_privacy(found, name))}" for name in metrics]
    luck = [ran_once(found)] if ran_once(found) else []
    page = "--out FILE.html writes a page with charts." if out is None else f"Written to {out}."
    title = f"Models on {data}; held out: {held_out}"
    show(comparison_table(found, title), *said, *luck, *hints)
    show(f"{page} The scores have no noise: do not publish them.")


def _progress(one: Estimator, chosen: Sequence[Estimator]) -> str:
    """Return the position of the current fit, with its settings."""
    return f"{_place(one, chosen)} of {len(chosen)}: {one.named} at epsilon {one.epsilon:g}"


def _place(one: Estimator, chosen: Sequence[Estimator]) -> int:
    return next(number for number, other in enumerate(chosen, start=1) if other is one)
