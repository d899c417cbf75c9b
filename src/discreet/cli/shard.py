"""`discreet shard`: split rating files into shards by user, for data larger than memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options.declared import AsJson, Reading
from discreet.cli.options.parsing import checked_name, parse_columns, parse_scale, read_ids, read_items
from discreet.cli.output.printing import emit, show
from discreet.core.checks import ParameterError

if TYPE_CHECKING:
    from discreet.data.schema import Schema
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
    reader = _reader(reading, catalog)
    given = {
        "low": low,
        "high": high,
        "step": step,
        "max_per_user": reading.max_per_user,
        "n_users": reading.people,
        "catalog": catalog,
        "duplicates": reading.duplicates if reading.duplicates != "refuse" else None,
    }
    declared = {**_declared(reader.schema), **{name: one for name, one in given.items() if one is not None}}
    with terminal_progress(None) as report:
        made = make_shards(
            files,
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
    written, them = ("1 shard. It holds", "it") if count == 1 else (f"{count:,} shards. They hold", "them")
    show(f"Written to {out}: {written} all people's data: protect {them} like the files.")


def _declared(schema: Schema | None) -> dict[str, Any]:
    """Return the facts and rules of a schema, but for the items to drop, which the reader knows."""
    from discreet.data.reading.readers import declared_in

    found = {} if schema is None else declared_in(schema)
    return {name: one for name, one in found.items() if one is not None and name != "drop_unknown"}


def _reader(reading: Reading, catalog: Vocabulary | None) -> PieceReader:
    """Return what reads a piece of a file, as the options say."""
    from discreet.data.describing import Wishes
    from discreet.data.reading.readers import overridden
    from discreet.distributed.pieces import PieceReader, as_texts

    gone = None if reading.without is None else read_ids(reading.without, "user")
    wishes = Wishes.taken_from(reading.written(), parse_columns(reading.columns), implicit=reading.implicit)
    schema = None if reading.schema is None else overridden(reading.schema, wishes)
    if schema is not None and schema.unknown_items == "drop" and catalog is None and schema.catalog:
        catalog = read_items(Path(schema.catalog))
    drops = reading.drop_unknown or (schema is not None and schema.unknown_items == "drop")
    return PieceReader(
        wishes=wishes,
        schema=schema,
        zeros=reading.zeros if reading.schema is None or reading.zeros != "ratings" else None,
        without=None if gone is None else as_texts(gone),
        known=catalog if drops else None,
    )
