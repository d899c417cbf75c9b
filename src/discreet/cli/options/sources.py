"""Open DATA as a data source: in memory, from shards, from a database, or from shards on a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.errors import FixedByShards, OptionNeeds, ShardsNeeded
from discreet.cli.options.declared import Reading
from discreet.cli.options.parsing import checked_name, parse_columns, parse_scale, read_ids, read_items
from discreet.cli.output.printing import remark
from discreet.core.checks import integer

if TYPE_CHECKING:
    from discreet.data.schema import Schema
    from discreet.data.vocabulary import Vocabulary
    from discreet.sources.pieces import PieceReader
    from discreet.sources.shards import ShardFolder
    from discreet.statistics.data_source import DataSource

On = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="Where to sum: dask:// or spark://, each with local or HOST:PORT, or duckdb:PATH for a table.",
        rich_help_panel="More",
    ),
]
# Options that still apply to a folder of shards. All others were fixed when it was made.
_LATER = ("--people", "--max-per-user", "--implicit")


@contextmanager
def opened(
    source: str, reading: Reading, name: str | None, on: str | None, show: Callable[[str, int, int], None]
) -> Iterator[DataSource]:
    """Yield the data source of a path or a dataset's name. Sums over shards report progress to `show`."""
    from discreet.sources.shards import is_shard_folder

    def reported(shards: ShardFolder) -> ShardFolder:
        return replace(shards, report=lambda done, total: show("shards", done, total))

    if on is not None and on.startswith("spark:"):
        from discreet.sources.spark import on_spark, session

        with session(on) as spark:
            if is_shard_folder(source):
                yield on_spark(reported(shards_of(source, reading, name)), spark)
            else:
                with grouped(source, reading, name, on, show, spark=spark) as shards:
                    yield on_spark(reported(shards), spark)
    elif on is not None and on.startswith("duckdb:"):
        with grouped(source, reading, name, on, show) as shards:
            yield reported(shards)
    elif not is_shard_folder(source):
        if on is not None:
            raise ShardsNeeded()
        yield reading.load(source, name)
    elif on is None:
        yield reported(shards_of(source, reading, name))
    else:
        from discreet.sources.cluster import on_cluster
        from discreet.sources.connection import connected

        with connected(on) as client:
            remark(f"discreet: the cluster's dashboard is at {client.dashboard_link}")
            yield on_cluster(reported(shards_of(source, reading, name)), client)


@contextmanager
def grouped(
    table: str,
    reading: Reading,
    name: str | None,
    on: str,
    show: Callable[[str, int, int], None],
    *,
    spark: Any = None,
) -> Iterator[ShardFolder]:
    """Yield the rows of a table as shards in a folder that is removed afterward.

    A fit reads all rows several times, so the rows of each user are grouped once.
    """
    from discreet.core.files import folder_aside
    from discreet.sources.sharding import make_shards
    from discreet.sources.shards import open_shards

    reader, declared = plan_of(reading)
    with folder_aside(Path(tempfile.gettempdir()) / "discreet-grouped") as folder:
        files = exported(table, on, folder, spark=spark)
        called = checked_name(name) or _name_of(table)
        make_shards(files, folder / "shards", reader=reader, name=called, progress=show, **declared)
        for file in files:
            if file.is_relative_to(folder):
                file.unlink()
        yield open_shards(folder / "shards")


def exported(table: str, on: str, folder: Path, *, spark: Any = None) -> list[Path]:
    """Return Parquet files with the rows of a table in an engine. Files that exist already are used."""
    from discreet.sources import duckdb
    from discreet.sources import spark as on_spark
    from discreet.sources.pieces import parquet_files

    if on.startswith(duckdb.SCHEME):
        duckdb.export_table(on, table, folder / "rows.parquet")
        return [folder / "rows.parquet"]
    if not Path(table).exists():
        on_spark.export_table(spark, table, folder / "rows")
        return parquet_files(folder / "rows")
    return parquet_files(Path(table))


def plan_of(reading: Reading) -> tuple[PieceReader, dict[str, Any]]:
    """Return the reader of files in pieces, and the declared facts, according to the options."""
    reading.check()
    if reading.drop_unknown and reading.items is None:
        raise OptionNeeds(
            options=("--drop-unknown",), needs="--items FILE", why="without a catalog every item is known"
        )
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
    return reader, declared


def _name_of(table: str) -> str:
    """Return a table's own name, or the word query."""
    last = Path(table).name if Path(table).exists() else table
    return last if " " not in last else "query"


def shards_of(folder: str, reading: Reading, name: str | None) -> ShardFolder:
    """Return an open folder of shards with the current options. Raise for options fixed when it was made."""
    from discreet.sources.shards import open_shards

    for option in reading.given():
        if option not in _LATER:
            raise FixedByShards(option=option, folder=str(folder))
    shards = open_shards(folder)
    facts = shards.facts
    if reading.implicit and facts.low != facts.high:
        raise FixedByShards(option="--implicit", folder=str(folder))
    if reading.people is not None:
        facts = replace(facts, n_users=integer("--people", reading.people, least=1))
    if reading.max_per_user is not None:
        facts = facts.with_cap(integer("--max-per-user", reading.max_per_user, least=1))
    return replace(shards, facts=facts, called=name)


def _declared(schema: Schema | None) -> dict[str, Any]:
    """Return the facts and rules of a schema, except the items to drop, which the reader knows."""
    from discreet.data.reading.readers import declared_in

    found = {} if schema is None else declared_in(schema)
    return {name: one for name, one in found.items() if one is not None and name != "drop_unknown"}


def _reader(reading: Reading, catalog: Vocabulary | None) -> PieceReader:
    """Return the reader of a piece of a file, according to the options."""
    from discreet.data.describing import Wishes
    from discreet.data.reading.readers import overridden
    from discreet.sources.pieces import PieceReader, as_texts

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
