"""Verbs that show what there is: demo, models, datasets, and the books of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from discreet.checks import FileError, ParameterError
from discreet.commands.arguments import AsJson, checked_name, parse_number
from discreet.commands.printing import Terminal, answering, emit, show

if TYPE_CHECKING:
    from discreet.privacy.ledger.book import Frame


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
    from discreet.data.datasets import catalog

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
    name: Annotated[
        str | None, typer.Option("--name", help="The data's name: show it alone, or set its budget.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", help="Set a budget: at most this much.", parser=parse_number, metavar="FLOAT"
        ),
    ] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="The budget's delta; default: 1e-5.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Count what this model promises (one rating or a whole history, and against whom); "
            "default: as before, at first a whole history with a trusted data holder.",
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why a budget is raised; it is kept.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what was spent from a ledger, on what, and what is left; with --epsilon, set a budget first."""
    from discreet.privacy.ledger.book import Ledger, report, report_json

    name = checked_name(name)
    if epsilon is not None:
        if name is None:
            raise ParameterError("--epsilon sets the budget of one data set; say which with --name.")
        _set_budget(file, name, epsilon, 1e-5 if delta is None else delta, model, reason or "")
    elif not (delta is None and model is None and reason is None):
        raise ParameterError("--delta, --for and --reason are about setting a budget; add its --epsilon.")
    if not file.exists():
        raise FileError(
            f"{file} does not exist. A ledger is made by `discreet fit --ledger` or by --epsilon here."
        )
    with Ledger.open(file, read_only=True) as book:
        if name is not None and name not in book.datasets():
            known = ", ".join(map(repr, book.datasets())) or "nothing at all"
            raise ParameterError(f"{file} has no spending and no budget of {name!r}. It has {known}.")
        if as_json:
            emit(report_json(book, name))
        else:
            show(report(book, name))


def _set_budget(file: Path, name: str, epsilon: float, delta: float, model: str | None, reason: str) -> None:
    """Set a budget in the frame of a model, else in the one it had, else for a person's whole history."""
    from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
    from discreet.privacy.ledger.book import Ledger

    frame = None if model is None else _frame_of(model)
    with Ledger.open(file) as book:
        current = book.budget(name)
        if frame is None and current is not None:
            frame = current.guarantee.frame
        unit, neighbors, trust = frame or (Unit.USER, Neighbors.ADD_OR_REMOVE, Trust.JOINT)
        allowed = Guarantee(
            epsilon=epsilon, delta=delta, unit=unit, neighbors=neighbors, trust=trust, basis=Basis.PROVED
        )
        book.set_budget(name, allowed, reason=reason)


def _frame_of(model: str) -> Frame:
    from discreet.recipes import example_promise, is_never_private

    if is_never_private(model):
        raise ParameterError(f"{model} promises nothing, so no budget can count it. Name a private model.")
    return example_promise(model).frame
