"""`discreet collect backup`: copy a store into one file, also while it collects."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.commands.options.declared import AsJson, Force
from discreet.commands.output.printing import emit, show
from discreet.files import refuse_output


def backup(
    store: Annotated[
        str,
        typer.Argument(
            envvar="DISCREET_STORE", help="sqlite:///FILE, postgresql://... or a file; may be collecting."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the copy, a SQLite store.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Copy all reports into a file that `collect fit` and `serve --store` read like the store itself.

    Copying the file of a store that runs may miss what is still in the log beside it.
    """
    from discreet.service.stores.copying import copy_store
    from discreet.service.stores.opening import open_store

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


def _is_store(path: Path) -> bool:
    from discreet.checks import DiscreetError
    from discreet.service.stores.sqlite import SqliteStore

    try:
        SqliteStore(path).dispose()
    except DiscreetError:
        return False
    return True
