"""Verbs that measure models: evaluate, compare, reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from discreet.commands.arguments import (
    AsJson,
    Columns,
    Data,
    DataOptions,
    Delta,
    DuplicatesText,
    Epsilon,
    Force,
    Implicit,
    Items,
    MaxPerUser,
    MetricText,
    ModelName,
    People,
    Repeat,
    Scale,
    Seed,
    Settings,
    SplitText,
    files_of_split,
    listed,
    make_estimator,
    numbers,
    refuse_without_ratings,
    remark_on_delta,
)
from discreet.commands.printing import emit, remark, show
from discreet.files import refuse_output


def evaluate(
    data: Data,
    epsilon: Epsilon,
    model: ModelName = "user-factorization",
    delta: Delta = None,
    settings: Settings = None,
    split: SplitText = "random:0.1",
    metric: MetricText = "rmse",
    repeat: Repeat = 1,
    seed: Seed = 0,
    columns: Columns = None,
    scale: Scale = None,
    items: Items = None,
    people: People = None,
    max_per_user: MaxPerUser = None,
    duplicates: DuplicatesText = "refuse",
    implicit: Implicit = False,
    as_json: AsJson = False,
) -> None:
    """Measure a model on held-out ratings. Scores are computed without noise: do not publish them."""
    estimator = make_estimator(model, epsilon, delta, settings, implicit=implicit)
    from discreet.data.opening import folder_of
    from discreet.evaluate.protocol import evaluate as measure

    options = DataOptions(columns, scale, max_per_user, items, people, duplicates, implicit)
    interactions = options.load(data)
    remark_on_delta([estimator], interactions.facts)
    result = measure(
        estimator,
        interactions,
        split=split,
        metrics=listed(metric),
        repeat=repeat,
        seed=seed,
        folder=folder_of(data),
    ).to_json()
    if as_json:
        emit(result)
        return
    table = Table("metric", "mean", "std", "runs", title=f"{model} on {data}, {split}")
    for name, value in result["metrics"].items():
        spread = f"{value['std']:.4f}" if value["runs"] > 1 else "-"
        table.add_row(name, f"{value['mean']:.4f}", spread, str(value["runs"]))
    show(
        table,
        result["guarantee"]["sentence"],
        "The scores themselves come from held-out ratings without noise: do not publish them.",
    )


def compare(
    data: Data,
    models: Annotated[str, typer.Option("--models", help="Comma-separated model names.")],
    epsilons: Annotated[str, typer.Option("--epsilons", help="Comma-separated; inf is no privacy.")],
    out: Annotated[Path, typer.Option("--out", help="Where to write the report (HTML).")],
    delta: Delta = None,
    split: SplitText = "random:0.1",
    metric: MetricText = "rmse",
    repeat: Repeat = 1,
    seed: Seed = 0,
    columns: Columns = None,
    scale: Scale = None,
    items: Items = None,
    people: People = None,
    max_per_user: MaxPerUser = None,
    duplicates: DuplicatesText = "refuse",
    implicit: Implicit = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Measure several models side by side on the same splits and write one page about it."""
    from discreet.data.opening import files_of, folder_of
    from discreet.evaluate.comparison import compare as measure
    from discreet.evaluate.report import KIND, is_report, require_libraries, write_report
    from discreet.recipes import estimators

    chosen = estimators(listed(models), numbers("--epsilons", epsilons), delta, implicit=implicit)
    if implicit:
        refuse_without_ratings(chosen)
    require_libraries()
    folder = folder_of(data)
    read = [*files_of(data), *files_of_split(split, folder), *([] if items is None else [items])]
    refuse_output(out, force=force, kind=KIND, is_ours=is_report, inputs=read)
    options = DataOptions(columns, scale, max_per_user, items, people, duplicates, implicit)
    interactions = options.load(data)
    remark_on_delta(chosen, interactions.facts)
    found = measure(
        chosen,
        interactions,
        split=split,
        metrics=listed(metric),
        repeat=repeat,
        seed=seed,
        folder=folder,
        announce=lambda one: remark(f"{one.name} at epsilon {one.epsilon:g}"),
    )
    write_report(found, out, title=f"Models on {data}", force=force)
    if as_json:
        emit({"report": str(out), "evaluations": [one.to_json() for one in found]})
    else:
        show(f"Written to {out}.")


def reproduce(
    paper: Annotated[str, typer.Argument(help="Which paper: a folder of `papers/`.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and smaller data: minutes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments and hold them against its printed numbers; needs a checkout."""
    from discreet.reproduce import reproduce as run

    rows = run(paper, quick=quick, say=remark)
    if as_json:
        emit(rows)
        return
    table = Table("where", "measure", "expected", "measured", "runs", "holds", title=paper)
    for row in rows:
        measured = "-" if row["measured"] is None else f"{row['measured']:.4g} ± {row['spread']:.2g}"
        expected = f"{row['rule']} {row['expected']:g} ± {row['tolerance']:g}"
        holds = "yes" if row["holds"] else "no"
        table.add_row(row["where"], row["measure"], expected, measured, str(row["runs"]), holds)
    show(table)
