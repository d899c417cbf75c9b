"""`discreet add-items`: serve items nobody rated yet, by what is publicly known of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options.declared import AsJson, Force, ModelFile
from discreet.cli.output.printing import emit, show


def add_items(
    file: ModelFile,
    table: Annotated[
        Path, typer.Argument(help="What is public about all items, old and new: .csv or .parquet, ids first.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the model that knows them.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Let a model serve new items: released numbers teach what features mean, so it costs nothing."""
    from discreet.models.storage import load

    fitted = load(file)
    grown = fitted.add_items(table)
    grown.save(out, force=force)
    added = len(grown.catalog) - len(fitted.catalog)
    if as_json:
        emit({"file": str(out), "added": added, "items": len(grown.catalog)})
    else:
        show(f"Written to {out}: {added:,} items more, {len(grown.catalog):,} in all.")
