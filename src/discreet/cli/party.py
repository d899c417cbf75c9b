"""`discreet party`: take part in a federation with one's own data.

The audit of a party is here, too. It records a whole run at one party and replays it with one of its users
added, removed or replaced. With the same mechanism outputs the party must send the same bytes, and the
difference of its answers must cost no more than its own share of the noise promises.
`discreet audit MODEL --view report` runs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options.declared import AllowUnbudgeted, Columns
from discreet.cli.options.parsing import checked_name, parse_columns
from discreet.cli.output.printing import remark, show
from discreet.core.checks import BudgetError, PrivacyError

if TYPE_CHECKING:
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger.book import Ledger


def serve(
    folder: Annotated[Path, typer.Argument(help="The party's folder that `federation init` wrote.")],
    data: Annotated[str, typer.Option("--data", help="The party's ratings; they never leave this machine.")],
    ledger: Annotated[Path, typer.Option("--ledger", help="The party's ledger, which pays for the run.")],
    name: Annotated[str | None, typer.Option("--name", help="The data's name in the ledger.")] = None,
    columns: Columns = None,
    salt: Annotated[
        Path | None, typer.Option("--salt", help="The shared secret with which item ids were hashed.")
    ] = None,
    flower: Annotated[
        Path | None, typer.Option("--flower", help="The folder of Flower's programs. Default: beside ours.")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Do not start Flower's SuperNode; it is started elsewhere.")
    ] = False,
    allow_unbudgeted: AllowUnbudgeted = False,
    yes: Annotated[bool, typer.Option("--yes", help="Agree to the promise without a prompt.")] = False,
) -> None:
    """Show the run's promise and cost for the party's people; after consent, answer until stopped."""
    from discreet import recipes
    from discreet.data.inputs import open_data
    from discreet.federated.catalogs import read_salt, salted_data
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.protocols.estimator_sums import protocol_for
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
        remark(f"{daemon.name} answers at {daemon.path}. Stop with Ctrl-C; start again to resume.")
        daemon.run()


def _require_cover(book: Ledger, name: str, promise: Guarantee) -> None:
    """Refuse a run that the ledger's budget does not cover, before other members wait for this party."""
    left = book.remaining(name)
    paid = any(entry.guarantee.epsilon == promise.epsilon for entry in book.entries(name))
    if left is not None and left.epsilon < promise.epsilon and not paid:
        raise BudgetError(
            f"The run costs epsilon={promise.epsilon:g}, and {name!r} has {left.epsilon:g} left. "
            "Nothing was paid. Raise the budget with `discreet budget`."
        )
