"""`discreet budget`: what a ledger says, and setting a limit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.checks import FileError, ParameterError
from discreet.commands.options.declared import AsJson
from discreet.commands.options.parsing import checked_name, parse_number
from discreet.commands.output.printing import emit, show

if TYPE_CHECKING:
    from discreet.privacy.ledger.book import Frame


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
    from discreet.commands.output.ledger import ledger_tables
    from discreet.privacy.ledger.book import Ledger, report_json

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
            show(ledger_tables(book, name))


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
