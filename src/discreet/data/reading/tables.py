"""Read the rows of one file with its schema, and describe it first if it has none."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.checks import FileError, ParameterError
from discreet.core.exports import Later
from discreet.core.progress import logger
from discreet.data.describing import Wishes, describe, is_json, widened
from discreet.data.errors import NoFiles
from discreet.data.facts import Declarations
from discreet.data.reading.blocks import PARQUET, Span, head, magic
from discreet.data.reading.cells import address_of, cells_schema, read_cells
from discreet.data.reading.columns import RATING, TIME, Columns, choose, how_to_read, joined_columns
from discreet.data.reading.frames import of_frame, readable, unread_of_types
from discreet.data.reading.json_lines import read_json_lines
from discreet.data.reading.limits import Allowance, or_sentence, scanned
from discreet.data.reading.named import (
    declared_by,
    has_own_form,
    named_schema,
    read_jester,
    read_named,
)
from discreet.data.reading.text import has_header_of, read_text
from discreet.data.reading.times import shown_order
from discreet.data.schema import ROLES, UTF_8, Schema

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

# Looked for in a folder, in this order, also with .gz or .zip behind.
_KNOWN_FILES = (
    "u.data",
    "ratings.dat",
    "ratings.csv",
    "ratings.parquet",
    "rating_final.csv",
    "jester-data-1.csv",
)
_TABLES = (".csv", ".tsv", ".txt", ".dat", ".data", ".inter", ".parquet", ".jsonl", ".ndjson")
_PACKED = ("", ".gz", ".zip")
_BLOCK_ROWS = 1 << 20
_HEAD = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """The columns of a file, its schema, and the facts that its layout declares."""

    columns: Columns
    name: str
    schema: Schema
    declared: Declarations = field(default_factory=lambda: Declarations())

    def how_read(self) -> dict[str, str]:
        """Return how the table was understood; this shows how records are written, and none of them."""
        parts = self.columns
        found = {role: f"from {name}" for role, name in parts.names.items()}
        found[TIME] = f"{found[TIME]}: {'; '.join(parts.times_are)}" if TIME in found else "not read"
        if parts.unread_times is not None:
            found[TIME] = f"not read; {how_to_read(parts.unread_times)}"
        return {"layout": _layout(self.schema), **found}


def _layout(schema: Schema) -> str:
    if schema.format == "text":
        return f"text, with{'' if schema.header else 'out'} a header, fields between {schema.delimiter!r}"
    known = {"json": "JSON lines", "parquet": "Parquet", "frame": "data frame"}
    known["cells"] = "cells of a spreadsheet or a database"
    known["jester"] = "a line for each person, a column for each item"
    return known.get(schema.format, schema.format)


def schema_of(path: str | Path, wishes: Wishes) -> tuple[Schema, str | None]:
    """Return the schema of a file, or of the first of several, and a column of times that is not read."""
    if has_own_form(wishes.layout):
        return _named_schema(str(wishes.layout), wishes), None
    address = address_of(path)
    if address is not None:
        return cells_schema(address, wishes), None
    file = tables_at(path)[0]
    if magic(file) == PARQUET:
        if wishes.layout is not None:
            raise ParameterError(f"{file.name} is Parquet; layout={wishes.layout!r} is for text files.")
        return _parquet_schema(file, wishes)
    found = describe(file, wishes)
    schema = found.schema
    is_pairs = not schema.header and len(schema.columns) == 2 and schema.delimiter == " "
    if wishes.implicit and is_pairs and not wishes.choice:
        logger.warning(
            "%s has two columns and no times, so it is read without an order. If each user's lines are "
            "oldest first, pass layout='sasrec' (--layout sasrec).",
            file.name,
        )
    return schema, found.unread_times


def _named_schema(layout: str, wishes: Wishes) -> Schema:
    if any(name is not None for name in (wishes.choice or {}).values()):
        raise ParameterError(f"layout={layout!r} says which column is which; only NAME=none may be given.")
    said = wishes.declared
    if {"delimiter", "comment", "escape"} & set(said):
        raise ParameterError(f"layout={layout!r} says how a line is written; leave delimiter and signs out.")
    without = set(wishes.choice or {}) | ({RATING} if wishes.implicit else set())
    return named_schema(layout, without, said.get("bad_rows", "reject"), said.get("encoding", UTF_8))


def _parquet_schema(file: Path, wishes: Wishes) -> tuple[Schema, str | None]:
    with or_sentence(f"{file.name} is damaged and cannot be read as Parquet; write it again."):
        table = scanned(file)
        kinds = table.collect_schema()
    roles = choose(kinds.names(), wishes.choice, implicit=wishes.implicit)
    types = {
        f"{role}_type": "integer" if kinds[roles[role]].is_numeric() else "text"
        for role in ("user", "item")
        if role in roles
    }
    guessed = [role for role in roles if role not in (wishes.choice or {})]
    declared = {"bad_rows": "reject", **wishes.declared, **roles, **types, "header": False}
    if TIME in roles and kinds[roles[TIME]] == pl.String and "date_order" not in declared:
        dates = table.select(roles[TIME], *(roles[role] for role in ("user",) if role in roles)).collect()
        order = shown_order(dates[roles[TIME]], dates[roles["user"]] if "user" in roles else None)
        declared, guessed = {**declared, "date_order": order or ""}, [*guessed, "date_order"]
    declared |= {
        "format": "parquet",
        "columns": tuple(kinds.names()),
        "guessed": ("format", *types, *guessed),
    }
    return Schema(**declared), unread_of_types(kinds, roles, wishes.choice)


def read_source(path: str | Path, wishes: Wishes, schema: Schema | None = None) -> TableSource:
    """Return the needed columns of a file, or of several files of one form, with a schema or without one."""
    unread = None
    if schema is None:
        schema, unread = schema_of(path, wishes)
    found = read_rows(path, schema)
    return replace(found, columns=replace(found.columns, unread_times=unread or found.columns.unread_times))


def read_rows(path: str | Path, schema: Schema, span: Span | None = None) -> TableSource:
    """Return the rows of a file, of a part of it, or of several files in the order of their names.

    How a row is read follows from the row and the schema.
    """
    if has_own_form(schema.format):
        columns, tally = read_named(Path(path), schema)
        tally.settle(schema.encoding, reject=schema.bad_rows == "reject")
        called = name_of(Path(path))
        return TableSource(columns=columns, name=called, schema=schema, declared=declared_by(schema))
    address = address_of(path)
    if address is not None:
        return TableSource(columns=read_cells(address, schema), name=address.name, schema=schema)
    files = tables_at(path)
    found: list[TableSource] = []
    while len(found) < len(files):
        one = _rows_of(files[len(found)], schema, span)
        if one.schema != schema and found:
            # A guess that one file refutes holds for none of them.
            found = []
        else:
            found.append(one)
        schema = one.schema
    if len(found) == 1:
        return found[0]
    columns = joined_columns([one.columns for one in found])
    return replace(found[0], columns=columns, name=Path(str(path).rstrip("/*?.")).name or found[0].name)


def _rows_of(file: Path, schema: Schema, span: Span | None) -> TableSource:
    if schema.format in ("parquet", "frame"):
        columns = read_parquet(file, schema, span)
        return TableSource(columns=columns, name=name_of(file), schema=schema)
    if magic(file) == PARQUET:
        raise FileError(f"{file.name} is Parquet, and its schema is for {schema.format}. Describe it again.")
    if schema.format == "jester":
        columns, declared = read_jester(file, schema)
        return TableSource(columns=columns, name=name_of(file), schema=schema, declared=declared)
    is_json_lines = schema.format == "json"
    columns, tally = read_json_lines(file, schema) if is_json_lines else read_text(file, schema, span)
    wider = widened(schema, tally)
    if wider is not None:
        return _rows_of(file, wider, span)
    tally.settle(schema.encoding, reject=schema.bad_rows == "reject")
    return TableSource(
        columns=columns, name=name_of(file), schema=schema, declared=_published_with(file, schema)
    )


def fits(path: str | Path, schema: Schema) -> bool:
    """Return whether a file is of the form that a schema declares; no user's row decides this.

    The kind of file, the header and the names of columns are compared.
    """
    is_cells = address_of(path) is not None
    if is_cells or schema.format == "cells":
        return is_cells and schema.format == "cells"
    if not is_there(path) or schema.format in ("frame", "jester"):
        return False
    if has_own_form(schema.format):
        return True
    file = tables_at(path)[0]
    if not file.is_file() or (magic(file) == PARQUET) != (schema.format == "parquet"):
        return False
    if schema.format == "parquet":
        with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            return set(schema.roles.values()) <= set(pl.read_parquet_schema(file))
        return False
    if is_json(head(file, schema.encoding, _HEAD)) != (schema.format == "json"):
        return False
    return schema.format == "json" or not schema.header or has_header_of(file, schema)


def is_there(source: str | Path) -> bool:
    """Return whether a text is the path of files, a pattern or list of paths, or an address of cells."""
    return Path(source).exists() or address_of(source) is not None or bool(_matching(str(source)))


def _matching(source: str) -> list[Path]:
    """Return the paths that a pattern matches, in order, or those that a list has between commas."""
    if any(mark in source for mark in "*?["):
        return sorted(map(Path, glob(source, recursive=True)))  # noqa: PTH207 - a pattern may be absolute
    parts = [Path(part.strip()) for part in source.split(",")]
    return parts if len(parts) > 1 and all(part.exists() for part in parts) else []


def tables_at(source: str | Path) -> list[Path]:
    """Return the file itself, or the files of a folder, of a pattern `2025-*.csv`, or of a list a.csv,b.csv.

    Of a folder these are its known file, or all tables in it and below it, in the order of their paths. Names
    that begin with `_` or `.` are those of logs and markers.
    """
    path = Path(source)
    if not path.exists():
        found = [file for part in _matching(str(source)) for file in tables_at(part)]
        if not found:
            raise NoFiles(source=str(source))
        return found
    if not path.is_dir():
        return [path]
    known = [path / (name + end) for name in _KNOWN_FILES for end in _PACKED]
    found = [file for file in known if file.is_file()][:1]
    if found:
        return found
    below = (file for file in sorted(path.rglob("*")) if plain_name(file).endswith(_TABLES))
    tables = [file for file in below if not _is_hidden(file.relative_to(path)) and file.is_file()]
    if any(file.name.startswith(("mv_", "combined_data_")) for file in tables):
        raise FileError(
            f'The folder {path} looks like the Netflix Prize; pass layout="netflix" (--layout netflix).'
        )
    if not tables:
        raise FileError(f"The folder {path} has no tables ({', '.join(_TABLES)}). Name a file.")
    return tables


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def plain_name(file: Path) -> str:
    """Return a file's name without that of what packs it."""
    return file.name.removesuffix(".gz").removesuffix(".zip")


