"""`discreet describe`: guess the schema of a file, for its data owner."""

from __future__ import annotations

from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options.declared import AsJson, Columns, Force, TextFile
from discreet.cli.options.parsing import parse_columns
from discreet.cli.output.printing import emit, show
from discreet.core.errors import FileExists

if TYPE_CHECKING:
    from discreet.data.reading.tables import TableSource
    from discreet.data.schema import Schema

_PREVIEW = 5


def describe(
    file: Annotated[str, typer.Argument(help="A file, folder or table of ratings, as for `fit`.")],
    text: TextFile,
    columns: Columns = None,
    implicit: Annotated[bool, typer.Option("--implicit", help="Do not read ratings.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write the schema to this TOML file.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Describe the layout of a file of ratings, and write the schema that reads it.

    The schema lists guessed fields under `guessed`. Check them, and remove those that are public. Until then,
    guarantees hold only if the layout of the file is public. The output is for the data owner.
    """
    from discreet.data.describing import Wishes
    from discreet.data.describing_types import schema_of
    from discreet.data.reading.tables import read_rows

    wishes = Wishes.taken_from(text.written(), parse_columns(columns), implicit=implicit)
    guess, unread = schema_of(file, wishes)
    # Unreadable rows are counted here, so that the data owner can look at them before a fit.
    droppable = guess.format in ("text", "json", "parquet", "cells")
    source = read_rows(file, guess.changed(bad_rows="drop") if droppable else guess)
    if out is not None:
        if out.exists() and not force:
            raise FileExists(path=out)
        source.schema.write(out)
    if as_json:
        emit({"schema": source.schema.to_json(), "rows": len(source.columns.items), "unread_times": unread})
        return
    _show(source, out)


def _show(source: TableSource, out: Path | None) -> None:
    from rich.table import Table

    schema = source.schema
    table = Table("field", "value", "guessed", title=f"How {source.name} is written")
    for name, value in _said(schema).items():
        written = repr(value) if isinstance(value, str) else str(value)
        table.add_row(name, written, "yes" * (name in schema.guessed))
    preview = Table(*schema.roles, title=f"The first of {len(source.columns.items):,} rows, as read")
    for row in islice(_rows(source), _PREVIEW):
        preview.add_row(*row)
    done = "Pass --out FILE.toml to write the schema." if out is None else f"Written to {out}."
    show(table, preview, f"{done} Then fit with --schema. Remove public fields from `guessed`.")


def _said(schema: Schema) -> dict[str, Any]:
    from discreet.data.schema import Schema as Empty

    plain = Empty()
    given = {field.name: getattr(schema, field.name) for field in fields(schema) if field.name != "guessed"}
    return {name: one for name, one in given.items() if name in schema.guessed or one != getattr(plain, name)}


def _rows(source: TableSource) -> Any:
    parts = source.columns
    by_role = {"user": parts.users, "item": parts.items, "time": parts.times}
    by_role["weight" if parts.weighted else "rating"] = parts.values
    columns = [by_role.get(role) for role in source.schema.roles]
    shown = [column.head(_PREVIEW).to_list() for column in columns if column is not None]
    return ([str(one) for one in row] for row in zip(*shown, strict=True))
