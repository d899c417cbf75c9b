"""The command line: one verb, one library call.

People get rich output, programs get one JSON object with `--json`. The exit code is 0, 1 (it failed, one
clear sentence on standard error) or 2 (the arguments could not be understood).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from discreet.arguments import (
    AsJson,
    Columns,
    Data,
    Delta,
    Epsilon,
    Force,
    MaxPerUser,
    MetricText,
    ModelName,
    Repeat,
    Scale,
    Seed,
    Settings,
    SplitText,
    listed,
    load_data,
    make_estimator,
    numbers,
    parse_columns,
    refuse_unwritable,
)
from discreet.checks import DiscreetError, FileError

app = typer.Typer(
    name="discreet",
    help="Recommendations that keep a secret: learned with a proven differential-privacy promise.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> None:
    """Run the command line; a problem the user can mend is one sentence and exit code 1."""
    try:
        app()
    except DiscreetError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(
            f"[bold red]discreet:[/] {escape(str(error))}"
        )
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Run the main job on the embedded data: fit, label, recommend, compare. No download."""
    from discreet import demo as tour

    result = tour.run()
    emit(result.to_json()) if as_json else tour.show(result, Console())


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the models with what they protect, from whom, and where they come from."""
    from discreet.recipes import describe_models

    rows = describe_models()
    if as_json:
        emit(rows)
        return
    table = Table("model", "protects", "against", "feedback", "what it does")
    for row in rows:
        table.add_row(row["name"], row["unit"], row["trust"], row["feedback"], row["summary"])
    Console().print(table)


@app.command()
def datasets(
    action: Annotated[str | None, typer.Argument(help="`get` to fetch a dataset.")] = None,
    name: Annotated[str | None, typer.Argument(help="The dataset to get.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the known datasets, or `get NAME` to fetch one into the cache."""
    from discreet.data import catalog

    if action is None:
        rows = catalog.describe()
        if as_json:
            emit(rows)
            return
        table = Table("dataset", "users", "items", "ratings", "scale", "here")
        table.columns[0].no_wrap = True
        for row in rows:
            counts = (f"{row[key]:,}" for key in ("users", "items", "ratings"))
            here = row["here"] if row["here"] in ("no", "built in") else "yes"
            table.add_row(row["name"], *counts, row["scale"], here)
        Console().print(table)
        Console().print("`discreet datasets get NAME` fetches one and shows its terms.", highlight=False)
        return
    if action != "get" or name is None:
        raise typer.BadParameter("say `discreet datasets` or `discreet datasets get NAME`.")
    from discreet.models.progress import terminal_progress

    with terminal_progress(None) as progress:
        path = catalog.get(name, progress=progress)
    if as_json:
        emit({"name": name, "path": str(path)})
    else:
        Console().print(f"{name} is at {path}\nTerms: {catalog.DATASETS[name].terms}", highlight=False)