def name_of(file: Path) -> str:
    """Return a name for the ledger: the folder's if the file is called as in every folder of its kind."""
    plain = plain_name(file)
    if plain in _KNOWN_FILES:
        return file.resolve().parent.name
    return plain.rsplit(".", 1)[0] if plain.endswith(_TABLES) else plain


def _published_with(file: Path, schema: Schema) -> Declarations:
    """Return the scale that a file of this name is published with."""
    if not schema.rating:
        return {}
    if plain_name(file) == "u.data":
        return {"low": 1.0, "high": 5.0, "step": 1.0}
    return {"low": 0.0, "high": 2.0, "step": 1.0} if plain_name(file) == "rating_final.csv" else {}


def read_parquet(file: Path, schema: Schema, span: Span | None = None) -> Columns:
    """Return the needed columns of a Parquet file, or of some of its rows, block by block."""
    budget = Allowance(file)
    with or_sentence(f"{file.name} is damaged and cannot be read as Parquet; write it again."):
        table = scanned(file)
        rows = int(table.select(pl.len()).collect().item())
        budget.take_rows(rows)
        names = choose(table.collect_schema().names(), choice_of(schema), implicit=False).values()
        table = table.select(names)
        _check_types(file, table.collect_schema(), schema)
        start, stop = span or Span(0, rows)
        places = range(start, stop, _BLOCK_ROWS) or (start,)
        blocks = (table.slice(at, min(_BLOCK_ROWS, stop - at)).collect() for at in places)
        return joined_columns([_block(file, block, schema, budget) for block in blocks])


