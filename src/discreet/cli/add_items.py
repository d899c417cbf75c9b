"""`discreet model add-items`: add items without ratings, from their public features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options.declared import AsJson, Force, ModelFile
from discreet.cli.output.printing import emit, show


def add_items(
    file: ModelFile,
    table: Annotated[
        Path,
        typer.Argument(
            help="Public features of all items, old and new: a .csv or .parquet file, item IDs first."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the extended model.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Add new items to a model from public item features. This costs no privacy budget."""
    from discreet.models.storage import load

    fitted = load(file)
    grown = fitted.add_items(table)
    grown.save(out, force=force)
    added = len(grown.catalog) - len(fitted.catalog)
    if as_json:
        emit({"file": str(out), "added": added, "items": len(grown.catalog)})
    else:
        show(f"Written to {out}: {added:,} new items, {len(grown.catalog):,} in all.")
