"""`discreet data shard`: split rating files into shards by user, for data larger than memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options.declared import AsJson, Reading
from discreet.cli.options.parsing import checked_name
from discreet.cli.options.sources import plan_of
from discreet.cli.output.printing import emit, show


def shard(
    files: Annotated[
        list[Path],
        typer.Argument(help="Rating files: Parquet, CSV, TSV or JSON lines, or a folder of Parquet files."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to create.")],
    reading: Reading,
    shards: Annotated[
        int | None,
        typer.Option("--shards", help="The number of shards. Default: one per 4 million ratings."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The data's name in a ledger. Default: the folder's name.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Split rating files into shards, each with all rows of its users, for data larger than memory.

    A user's rows may be anywhere in the files. To resume a stopped run, start it again with the same
    files and options.
    """
    from discreet.core.progress import terminal_progress
    from discreet.sources.pieces import tables_in
    from discreet.sources.sharding import make_shards

    reader, declared = plan_of(reading)
    with terminal_progress(None) as report:
        made = make_shards(
            [table for file in files for table in tables_in(file)],
            out,
            reader=reader,
            name=checked_name(name),
            n_shards=shards,
            progress=report,
            **declared,
        )
    count = len(made.shards)
    if as_json:
        emit({"folder": str(out), "name": made.name, "shards": count, "facts": made.facts.to_json()})
        return
    written, them = (
        ("1 shard. It contains", "it") if count == 1 else (f"{count:,} shards. They contain", "them")
    )
    show(f"Written to {out}: {written} the data of all users. Protect {them} like the files.")