@app.command()
def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.")],
    epsilon: Epsilon,
    model: ModelName = "user-factorization",
    delta: Delta = None,
    settings: Settings = None,
    ledger: Annotated[Path | None, typer.Option("--ledger", help="Pay from this ledger file.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="The data's name in the ledger.")] = None,
    columns: Columns = None,
    scale: Scale = None,
    max_per_user: MaxPerUser = None,
    force: Force = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also show what the fit decided, and from what.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model and write it with its label."""
    estimator = make_estimator(model, epsilon, delta, settings)
    refuse_unwritable(out, force=force)
    interactions = load_data(data, columns, scale, max_per_user, name)
    from discreet.privacy.ledger import Ledger

    fitted = estimator.fit(interactions, ledger=None if ledger is None else Ledger.open(ledger))
    fitted.save(out, force=force)
    decisions = fitted.scorer.explain() if explain else {}
    if as_json:
        report = {"model": model, "file": str(out), "guarantee": fitted.guarantee.to_json()}
        emit({**report, "decisions": decisions} if explain else report)
        return
    console = Console()
    console.print(fitted.guarantee.label(f"Privacy facts: {model}"))
    if explain:
        table = Table("decision", "value", title="From public constants and released numbers only")
        for what, value in decisions.items():
            table.add_row(what, str(value))
        console.print(table)
    console.print(f"Written to {out}. {fitted.guarantee.sentence()}", highlight=False)


@app.command()
def recommend(
    file: Annotated[Path, typer.Argument(help="A model that `discreet fit` wrote.")],
    history: Annotated[Path, typer.Option("--history", help="Ratings of the people to recommend to.")],
    user: Annotated[
        str | None, typer.Option("--user", help="Whose row of the history; needed if there are several.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many items.")] = 10,
    columns: Columns = None,
    include_seen: Annotated[bool, typer.Option("--include-seen", help="Also items of the history.")] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend to one person from that person's own history."""
    from discreet.data.sources import read_history
    from discreet.models.storage import load

    fitted = load(file)
    person = read_history(
        history, user=user, columns=parse_columns(columns), implicit=fitted.facts.low == fitted.facts.high
    )
    best = fitted.recommend(person, k, exclude_seen=not include_seen)
    if as_json:
        emit({"recommendations": [{"item": item, "score": score} for item, score in best]})
        return
    table = Table("#", "item", "score")
    for rank, (item, score) in enumerate(best, start=1):
        table.add_row(str(rank), str(item), f"{score:.3f}")
    Console().print(table)


@app.command()
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
    max_per_user: MaxPerUser = None,
    as_json: AsJson = False,
) -> None:
    """Measure a model on held-out ratings; nothing is released."""
    estimator = make_estimator(model, epsilon, delta, settings)
    from discreet.data.sources import folder_of
    from discreet.evaluate.protocol import evaluate as measure

    result = measure(
        estimator,
        load_data(data, columns, scale, max_per_user, None),
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
        table.add_row(name, f"{value['mean']:.4f}", f"{value['std']:.4f}", str(value["runs"]))
    Console().print(table)
    Console().print(result["guarantee"]["sentence"], highlight=False)


@app.command()
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
    max_per_user: MaxPerUser = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Measure several models side by side on the same splits and write one page about it."""
    from discreet.data.sources import folder_of
    from discreet.evaluate.comparison import compare as measure
    from discreet.evaluate.report import write_report
    from discreet.recipes import estimators

    chosen = estimators(listed(models), numbers("--epsilons", epsilons), delta)
    refuse_unwritable(out, force=force)
    console = Console(stderr=True)
    found = measure(
        chosen,
        load_data(data, columns, scale, max_per_user, None),
        split=split,
        metrics=listed(metric),
        repeat=repeat,
        seed=seed,
        folder=folder_of(data),
        announce=lambda one: console.print(f"{one.name} at epsilon {one.epsilon:g}", highlight=False),
    )
    write_report(found, out, title=f"Models on {data}", force=force)
    if as_json:
        emit([one.to_json() for one in found])
    else:
        Console().print(f"Written to {out}.", highlight=False)


@app.command()
def label(file: Annotated[Path, typer.Argument(help="A model file.")], as_json: AsJson = False) -> None:
    """Print what a model promises, and every array it holds with why it may be published."""
    from discreet.models.storage import read_label
    from discreet.privacy.guarantee import Guarantee

    content = read_label(file)
    if as_json:
        emit(content)
        return
    console = Console()
    console.print(Guarantee.from_json(content["guarantee"]).label(f"Privacy facts: {content['name']}"))
    table = Table("array", "where it comes from", title="What is inside")
    for name, origin in content["provenance"].items():
        table.add_row(name, origin)
    console.print(table)


@app.command()
def budget(file: Annotated[Path, typer.Argument(help="A ledger file.")], as_json: AsJson = False) -> None:
    """Print what was spent from a ledger, on what, and what is left."""
    from discreet.privacy.ledger import Ledger, report, report_json

    if not file.exists():
        raise FileError(f"{file} does not exist. A ledger is made by `discreet fit --ledger`.")
    with Ledger.open(file, read_only=True) as book:
        emit(report_json(book)) if as_json else Console().print(report(book))


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="Which paper: a folder of `papers/`.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and smaller data: minutes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments and hold them against its printed numbers; needs a checkout."""
    from discreet.reproduce import reproduce as run

    console = Console(stderr=True)
    rows = run(paper, quick=quick, say=lambda text: console.print(text, highlight=False))
    if as_json:
        emit(rows)
        return
    table = Table("where", "measure", "expected", "measured", "runs", "holds", title=paper)
    for row in rows:
        measured = "-" if row["measured"] is None else f"{row['measured']:.4g} ± {row['spread']:.2g}"
        expected = f"{row['rule']} {row['expected']:g} ± {row['tolerance']:g}"
        table.add_row(
            row["where"],
            row["measure"],
            expected,
            measured,
            str(row["runs"]),
            "yes" if row["holds"] else "no",
        )
    Console().print(table)


def emit(content: Any) -> None:
    """Print one JSON object and nothing else."""
    sys.stdout.write(json.dumps(content) + "\n")
