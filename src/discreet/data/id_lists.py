"""Read ids from a file, one id per line or the id column of a table, or from containers of Python.

A line such as `Godfather, The` may be one id or two fields. A header decides, and so do quotes and lines with
different numbers of commas; where nothing does, the file is rejected before any budget is spent.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from discreet.core import without_password
from discreet.core.exports import pl
from discreet.data import errors
from discreet.data.facts import Declarations, refuse_unknown_names
from discreet.data.reading.blocks import GZIP, PARQUET, magic
from discreet.data.reading.cells import address_of, read_texts
from discreet.data.reading.frames import of_pandas
from discreet.data.reading.limits import collected, or_damaged, scanned
from discreet.data.roles import ITEM, USER, is_number, roles_by_name, simplify
from discreet.data.vocabulary import Vocabulary

_SEPARATORS = ("\t", ",", ";", "|")
_TABLES = (".csv", ".tsv")
# Like usual names of ids, these show that a first line is a header.
_BESIDE = "id code title titles name label genre genres category categories description price year brand tags"


def checked_declarations(declared: Declarations) -> Declarations:
    """Return declarations whose catalog and users are vocabularies; reject other names."""
    refuse_unknown_names(declared)
    found = dict(declared)
    for name, role in (("catalog", ITEM), ("people", USER)):
        given = declared.get(name)
        if given is not None and not isinstance(given, Vocabulary):
            found[name] = _declared_ids(given, name, role)
    return cast(Declarations, found)


def _declared_ids(given: Any, name: str, role: str) -> Vocabulary:
    """Return ids that are a list, a series, an array, a column of a frame or a file."""
    if isinstance(given, str | Path):
        return read_declared(Path(given), role)
    if hasattr(given, "collect_schema") or hasattr(given, "columns"):
        return Vocabulary.of(_of_frame(given, name, role))
    if hasattr(given, "isna"):
        return Vocabulary.of(of_pandas(given, role))
    # An array of arrow's would yield scalars of its own.
    given = given.to_pylist() if hasattr(given, "to_pylist") else given
    flat = not hasattr(given, "ndim") or given.ndim == 1
    if flat and (isinstance(given, Sequence) or hasattr(given, "dtype")) and not isinstance(given, bytes):
        return Vocabulary.of(given)
    raise errors.NotIds(argument=name, found=type(given).__name__)


def _of_frame(frame: Any, name: str, role: str) -> pl.Series:
    from discreet.data.item_tables import as_table

    table = as_table(frame)
    found = roles_by_name(table.columns)
    if table.width > 1 and role not in found and simplify(table.columns[0]) != "id":
        raise errors.UnclearIds(path=f"The data frame in {name}=", role=role, why="frame")
    return table[_id_column(table.columns, role, f"The data frame in {name}=")]


def read_declared(path: Path, role: str = ITEM) -> Vocabulary:
    """Return the ids in a file, each once; where some come again, say from which column they were read."""
    ids = read_id_list(path, role)
    try:
        return Vocabulary.of(ids)
    except errors.RepeatedIds as error:
        # A pipe can be read once only.
        names = _columns(path) if path.is_file() else []
        if len(names) < 2 or role in roles_by_name(names):
            raise
        named = {"path": str(path), "column": names[0], "role": role}
        raise errors.RepeatedIds(count=error.count, of=error.of, **named) from None


def _columns(path: Path) -> list[str]:
    """Return the names of a table's columns; of a file without a header, the fields of its first line."""
    if magic(path) == PARQUET:
        return scanned(path).collect_schema().names()
    first = next(line for line in _text_of(path).splitlines() if line.strip())
    separator = next((mark for mark in _SEPARATORS if mark in first), ",")
    return _keys(first) or next(csv.reader([first], delimiter=separator))


def read_id_list(path: Path, role: str = ITEM) -> list[int] | list[str]:
    """Return the ids in a file, integers if all of them are written as integers.

    Of a table (CSV, TSV, Parquet, JSON lines, a spreadsheet, a database) these are the ids in the column with
    a usual name, else in the first one. A file without columns has one id per line, below a header or not.
    """
    # A pipe can be read once only, so it must hold text.
    kind, address = magic(path) if path.is_file() else b"", address_of(path)
    if address is not None:
        table = read_texts(address)
        ids = [text or "" for text in table[_id_column(table.columns, role, path)].to_list()]
    elif kind == PARQUET:
        ids = _of_parquet(path, role)
    elif kind.startswith(GZIP):
        raise errors.OtherPacking(path=str(path), kind="gzip")
    else:
        ids = _of_text(path, role)
    if any(not text for text in ids):
        raise errors.UnclearIds(path=str(path), role=role, why="missing")
    numbers_only = all(text.isdecimal() and str(int(text)) == text for text in ids)
    return [int(text) for text in ids] if numbers_only else ids


