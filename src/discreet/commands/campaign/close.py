"""`discreet campaign close`: take no more reports."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.commands.options.declared import AsJson
from discreet.commands.output.printing import emit, show


def close(
    store: Annotated[str, typer.Argument(help="sqlite:///FILE, postgresql://... or a file.")],
    as_json: AsJson = False,
) -> None:
    """Take no more reports, also in a service that runs."""
    from discreet.service.stores.opening import open_store

    kept = open_store(store)
    kept.close_collection()
    kept.rewrite()
    counts = kept.counts()
    kept.dispose()
    if as_json:
        emit({"closed": True, **counts._asdict()})
    else:
        show(f"Closed with {counts.reports:,} reports of {counts.senders:,} senders.")
