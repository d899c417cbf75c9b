"""`discreet shard`: split rating files into shards by user, for data larger than memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options.declared import AsJson, Reading
from discreet.cli.options.parsing import checked_name, parse_columns, parse_scale, read_ids, read_items
from discreet.cli.output.printing import emit, show
from discreet.core.checks import ParameterError

if TYPE_CHECKING:
    from discreet.data.vocabulary import Vocabulary
    from discreet.distributed.pieces import PieceReader


def shard(
    files: Annotated[
        list[Path], typer.Argument(help="One or more rating files: Parquet, CSV, TSV or JSON lines.")
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
    """Split rating files into shards, each with all rows of its people, for data larger than memory.

    A person's rows may be anywhere in the files. A stopped run resumes when it is started again with the same
    files and options.
    """
    from discreet.core.progress import terminal_progress
    from discreet.distributed.sharding import make_shards

    reading.check()
    if reading.drop_unknown and reading.items is None:
        raise ParameterError("--drop-unknown needs a declared catalog. Add --items.")
    catalog = None if reading.items is None else read_items(reading.items)
    low, high, step = parse_scale(reading.scale)
    with terminal_progress(None) as report:
        made = make_shards(
            files,
            out,
            reader=_reader(reading, catalog),
            name=checked_name(name),
            n_shards=shards,
            progress=report,
            low=low,
            high=high,
            step=step,
            max_per_user=reading.max_per_user,
            n_users=reading.people,
            catalog=catalog,
            duplicates=reading.duplicates,
        )
    count = len(made.shards)
    if as_json:
        emit({"folder": str(out), "name": made.name, "shards": count, "facts": made.facts.to_json()})
        return
    written, them = ("1 shard. It holds", "it") if count == 1 else (f"{count:,} shards. They hold", "them")
    show(f"Written to {out}: {written} all people's data: protect {them} like the files.")


def _reader(reading: Reading, catalog: Vocabulary | None) -> PieceReader:
    """Return what reads a piece of a file, as the options say."""
    from discreet.data.describing import Wishes
    from discreet.distributed.pieces import PieceReader, as_texts

    gone = None if reading.without is None else read_ids(reading.without, "user")
    return PieceReader(
        wishes=Wishes.taken_from(
            reading.written(), parse_columns(reading.columns), implicit=reading.implicit
        ),
        zeros=reading.zeros,
        without=None if gone is None else as_texts(gone),
        known=catalog if reading.drop_unknown else None,
    )
