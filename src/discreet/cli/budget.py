"""`discreet budget`: show a privacy ledger, and set budgets in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from discreet.cli.errors import DatasetNotInLedger, LedgerMissing, NoPrivacyBudget, OptionEmpty, OptionNeeds
from discreet.cli.options.declared import AsJson, Force
from discreet.cli.options.parsing import checked_name, group, parse_number
from discreet.cli.output.printing import emit, remark, show
from discreet.core.checks import one_of

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee


Name = Annotated[str | None, typer.Option("--name", help="The dataset to show, or to set a budget for.")]
LedgerFile = Annotated[Path, typer.Argument(help="A ledger file.")]
Page = Annotated[Path | None, typer.Option("--html", help="Also write the ledger to this HTML page.")]


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WantedBudget:
    """The budget to set."""

    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", help="Set the budget to this epsilon.", parser=parse_number, metavar="FLOAT"
        ),
    ] = None
    delta: Annotated[float | None, typer.Option("--delta", help="The budget's delta. Default: 1e-5.")] = None
    model: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Set the budget for this model's privacy definition (unit, neighbors, trust). Default: that "
            "of the current budget, or else a user's whole history with a trusted data owner.",
        ),
    ] = None
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why the budget is raised; the ledger keeps it.")
    ] = None
    account: Annotated[
        str | None,
        typer.Option(
            "--account",
            help="How releases compose: adding (default), gaussian or concentrated; set by the first budget.",
        ),
    ] = None
    renews: Annotated[
        str | None,
        typer.Option("--renews", help="Reset the spending every period: yearly, quarterly or monthly."),
    ] = None
    renewed: Annotated[
        str | None,
        typer.Option(
            "--start-anew",
            help="Reset the spending now, under this assumption. Every label will state it.",
        ),
    ] = None

    @property
    def stated(self) -> bool:
        """Return whether any option sets a budget."""
        return self != WantedBudget()


def show_ledger(
    file: LedgerFile, name: Name = None, page: Page = None, force: Force = False, as_json: AsJson = False
) -> None:
    """Show what a ledger has spent, on what, and what is left."""
    budget(file, WantedBudget(), name, page, force, as_json)


def set_budget(
    file: LedgerFile, wanted: WantedBudget, name: Name = None, force: Force = False, as_json: AsJson = False
) -> None:
    """Set the budget of a dataset, and show the ledger."""
    budget(file, wanted if wanted.stated else replace(wanted, reason=""), name, None, force, as_json)


def budget(
    file: LedgerFile,
    wanted: WantedBudget,
    name: Name = None,
    page: Page = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Show what a ledger has spent, on what, and what is left. With --epsilon, set a budget first."""
    from discreet.cli.output.ledger import PAGE, ledger_tables
    from discreet.privacy.ledger.book import Ledger, report_json
    from discreet.report.pages import refuse_page

    name = checked_name(name)
    if page is not None:
        refuse_page(page, kind=PAGE, force=force, inputs=[file])
    if wanted.epsilon is not None:
        if name is None:
            raise OptionNeeds(options=("--epsilon",), needs="--name", why="each budget is for one dataset")
        _set_budget(file, name, wanted.epsilon, wanted)
    elif wanted.stated:
        raise OptionNeeds(
            options=("--delta", "--for", "--reason", "--account", "--renews", "--start-anew"),
            needs="--epsilon",
            why="they set a budget",
        )
    if not file.exists():
        raise LedgerMissing(path=file)
    with Ledger.open(file, read_only=True) as book:
        if name is not None and name not in book.datasets():
            raise DatasetNotInLedger(path=file, name=name, known=tuple(book.datasets()))
        if page is not None:
            from discreet.cli.output.ledger import write_ledger_page

            write_ledger_page(book, name, page, force=force)
        if as_json:
            emit(report_json(book, name))
        else:
            show(ledger_tables(book, name), *([] if page is None else [f"Written to {page}."]))


def _rules(account: str | None, renews: str | None, renewed: str | None) -> dict[str, Any]:
    """Return the given rules of a budget other than its size."""
    from discreet.privacy.ledger.book import Account, Period

    rules: dict[str, Any] = {}
    if account is not None:
        one_of("--account", account, [kind.value for kind in Account])
        rules["account"] = Account(account)
    if renews is not None:
        one_of("--renews", renews, [period.value for period in Period])
        rules["renews"] = Period(renews)
    if renewed is not None:
        if not renewed.strip():
            raise OptionEmpty(option="--start-anew")
        rules["renewed"] = renewed
    return rules


def _set_budget(file: Path, name: str, epsilon: float, wanted: WantedBudget) -> None:
    """Set a budget with the privacy definition of a model, else as `Ledger.set_budget` chooses it."""
    from discreet.privacy.ledger.book import Ledger

    promise = None if wanted.model is None else _promise_of(wanted.model, epsilon, wanted.delta)
    size: dict[str, Any] = {"epsilon": epsilon, "delta": wanted.delta} if promise is None else {}
    rules = _rules(wanted.account, wanted.renews, wanted.renewed)
    with Ledger.open(file) as book:
        book.set_budget(name, promise, reason=wanted.reason or "", **size, **rules)
        spent = book.balance(name)
        if spent is not None and spent.share > 1:
            remark(
                f"discreet: {name!r} has already spent more than this budget, so further releases are "
                "rejected."
            )


def _promise_of(model: str, epsilon: float, delta: float | None) -> Guarantee:
    from discreet.privacy.guarantee import Basis, Guarantee
    from discreet.privacy.ledger.records import USUAL_DELTA
    from discreet.recipes import example_promise, is_never_private

    if is_never_private(model):
        raise NoPrivacyBudget(model=model)
    unit, neighbors, trust = example_promise(model).definition
    return Guarantee(
        epsilon=epsilon,
        delta=USUAL_DELTA if delta is None else delta,
        unit=unit,
        neighbors=neighbors,
        trust=trust,
        basis=Basis.PROVED,
    )
