"""`discreet party`: take part in a federation with your own data.

The audit of a party is here, too. It records a whole run at one party and replays it with one of its users
added, removed, or replaced. If mechanism outputs are the same, the party must send the same bytes. The
difference of its answers must cost no more than the guarantee of its own share of the noise.
`discreet model audit MODEL --view report` runs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from discreet.cli.errors import OptionDoesNotApply, OptionNeeds, PartyDeclined, RunTooExpensive
from discreet.cli.options.declared import AllowUnbudgeted, Columns, Duplicates, SchemaFile, TextFile
from discreet.cli.options.parsing import checked_name, parse_columns
from discreet.cli.output.printing import remark, show

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.serving.party import Joining
    from discreet.follow import FollowAgreement
    from discreet.privacy.assumptions import Assumption
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger.book import Ledger


def serve(
    folder: Annotated[Path, typer.Argument(help="The party's folder that `federation init` wrote.")],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            help="The party's ratings; they never leave this machine. For a continual release: a Parquet "
            "file, or "
            "a folder of them, read at each release.",
        ),
    ],
    ledger: Annotated[
        Path, typer.Option("--ledger", help="The party's ledger, which records the run's cost.")
    ],
    text: TextFile,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            help="The data's name in the ledger. Required for a continual release. Default: the file's name.",
        ),
    ] = None,
    columns: Columns = None,
    schema: SchemaFile = None,
    duplicates: Duplicates = "refuse",
    salt: Annotated[
        Path | None, typer.Option("--salt", help="The shared secret with which item IDs were hashed.")
    ] = None,
    flower: Annotated[
        Path | None, typer.Option("--flower", help="The folder of Flower's programs. Default: next to ours.")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Don't start Flower's SuperNode; it is started elsewhere.")
    ] = False,
    allow_unbudgeted: AllowUnbudgeted = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the guarantee and its cost without a prompt.")
    ] = False,
) -> None:
    """Show the run's guarantee and cost for the party's users. After consent, answer until stopped.

    For a continual release, put new ratings at `--data` before each release. Ratings that were added before
    are skipped.
    """
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.serving.party import PartyDaemon
    from discreet.follow.federation import year_of
    from discreet.privacy.ledger.book import Ledger

    agreement = Agreement.read(folder)
    book, year = Ledger.open(ledger, allow_unbudgeted=allow_unbudgeted), year_of(agreement)
    choice = parse_columns(columns)
    if year is None:
        again = None if schema is not None and duplicates == "refuse" else duplicates
        how = {"columns": choice, "duplicates": again, "schema": schema, **text.written()}
        part = _fit(agreement, book, data, checked_name(name), how, salt)
    elif duplicates != "refuse" or schema is not None or text != TextFile():
        raise OptionDoesNotApply(
            options=("--duplicates", "--schema", "options of text files"),
            to="a continual release",
            why="its files are Parquet, and it uses each user-item pair once",
        )
    elif salt is None:
        part = _follow(folder, agreement, year, book, Path(data), checked_name(name), choice)
    else:
        raise OptionDoesNotApply(
            options=("--salt",),
            to="a continual release",
            why="only runs that fit one model can salt item IDs",
        )
    show(part.promise.label(f"The guarantee and cost of this run for the users of {part.people}"))
    if not part.paid:
        book.refuse_unbudgeted(part.people)
        _require_cover(book, part.people, part.promise)
    if not yes:
        remark("The coordinator waits for your answer. Until then this party is absent.")
    if not yes and not typer.confirm(
        f"Take part in run {agreement.run!r}, with its cost recorded in {ledger}?"
    ):
        raise PartyDeclined()
    with PartyDaemon(folder, agreement, part.join) as daemon:
        if not alone:
            daemon.start_flower(flower)
        remark(f"{daemon.name} answers at {daemon.path}. Stop with Ctrl-C; start again to resume.")
        daemon.run()


class _Part(NamedTuple):
    """One party's part in a run: its guarantee and cost, whether the cost is recorded, and how to answer."""

    people: str
    promise: Guarantee
    paid: bool
    join: Joining


def _fit(
    agreement: Agreement,
    book: Ledger,
    data: str,
    name: str | None,
    how: dict[str, Any],
    salt: Path | None,
) -> _Part:
    """Return a part in a run that fits a model to the party's current data."""
    from discreet.cli.agreements import agreed_protocol
    from discreet.data.inputs import open_data
    from discreet.federated.catalogs import read_salt, salted_data
    from discreet.federated.serving.party import joining
    from discreet.models.recency import refuse_timeless

    (estimator, protocol), facts = agreed_protocol(agreement), agreement.facts
    people = open_data(
        data,
        name=name,
        implicit=estimator.feedback == "implicit",
        low=facts.low,
        high=facts.high,
        step=facts.step,
        max_per_user=facts.max_per_user,
        catalog=None if salt is not None else agreement.catalog,
        **how,
    )
    # Whether data have times is public. Without times, a request for ages would fail.
    refuse_timeless(getattr(estimator, "half_life", None), people)
    assumed = _as_read(people)
    if salt is not None:
        people = salted_data(people, read_salt(salt), agreement.catalog, facts)
    promise = protocol.promise(facts).assuming(*assumed)
    return _Part(people.name, promise, False, joining(agreement, protocol, people, book))


def _as_read(people: Interactions) -> list[Assumption]:
    """Return the assumptions of the party's own guarantee about how its file was read."""
    from discreet.privacy.assumptions import Fact, assumptions_of

    about = (Fact.LAYOUT, Fact.FRAME, Fact.READABLE, Fact.QUOTES)
    return [one for one in assumptions_of(people.facts) if one.fact in about]


def _follow(
    folder: Path,
    agreement: Agreement,
    year: FollowAgreement,
    book: Ledger,
    data: Path,
    name: str | None,
    columns: dict[str, str | None] | None,
) -> _Part:
    """Return a part in a continual release. Files at a path are read when a release is requested."""
    from discreet.follow.federation import STATE, following
    from discreet.follow.supplies import files_at, supply_from

    if name is None:
        raise OptionNeeds(
            options=("A continual release",),
            needs="--name",
            why="the files change, so the ledger needs one name for the same users",
        )
    # A path that can't be used is reported to the operator now, not at the first question.
    files_at(data)
    join = following(agreement, supply_from(data, columns, rated=year.rated), ledger=book, dataset=name)
    return _Part(name, year.promise(), (folder / STATE).exists(), join)


def _require_cover(book: Ledger, name: str, promise: Guarantee) -> None:
    """Raise for a run that the ledger's budget doesn't cover, before other members wait for this party."""
    left = book.remaining(name)
    paid = any(entry.guarantee.epsilon == promise.epsilon for entry in book.entries(name))
    if left is not None and left.epsilon < promise.epsilon and not paid:
        raise RunTooExpensive(epsilon=promise.epsilon, name=name, left=left.epsilon)