def _block(file: Path, rows: pl.DataFrame, schema: Schema, budget: Allowance) -> Columns:
    budget.take_texts(rows)
    strict = schema.bad_rows == "reject"
    found = of_frame(rows, choice_of(schema), implicit=False, order=schema.date_order, strict=strict)
    # As in text files, blanks around an ID are not part of it.
    found = replace(found, users=_stripped(found.users), items=_stripped(found.items))
    return found if strict else readable(found, file.name)


def choice_of(schema: Schema) -> dict[str, str | None]:
    """Return the columns of a schema as `columns=` takes them; no other column is guessed."""
    return {role: getattr(schema, role) or None for role in ROLES}


def _check_types(file: Path, kinds: Mapping[str, pl.DataType], schema: Schema) -> None:
    """Reject IDs of another physical type than the declared one; dictionaries decode to text."""
    for role, declared in (("user", schema.user_type), ("item", schema.item_type)):
        name = schema.roles.get(role)
        if name is not None and kinds[name].is_numeric() != (declared == "integer"):
            raise FileError(
                f"Column {name!r} of {file.name} has type {kinds[name]}, and its schema declares {declared}. "
                "Describe the file again, or give another schema."
            )


def _stripped(ids: pl.Series) -> pl.Series:
    return ids.str.strip_chars() if ids.dtype == pl.String else ids