def _of_parquet(path: Path, role: str) -> list[str]:
    with or_damaged(path):
        name = _id_column(scanned(path).collect_schema().names(), role, path)
        ids = collected(path, name).to_series()
        if not (ids.dtype.is_integer() or ids.dtype in (pl.String, pl.Categorical, pl.Enum)):
            raise errors.UnclearIds(path=str(path), role=role, why="type")
        return [text or "" for text in ids.cast(pl.String).str.strip_chars().to_list()]


def _of_text(path: Path, role: str) -> list[str]:
    if not path.exists():
        raise errors.NoFiles(source=without_password(path))
    try:
        text = _text_of(path)
    except (OSError, UnicodeDecodeError) as error:
        raise errors.UnreadableIds(path=str(path), role=role) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("{") and _keys(lines[0]):
        return _of_json_lines(path, lines, role)
    if _is_json_list(text):
        raise errors.NotATable(path=str(path), found="json")
    separator = next((mark for mark in _SEPARATORS if lines and mark in lines[0]), ",")
    if all(separator not in line for line in lines):
        return _below_header(lines, role)
    return _of_fields(path, lines, _records(path, text, separator), role)


def _text_of(path: Path) -> str:
    """Return a text in UTF-8, UTF-16 or Windows-1252, without a mark at its beginning."""
    from discreet.data.item_tables import as_utf8

    return as_utf8(path).decode() if path.is_file() else path.read_text(encoding="utf-8-sig")


def _of_json_lines(path: Path, lines: list[str], role: str) -> list[str]:
    name = _id_column(_keys(lines[0]), role, path)
    ids = []
    for line in lines:
        try:
            found = json.loads(line)[name]
        except (ValueError, KeyError, TypeError, RecursionError):
            found = None
        if isinstance(found, bool) or not isinstance(found, int | str):
            raise errors.UnclearIds(path=str(path), role=role, why="object")
        ids.append(str(found).strip())
    return ids


def _keys(line: str) -> list[str]:
    """Return the keys of a JSON object; none if the line is something else, as an id may be."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return list(found) if isinstance(found, dict) else []


def _is_json_list(text: str) -> bool:
    try:
        return text.lstrip().startswith("[") and isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False


def _records(path: Path, text: str, separator: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise errors.UnreadableIds(path=str(path), role="item") from error
    stripped = ([field.strip() for field in row] for row in rows)
    return [row for row in stripped if any(row)]


def _of_fields(path: Path, lines: list[str], rows: list[list[str]], role: str) -> list[str]:
    """Return the ids of lines with separators: of one column with quotes, a table, or ids with commas."""
    width, first = len(rows[0]), rows[0]
    even = all(len(row) == width for row in rows)
    if width == 1:
        # Where quotes hold every comma, each record is one id without them.
        if even or _is_header(first, role) or path.suffix not in _TABLES:
            return _below_header([row[0] for row in rows] if even else lines, role)
    elif even or _is_header(first, role):
        if not even:
            raise errors.UnclearIds(path=str(path), role=role, why="fields")
        return _of_table(path, rows, role)
    elif path.suffix not in _TABLES:
        return lines
    raise errors.UnclearIds(path=str(path), role=role, why="table")


def _of_table(path: Path, rows: list[list[str]], role: str) -> list[str]:
    """Return the ids of a table, if its first line shows whether it is a header."""
    first, others = rows[0], rows[1:]
    turns = any(
        others and not is_number(field) and all(is_number(row[place]) for row in others)
        for place, field in enumerate(first)
    )
    if _is_header(first, role) or turns:
        place = first.index(_id_column(first, role, path))
        return [row[place] for row in others]
    if all(row[0].isdecimal() for row in rows):
        return [row[0] for row in rows]
    raise errors.UnclearIds(path=str(path), role=role, why="table")


def _id_column(names: Sequence[str], role: str, path: Path | str) -> str:
    """Return which column has the IDs: the first if it is called so, else one that is, else the first."""
    found = roles_by_name(names)
    if role == ITEM and USER in found:
        raise errors.UnclearIds(path=str(path), role=role, why="users")
    if role in roles_by_name(names[:1]) or simplify(names[0]) == "id":
        return names[0]
    return found.get(role, names[0])


def _is_header(names: Sequence[str], role: str) -> bool:
    """Return whether a first line names columns; a list's only column has a usual name of users or items."""
    known = roles_by_name(names)
    if len(names) == 1:
        return USER in known or ITEM in known
    return role in known or USER in known or any(simplify(name) in _BESIDE.split() for name in names)


def _below_header(ids: list[str], role: str) -> list[str]:
    return ids[1:] if ids and _is_header(ids[:1], role) else ids
