"""Read the rows of files with their schema."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from glob import glob
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from discreet.core.exports import pl
from discreet.data.block_sizes import block_sizes
from discreet.data.errors import FolderWithoutTables, NoFiles, NoKey, OtherFormat, OtherHeader, WrongType
from discreet.data.facts import Declarations
from discreet.data.guessing import is_json
from discreet.data.reading.blocks import PARQUET, Span, head, magic, packing, plain_name, shown_packing
from discreet.data.reading.cells import absent_part, address_of, query_behind, read_cells
from discreet.data.reading.columns import Columns, joined_columns, typed
from discreet.data.reading.frames import read_blocks
from discreet.data.reading.json_lines import read_json_lines
from discreet.data.reading.limits import Allowance, or_damaged, scanned
from discreet.data.reading.listed_values import watch_again
from discreet.data.reading.named import declared_by, has_own_form, read_jester, read_named
from discreet.data.reading.tally import FITS, Tally, WrongGuess, counted_together, shown_name
from discreet.data.reading.text import has_header_of, read_text
from discreet.data.roles import ITEM, RATING, TIME, USER, WEIGHT, check_conditions, choose, how_to_read
from discreet.data.schema import NOT_PACKED, ROLES, Schema

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
_HEAD = 1 << 16
# What engines write as the value of a key that is missing.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_FIELDS: Final = {USER: "users", ITEM: "items", RATING: "values", WEIGHT: "values", TIME: "times"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """The columns of a file, its schema, the facts that its layout declares, and a query that made it."""

    columns: Columns
    name: str
    schema: Schema
    declared: Declarations = field(default_factory=lambda: Declarations())
    query: str = ""

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
    known["jester"] = "a line for each user, a column for each item"
    return known.get(schema.format, schema.format)


def read_rows(path: str | Path, schema: Schema, span: Span | None = None) -> TableSource:
    """Return the rows of a file, of a part of it, or of several files in the order of their names.

    How a row is read follows from the row and the schema. A guess that one file refutes applies to none.
    """
    while True:
        try:
            return _read_rows(path, schema, span)
        except WrongGuess as guess:
            watch_again()
            schema = schema.changed(**dict.fromkeys(guess.args, "text"))


def _read_rows(path: str | Path, schema: Schema, span: Span | None) -> TableSource:
    if has_own_form(schema.format):
        columns, tally = read_named(Path(path), schema)
        tally.settle(schema)
        called = name_of(Path(path))
        return TableSource(columns=columns, name=called, schema=schema, declared=declared_by(schema))
    # Only cells are looked for in a file: the first row of a text may look like the beginning of a database.
    address = address_of(path) if schema.format == "cells" or not Path(path).exists() else None
    if address is not None:
        if schema.format != "cells":
            raise OtherFormat(path=address.name, found=address.kind, declared=schema.format)
        cells = read_cells(address, schema)
        return TableSource(columns=cells, name=address.name, schema=schema, query=query_behind(address))
    files = tables_at(path)
    if len(files) == 1:
        return _rows_of(files[0], schema, span)
    name = _folder_name(path, files)
    with counted_together(name, schema):
        found = [_rows_of(file, schema, span) for file in files]
    return replace(found[0], columns=joined_columns([one.columns for one in found]), name=name)


def _folder_name(path: str | Path, files: Sequence[Path]) -> str:
    """Return the name of the folder of several files, in whatever way these were named."""
    common = path if Path(path).is_dir() else os.path.commonpath([file.resolve().parent for file in files])
    return Path(common).resolve().name


def _rows_of(file: Path, schema: Schema, span: Span | None) -> TableSource:
    chosen = [name for name in schema.conditions if name in schema.keys]
    in_path = {role: name for role, name in schema.roles.items() if name in schema.keys}
    if chosen or in_path:
        own = _rows_of(file, schema.in_files(), span)
        found = _with_keys(own, file, schema, in_path) if in_path else own
        return _if_chosen(found, file, schema, chosen)
    if schema.format in ("parquet", "frame"):
        columns, declared = read_parquet(file, schema, span), Declarations()
    elif schema.format == "jester":
        columns, declared = read_jester(file, schema)
    else:
        columns, declared = _read_lines(file, schema, span), _published_with(file, schema)
    return TableSource(columns=columns, name=name_of(file), schema=schema, declared=declared)


def _if_chosen(found: TableSource, file: Path, schema: Schema, names: Sequence[str]) -> TableSource:
    """Return the rows of a file if its path has the values of the conditions, and none of them otherwise."""
    known = keys_in(file)
    if not all(known.get(name) in schema.conditions[name] for name in names):
        none = pl.repeat(False, len(found.columns.items), eager=True)
        found = replace(found, columns=found.columns.only(none))
    return replace(found, schema=schema)


def _read_lines(file: Path, schema: Schema, span: Span | None) -> Columns:
    """Return the rows of a text; if it is rejected for each of them, say so if it is of another kind."""
    is_text = schema.format == "text"
    try:
        columns, tally = read_text(file, schema, span) if is_text else read_json_lines(file, schema)
    except OtherHeader:
        _refuse_other_kind(file, schema)
        raise
    tally.check_guess(schema)
    if schema.bad_rows == "reject" and 0 < tally.bad == tally.rows:
        _refuse_other_kind(file, schema)
    tally.settle(schema)
    return columns


def refuse_other_kinds(source: str | Path, schema: Schema) -> None:
    """Raise if a whole source, of which no row could be read, has files of another kind.

    A user's row may begin as such a file does, so this isn't asked of one file or piece among others.
    """
    if schema.format in ("text", "json") and not schema.conditions:
        for file in tables_at(source):
            _refuse_other_kind(file, schema)


def _refuse_other_kind(file: Path, schema: Schema) -> None:
    """Raise if a file of which nothing could be read is Parquet, or cells, or packed in another way."""
    address = address_of(file)
    found = "Parquet" if magic(file) == PARQUET else None if address is None else address.kind
    packed = shown_packing(file)
    if found is None and packed not in (NOT_PACKED, packing(file, schema.packed)):
        found = f"packed with {packed}"
    if found is not None:
        raise OtherFormat(path=file.name, found=found, declared=schema.format)


def _with_keys(own: TableSource, file: Path, schema: Schema, in_path: Mapping[str, str]) -> TableSource:
    """Return the rows of a file with columns whose value is in its path."""
    known, count = keys_in(file), len(own.columns.items)
    absent = [name for name in in_path.values() if name not in known]
    if absent:
        raise NoKey(path=str(file), key=absent[0])
    values = {
        role: pl.repeat(known[name], count, dtype=pl.String, eager=True) for role, name in in_path.items()
    }
    read, marks = typed(values, schema)
    tally = Tally(shown_name(file), schema.roles)
    tally.add(marks)
    tally.settle(schema)
    columns = replace(
        own.columns.only(pl.Series(marks == FITS)),
        weighted=schema.weight != "",
        names=schema.roles,
        times_are=read.times_are or own.columns.times_are,
        **{_FIELDS[role]: getattr(read, _FIELDS[role]) for role in in_path},
    )
    return replace(own, columns=columns, schema=schema)


def keys_in(file: Path) -> dict[str, str]:
    """Return the keys in a path such as `shop/day=2025-01-31/part-0.parquet`, with their values."""
    parts = (part.partition("=") for part in file.parent.parts if "=" in part)
    return {key: "" if value == _NO_VALUE else unquote(value) for key, _, value in parts}


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
            return set(schema.needed.values()) <= set(pl.read_parquet_schema(file))
        return False
    packed = packing(file, schema.packed)
    if packed != shown_packing(file):
        return False
    if is_json(head(file, schema.encoding, packed, _HEAD)) != (schema.format == "json"):
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
            raise NoFiles(source=absent_part(source))
        return found
    if not path.is_dir():
        return [path]
    known = [path / (name + end) for name in _KNOWN_FILES for end in _PACKED]
    found = [file for file in known if file.is_file()][:1]
    if found:
        return found
    below = (file for file in sorted(path.rglob("*")) if plain_name(file).endswith(_TABLES))
    tables = [file for file in below if not _is_hidden(file.relative_to(path)) and file.is_file()]
    netflix = any(file.name.startswith(("mv_", "combined_data_")) for file in tables)
    if netflix or not tables:
        raise FolderWithoutTables(folder=str(path), netflix=netflix)
    return tables


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


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
    with or_damaged(file):
        table = scanned(file)
        rows = int(table.select(pl.len()).collect().item())
        budget.take_rows(rows)
        kinds = table.collect_schema()
        choose(kinds.names(), choice_of(schema), implicit=False)
        check_conditions(kinds.names(), schema.conditions)
        _check_types(file, kinds, schema)
        start, stop = span or Span(0, rows)
        at_once = block_sizes().parquet
        places = range(start, stop, at_once) or (start,)
        table = table.select(list(dict.fromkeys(schema.needed.values())))
        blocks = (table.slice(at, min(at_once, stop - at)).collect() for at in places)
        return read_blocks((_counted(block, schema, budget) for block in blocks), schema, file.name)


def _counted(rows: pl.DataFrame, schema: Schema, budget: Allowance) -> dict[str, pl.Series]:
    budget.take_texts(rows)
    return {key: rows[name] for key, name in schema.needed.items()}


def choice_of(schema: Schema) -> dict[str, str | None]:
    """Return the columns of a schema as `columns=` takes them; no other column is guessed."""
    return {role: getattr(schema, role) or None for role in ROLES}


def _check_types(file: Path, kinds: Mapping[str, pl.DataType], schema: Schema) -> None:
    """Reject IDs of another physical type than the declared one; dictionaries decode to text."""
    for role, declared in (("user", schema.user_type), ("item", schema.item_type)):
        name = schema.roles.get(role)
        if name is not None and kinds[name].is_numeric() != (declared == "integer"):
            raise WrongType(path=file.name, column=name, found=str(kinds[name]), declared=declared)
