"""`discreet collect`: learn from a service's reports, close rounds, copy a store, and invite devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options.declared import AsJson, Force
from discreet.cli.output.printing import emit, show
from discreet.core.checks import integer
from discreet.core.files import refuse_output, write_whole


def fit(
    store: Annotated[
        str,
        typer.Argument(
            envvar="DISCREET_STORE",
            help="Where the reports are: sqlite:///FILE, postgresql://..., or a file. Collection may "
            "continue.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.")],
    model: Annotated[
        str | None,
        typer.Option("--model", help="A model of the campaign's mechanism. Default: the usual one."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set an option of the model: key=value. May be repeated."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to the reports so far. This costs no more budget because devices added the noise."""
    from discreet.models.storage import KIND, is_model
    from discreet.recipes import parse_settings
    from discreet.service.refitting import fit_store, usual_model
    from discreet.service.stores.opening import open_store

    refuse_output(out, force=force, kind=KIND, is_ours=is_model)
    kept = open_store(store)
    try:
        model = model or usual_model(kept.campaign)
        fitted = fit_store(kept, model, parse_settings(model, settings or []))
        counts = kept.counts()
    finally:
        kept.dispose()
    fitted.save(out, force=force)
    if as_json:
        facts = {"model": fitted.name, "file": str(out), **counts._asdict()}
        emit({**facts, "guarantee": fitted.guarantee.to_json()})
        return
    show(
        f"Written to {out} from {counts.reports:,} reports of {counts.senders:,} senders. "
        f"{fitted.guarantee.short()}"
    )


def next_round(
    store: Annotated[
        str,
        typer.Argument(
            envvar="DISCREET_STORE",
            help="sqlite:///FILE, postgresql://..., or a file. Collection may continue.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Close the open round of a campaign with rounds. A running service starts the next round at once."""
    from discreet.service.stores.opening import open_store

    kept = open_store(store)
    try:
        number = kept.round
        answers, rounds = kept.close_round(), getattr(kept.campaign, "rounds", 0)
    finally:
        kept.dispose()
    if as_json:
        emit({"closed": number, "answers": answers, "rounds": rounds})
    else:
        rest = "All rounds are over." if number + 1 == rounds else f"Round {number + 1} is open now."
        show(f"Closed round {number} of {rounds:,} with {answers:,} answers. {rest}")


def backup(
    store: Annotated[
        str,
        typer.Argument(
            envvar="DISCREET_STORE",
            help="sqlite:///FILE, postgresql://..., or a file. Collection may continue.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the copy, a SQLite store.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Copy all reports into a file that `campaign fit` and `serve --store` read like the store itself.

    Don't copy the file of a running store with other tools: its latest reports may still be in a log file.
    """
    from discreet.service.stores.opening import copy_store, open_store

    refuse_output(out, force=force, kind="store of reports", is_ours=_is_store)
    kept = open_store(store)
    try:
        counts = copy_store(kept, out)
    finally:
        kept.dispose()
    if as_json:
        emit({"file": str(out), **counts._asdict()})
    else:
        show(f"Written to {out}: {counts.reports:,} reports of {counts.senders:,} senders.")


def invite(
    store: Annotated[
        str,
        typer.Argument(
            envvar="DISCREET_STORE",
            help="sqlite:///FILE, postgresql://..., or a file. Collection may continue.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the invitations, one per line.")],
    count: Annotated[int, typer.Option("--count", help="How many invitations to make.")] = 1,
    url: Annotated[
        str, typer.Option("--url", help="Where the service is: each line is then a link to its page.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Make invitations, each for one device. Give each user one; the store keeps its hash.

    The campaign must have been created with --invited.
    """
    from discreet.collect.invitations import code_name, key_of, new_code
    from discreet.service.stores.opening import open_store
    from discreet.service.stores.store import MOST_INVITATIONS

    integer("--count", count, least=1, most=MOST_INVITATIONS)
    refuse_output(out, force=False, kind="list of invitations", is_ours=lambda _: False)
    kept = open_store(store)
    try:
        key_of(kept.campaign)
        codes = [new_code() for _ in range(count)]
        # Written first: an unused invitation does no harm, but an unknown invitation would be rejected.
        prefix = f"{url.rstrip('/')}/#" if url else ""
        write_whole(out, "".join(f"{prefix}{code}\n" for code in codes).encode(), private=True)
        kept.add_invitations([code_name(code) for code in codes])
    finally:
        kept.dispose()
    if as_json:
        emit({"file": str(out), "invitations": count})
    else:
        show(f"{count:,} invitations are in {out}. Each admits one device.")


def _is_store(path: Path) -> bool:
    from discreet.core.checks import DiscreetError
    from discreet.service.stores.sqlite import SqliteStore

    try:
        SqliteStore(path).dispose()
    except DiscreetError:
        return False
    return True
