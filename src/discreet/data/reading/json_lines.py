"""Read JSON lines: one object a line, whose keys are the columns.

How a line is read depends on that line alone: each is parsed by itself, never as part of a list. An id is
text or a whole number, and a number is the same id as its text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.checks import DataError, ParameterError
from discreet.core.exports import Later
from discreet.data.reading.blocks_of_lines import Fitting, LineBlock, blocks_of_lines
from discreet.data.reading.columns import (
    ITEM,
    TIME,
    USER,
    Choice,
    Columns,
    choose,
    date_order,
    from_table,
    readable_rows,
    unread_times,
)
from discreet.data.reading.layouts import Dialect, text_head

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

_SHAPE = "a JSON object with text or a whole number for the person and the item"
# So many objects at the beginning say which keys there are.
_MOST_SAMPLED = 100
_MOST_KEYS = 1000
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
# A number that is not whole, or too long, comes back rounded, and then two ids would be one. Texts that
# look like such a number cannot be told from it, so they are refused as well.
_ROUNDED = r"^-?[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)$"


def read_json_lines(file: Path, choice: Choice | None, *, implicit: bool, dialect: Dialect) -> Columns:
    """Return the needed columns of a file of JSON lines."""
    keys = _keys(file, dialect)
    roles = choose(list(keys), choice, implicit=implicit)
    if dialect.skip_bad_lines:
        _require_declared(roles, choice)
    fields = [
        pl.col("line").str.json_path_match(_path(name, file)).alias(role) for role, name in roles.items()
    ]
    fitting = Fitting(file, _SHAPE, skip=dialect.skip_bad_lines)
    parts = [
        _part(block, fields, fitting) for block in blocks_of_lines(file, dialect.encoding) if len(block.lines)
    ]
    fitting.close()
    # Blocks of whole numbers become text again if another block has text.
    ids = [role for role in (USER, ITEM) if role in roles]
    text = [role for role in ids if any(part[role].dtype == pl.String for part in parts)]
    table = pl.concat([part.cast(dict.fromkeys(text, pl.String)) for part in parts])
    if dialect.skip_bad_lines:
        table = readable_rows(table, file.name, date_order(choice))
    found = from_table(table, {role: role for role in roles}, pl.Float32, date_order(choice), roles)
    return replace(found, unread_times=unread_times(keys, roles, choice))


def _require_declared(roles: Mapping[str, str], choice: Choice | None) -> None:
    """Refuse keys that were found in people's lines where lines without them are left out.

    One user's line with one key more would otherwise leave out everybody else's.
    """
    said = choice or {}
    missing = [role for role in dict.fromkeys((*roles, TIME)) if role not in said]
    if missing:
        names = ",".join(f"{role}={roles.get(role, 'none')}" for role in missing)
        raise ParameterError(
            f"JSON lines may each have other keys, so --skip-bad-lines needs them declared: --columns "
            f"{names} (time=none if there is none)."
        )


def _part(block: LineBlock, fields: list[pl.Expr], fitting: Fitting) -> pl.DataFrame:
    """Return the fields of a block's lines, ids as whole numbers if each is one in the usual form."""
    lines = pl.DataFrame({"line": block.lines})
    table = lines.select(*fields).with_columns(pl.all().str.strip_chars())
    ids = [role for role in (USER, ITEM) if role in table.columns]
    fits = table.select(pl.all_horizontal(_is_id(pl.col(role)) for role in ids)).to_series()
    fitting.keep(block, fits)
    table = table.filter(fits)
    whole = [role for role in ids if table[role].str.contains(_WHOLE).all()]
    return table.cast(dict.fromkeys(whole, pl.Int64))


def _is_id(field: pl.Expr) -> pl.Expr:
    """Tell which fields are text or numbers: there, and neither lists, nor objects, nor rounded."""
    # A text such as [REC] is no JSON itself, and a list is.
    nested = field.str.contains(r"^[\[{]") & field.str.json_path_match("$").is_not_null()
    return (field.is_not_null() & ~nested & ~field.str.contains(_ROUNDED)).fill_null(False)


def _path(key: str, file: Path) -> str:
    mark = "'" if '"' in key else '"'
    if mark in key or "\\" in key:
        raise DataError(f"A key of {file.name} has quotes in its name and cannot be read; rename it.")
    return f"$[{mark}{key}{mark}]"


def _keys(file: Path, dialect: Dialect) -> dict[str, list[str]]:
    """Return the keys of the first objects with their values as text.

    A line that is no object is refused later, with its number.
    """
    keys: dict[str, list[str]] = {}
    lines = [line for line in text_head(file, dialect).splitlines() if line.strip()]
    for line in lines[:_MOST_SAMPLED]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for key, value in found.items() if isinstance(found, dict) else ():
            keys.setdefault(key, []).append(str(value))
    if not keys or len(keys) > _MOST_KEYS:
        raise DataError(f"{file.name} looks like JSON lines, but its first lines hold no objects with keys.")
    return keys
