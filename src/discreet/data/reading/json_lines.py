"""Read JSON lines: one object a line, whose keys are the columns.

How a line is read depends on that line alone: each is parsed by itself, never as part of a list. An ID is
text or a whole number, and a number is the same ID as its text. `customer.id` is the key `id` of the object
under the key `customer`, in a line that has no key `customer.id`.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import numpy as np

from discreet.core.exports import pl
from discreet.data.errors import QuotesInKey
from discreet.data.reading.columns import Columns, Marks, joined_columns, typed
from discreet.data.reading.tally import FITS, ITEM_MISSING, SHAPE, USER_MISSING, Tally, shown_name
from discreet.data.reading.text import read_lines
from discreet.data.roles import ITEM, USER
from discreet.data.schema import Schema

_SHAPE = "a JSON object with text or a whole number for the user and the item"
# A number that is not whole, or too long, comes back rounded, and then two ids would be one. Texts that
# look like such a number can't be distinguished from it, so they are rejected as well.
_ROUNDED = r"^-?[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)$"


def read_json_lines(file: Path, schema: Schema) -> tuple[Columns, Tally]:
    """Return the rows of a file of JSON lines, and the count of the others."""
    fields = [_field(name).alias(role) for role, name in schema.needed.items()]
    ids = [_is_id(pl.col(role).str.strip_chars()) for role in (USER, ITEM) if role in schema.roles]
    tally, parts = Tally(shown_name(file), schema.roles, shape=_SHAPE), list[Columns]()

    def read(lines: pl.Series) -> Marks:
        table = pl.DataFrame({"line": lines}).select(*fields)
        is_row = table.select(pl.all_horizontal(pl.lit(True), *ids)).to_series().to_numpy()
        marks = np.where(is_row, FITS, SHAPE).astype(np.uint8)
        if not is_row.all():
            _mark_missing(lines, table, marks)
        found, marks = typed({key: table[key] for key in schema.needed}, schema, marks)
        parts.append(found)
        return marks

    read_lines(file, schema, tally, read)
    return joined_columns(parts), tally


def _mark_missing(lines: pl.Series, table: pl.DataFrame, marks: Marks) -> None:
    """Mark the objects that have no user or no item, as events of visitors who aren't known."""
    is_object = lines.str.contains(r"^\s*\{") & lines.str.json_path_match("$").is_not_null()
    for role, mark in ((ITEM, ITEM_MISSING), (USER, USER_MISSING)):
        if role in table.columns:
            missing = is_object & (table[role].is_null() | (table[role] == ""))
            marks[(marks != FITS) & missing.to_numpy()] = mark


def _is_id(field: pl.Expr) -> pl.Expr:
    """Return which fields are text or numbers: there, and neither lists, nor objects, nor rounded."""
    # A text such as [REC] is not JSON itself, and a list is.
    nested = field.str.contains(r"^[\[{]") & field.str.json_path_match("$").is_not_null()
    return (field.is_not_null() & (field != "") & ~nested & ~field.str.contains(_ROUNDED)).fill_null(False)


def _field(name: str) -> pl.Expr:
    """Return the value of a key of each line, or, for a name with dots, of a key of an object in the line."""
    line = pl.col("line")
    whole = line.str.json_path_match(_step("$", name))
    if "." not in name:
        return whole
    return pl.coalesce(whole, line.str.json_path_match(reduce(_step, name.split("."), "$")))


def _step(path: str, key: str) -> str:
    mark = "'" if '"' in key else '"'
    if mark in key or "\\" in key:
        raise QuotesInKey()
    return f"{path}[{mark}{key}{mark}]"
