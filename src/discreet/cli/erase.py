"""`discreet model erase`: state what is left of a deleted user in the releases of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.errors import OptionNeeds
from discreet.cli.options.declared import AsJson, Force
from discreet.cli.output.printing import emit, show


def erase(
    ledger: Annotated[Path, typer.Argument(help="The ledger that recorded the releases.")],
    name: Annotated[str, typer.Option("--name", help="Name of the data in the ledger.")],
    accounts: Annotated[int, typer.Option("--accounts", help="Number of accounts the user had.", min=1)] = 1,
    withdrawn: Annotated[
        list[int] | None,
        typer.Option(
            "--withdrawn", help="Number of a ledger entry that was withdrawn everywhere. Repeatable."
        ),
    ] = None,
    reference: Annotated[
        str, typer.Option("--reference", help="Your number for the request. Don't use the user's ID.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the statement (JSON) to this file.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Sign the statement with this private Ed25519 key (PEM).")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """State what live releases can still reveal about a user whose rows you deleted.

    The bound comes from the ledger alone. To delete the rows of a continual release, use
    `discreet follow erase` first. To fit without a user, pass `--without` to `discreet fit`.
    """
    from discreet.core.files import refuse_output, write_whole
    from discreet.dossier.erasure import erasure
    from discreet.models import signatures
    from discreet.privacy.ledger.book import Ledger

    if key is not None and out is None:
        raise OptionNeeds(options=("--key",), needs="--out FILE", why="it signs that file")
    if out is not None:
        refuse_output(out, force=force, kind="statement", is_ours=_is_statement, inputs=[ledger])
    with Ledger.open(ledger, read_only=True) as book:
        found = erasure(
            book, name, accounts=accounts, withdrawn=frozenset(withdrawn or ()), reference=reference
        )
    if out is not None:
        write_whole(out, found.text().encode())
    signed = None if key is None or out is None else signatures.sign_file(out, key)
    if as_json:
        emit({**found.to_json(), "out": None if out is None else str(out), "signed_by": signed})
        return
    live, gone = len(found.live), len(found.withdrawn)
    show(
        f"{live:,} live {'release' if live == 1 else 'releases'} about {name!r}"
        + (f", {gone:,} withdrawn." if gone else "."),
        *(one.sentence() for one in found.remaining),
        *([f"Statement written to {out}."] if out is not None else []),
        *([f"Signed with the key {signed}."] if signed else []),
    )


def _is_statement(path: Path) -> bool:
    """Return whether a file is a statement that this command wrote."""
    import json

    from discreet.dossier.erasure import FORMAT

    try:
        return bool(json.loads(path.read_bytes()[: 1 << 20])["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
