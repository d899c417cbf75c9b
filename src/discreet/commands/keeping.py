"""Verbs that show what there is: demo, models, datasets, and the books of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from discreet.checks import FileError, ParameterError
from discreet.commands.arguments import AsJson, checked_name
from discreet.commands.printing import Terminal, answering, emit, show


def demo(as_json: AsJson = False) -> None:
    """Run the main job on the embedded data: fit, label, recommend, compare. No download."""
    from discreet import demo as tour

    result = tour.run()
    if as_json:
        emit(result.to_json())
    else:
        with answering():
            tour.show(result, Terminal())


def models(as_json: AsJson = False) -> None:
    """List the models with what they protect, from whom, and where they come from."""
    from discreet.recipes import describe_models

    rows = describe_models()
    if as_json:
        emit({"models": rows})
        return
    table = Table("model", "protects", "against", "learns from", "what it does")
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(row["name"], row["unit"], row["trust"], row["feedback"], row["summary"])
    show(table)


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
            emit({"datasets": rows})
        else:
            _show_datasets(rows)
        return
    if action != "get" or name is None:
        raise typer.BadParameter("say `discreet datasets` or `discreet datasets get NAME`.")
    from discreet.models.progress import terminal_progress

    with terminal_progress(None) as progress:
        path = catalog.get(name, progress=progress)
    if as_json:
        emit({"name": name, "path": str(path)})
    else:
        terms = catalog.DATASETS[name].terms
        show(f"{name} is at {path}\nTerms: {terms}")


def _show_datasets(rows: list[dict[str, object]]) -> None:
    table = Table("dataset", "users", "items", "ratings", "scale", "here")
    for column in (0, 3):
        table.columns[column].no_wrap = True
    for row in rows:
        counts = (f"{row[key]:,}" for key in ("users", "items", "ratings"))
        here = str(row["here"]) if row["here"] in ("no", "built in") else "yes"
        table.add_row(str(row["name"]), *counts, str(row["scale"]), here)
    show(table, "`discreet datasets get NAME` fetches one and shows its terms.")


def budget(
    file: Annotated[Path, typer.Argument(help="A ledger file.")],
    name: Annotated[str | None, typer.Option("--name", help="Whose budget to set: the data's name.")] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="Set a budget: at most this much a person."),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="The budget's delta.")] = 1e-5,
    reason: Annotated[str, typer.Option("--reason", help="Why a budget is raised; it is kept.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print what was spent from a ledger, on what, and what is left; with --epsilon, set a budget first."""
    from discreet.privacy.ledger import Ledger, report, report_json

    name = checked_name(name)
    if epsilon is not None:
        if name is None:
            raise ParameterError("--epsilon sets the budget of one data set; say which with --name.")
        _set_budget(file, name, epsilon, delta, reason)
    if not file.exists():
        raise FileError(
            f"{file} does not exist. A ledger is made by `discreet fit --ledger` or by --epsilon here."
        )
    with Ledger.open(file, read_only=True) as book:
        if as_json:
            emit(report_json(book))
        else:
            show(report(book))


def _set_budget(file: Path, name: str, epsilon: float, delta: float, reason: str) -> None:
    """Set a budget for a person's whole history, the frame of the models for a trusted data holder."""
    from discreet.privacy.guarantee import Basis, Guarantee, Neighbours, Trust, Unit
    from discreet.privacy.ledger import Ledger

    allowed = Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=Unit.USER,
        neighbours=Neighbours.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        basis=Basis.PROVED,
    )
    with Ledger.open(file) as book:
        book.set_budget(name, allowed, reason=reason)
