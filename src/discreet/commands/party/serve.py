"""`discreet party serve`: answer a federation's questions about one's own people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.checks import BudgetError, PrivacyError
from discreet.commands.options.declared import AllowUnbudgeted, Columns
from discreet.commands.options.parsing import checked_name, parse_columns
from discreet.commands.output.printing import remark, show

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger.book import Ledger


def serve(
    folder: Annotated[Path, typer.Argument(help="The party's folder that `federation init` wrote.")],
    data: Annotated[str, typer.Option("--data", help="The party's ratings; they never leave.")],
    ledger: Annotated[Path, typer.Option("--ledger", help="The party's ledger, which pays for the run.")],
    name: Annotated[str | None, typer.Option("--name", help="The data's name in the ledger.")] = None,
    columns: Columns = None,
    salt: Annotated[
        Path | None, typer.Option("--salt", help="The secret with which the parties' items were named.")
    ] = None,
    flower: Annotated[
        Path | None, typer.Option("--flower", help="The folder of Flower's programs, if not beside ours.")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Do not start Flower's SuperNode; somebody else does.")
    ] = False,
    allow_unbudgeted: AllowUnbudgeted = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to the promise without being asked.")] = False,
) -> None:
    """Show what the run costs one's people and, once agreed to, answer until stopped."""
    from discreet import recipes
    from discreet.data.opening import open_data
    from discreet.federated.catalogs import read_salt, salted_data
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.protocols.choosing import protocol_for
    from discreet.federated.serving.party import PartyDaemon
    from discreet.privacy.ledger.book import Ledger

    agreement = Agreement.read(folder)
    estimator = recipes.from_toml(agreement.recipe)
    protocol = protocol_for(estimator, agreement.facts, agreement.noise)
    facts, implicit = agreement.facts, estimator.feedback == "implicit"
    people = open_data(
        data,
        columns=parse_columns(columns),
        name=checked_name(name),
        implicit=implicit,
        low=facts.low,
        high=facts.high,
        step=facts.step,
        max_per_user=facts.max_per_user,
        catalog=None if salt is not None else agreement.catalog,
    )
    if salt is not None:
        people = salted_data(people, read_salt(salt), agreement.catalog, facts)
    book = Ledger.open(ledger, allow_unbudgeted=allow_unbudgeted)
    book.refuse_unbudgeted(people.name)
    promise = protocol.promise(facts)
    show(promise.label(f"What this run promises {people.name}'s people, and costs them"))
    _require_cover(book, people.name, promise)
    if not yes and not typer.confirm(f"Take part in run {agreement.run!r}, paid from {ledger}?"):
        raise PrivacyError("Nothing was answered and nothing was paid.")
    with PartyDaemon(folder, agreement, protocol, people, book) as daemon:
        if not alone:
            daemon.start_flower(flower)
        remark(f"{daemon.name} answers at {daemon.path}. Stop with Ctrl-C; started again, it goes on.")
        daemon.run()


def _require_cover(book: Ledger, name: str, promise: Guarantee) -> None:
    """Refuse a run that the ledger's budget does not cover, before anybody waits for it."""
    left = book.remaining(name)
    paid = any(entry.guarantee.epsilon == promise.epsilon for entry in book.entries(name))
    if left is not None and left.epsilon < promise.epsilon and not paid:
        raise BudgetError(
            f"The run costs epsilon={promise.epsilon:g}, and {name!r} has {left.epsilon:g} left. "
            "Nothing was paid."
        )
