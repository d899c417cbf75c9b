"""`discreet budget`: what a ledger says, and setting a limit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options.declared import AsJson
from discreet.cli.options.parsing import checked_name, parse_number
from discreet.cli.output.printing import emit, remark, show
from discreet.core.checks import FileError, ParameterError, one_of, require

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
    account: Annotated[
        str | None,
        typer.Option(
            "--account",
            help="How releases add up: adding (default), gaussian or concentrated; the first budget decides.",
        ),
    ] = None,
    renews: Annotated[
        str | None,
        typer.Option("--renews", help="Begin every calendar period anew: yearly, quarterly or monthly."),
    ] = None,
    renewed: Annotated[
        str | None,
        typer.Option("--start-anew", help="Begin anew now, under this assumption; it goes on every label."),
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Also draw the year into this page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print what was spent from a ledger, on what, and what is left; with --epsilon, set a budget first."""
    from discreet.cli.output.ledger import ledger_tables
    from discreet.privacy.ledger.book import Ledger, report_json

    name = checked_name(name)
    if epsilon is not None:
        if name is None:
            raise ParameterError("--epsilon sets the budget of one data set; say which with --name.")
        rules = _rules(account, renews, renewed)
        _set_budget(file, name, epsilon, 1e-5 if delta is None else delta, model, reason or "", rules)
    elif any(value is not None for value in (delta, model, reason, account, renews, renewed)):
        raise ParameterError(
            "--delta, --for, --reason, --account, --renews and --start-anew are about setting a budget; "
            "add its --epsilon."
        )
    if not file.exists():
        raise FileError(
            f"{file} does not exist. A ledger is made by `discreet fit --ledger` or by --epsilon here."
        )
    with Ledger.open(file, read_only=True) as book:
        if name is not None and name not in book.datasets():
            known = ", ".join(map(repr, book.datasets())) or "nothing at all"
            raise ParameterError(f"{file} has no spending and no budget of {name!r}. It has {known}.")
        if page is not None:
            from discreet.cli.output.ledger import write_ledger_page

            write_ledger_page(book, name, page)
        if as_json:
            emit(report_json(book, name))
        else:
            show(ledger_tables(book, name))


def _rules(account: str | None, renews: str | None, renewed: str | None) -> dict[str, Any]:
    """Return what a budget is told beside its size; only what was given."""
    from discreet.privacy.ledger.book import Account, Period

    rules: dict[str, Any] = {}
    if account is not None:
        one_of("--account", account, [kind.value for kind in Account])
        rules["account"] = Account(account)
    if renews is not None:
        one_of("--renews", renews, [period.value for period in Period])
        rules["renews"] = Period(renews)
    if renewed is not None:
        require(bool(renewed.strip()), "--start-anew", renewed, "must say under which assumption")
        rules["renewed"] = renewed
    return rules


def _set_budget(
    file: Path,
    name: str,
    epsilon: float,
    delta: float,
    model: str | None,
    reason: str,
    rules: dict[str, Any],
) -> None:
    """Set a budget in the frame of a model, else in the one it had, else for a person's whole history."""
    from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
    from discreet.privacy.ledger.book import Ledger

    definition = None if model is None else _definition_of(model)
    with Ledger.open(file) as book:
        current = book.budget(name)
        if definition is None and current is not None:
            definition = current.guarantee.definition
        unit, neighbors, trust = definition or (Unit.USER, Neighbors.ADD_OR_REMOVE, Trust.JOINT)
        allowed = Guarantee(
            epsilon=epsilon, delta=delta, unit=unit, neighbors=neighbors, trust=trust, basis=Basis.PROVED
        )
        book.set_budget(name, allowed, reason=reason, **rules)
        spent = book.balance(name)
        if spent is not None and spent.share > 1:
            remark(f"discreet: {name!r} has spent more than this budget already; nothing more will be paid.")


def _definition_of(model: str) -> Frame:
    from discreet.recipes import example_promise, is_never_private

    if is_never_private(model):
        raise ParameterError(f"{model} promises nothing, so no budget can count it. Name a private model.")
    return example_promise(model).definition
