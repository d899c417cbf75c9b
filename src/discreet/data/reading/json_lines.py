"""Read JSON lines: one object a line, whose keys are the columns.

How a line is read depends on that line alone: each is parsed by itself, never as part of a list. An id is
text or a whole number, and a number is the same id as its text.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from discreet.core.checks import DataError
from discreet.core.exports import Later
from discreet.data.reading.blocks import as_array, blocks
from discreet.data.reading.columns import ITEM, RATING, TIME, USER, WEIGHT, Columns
from discreet.data.reading.tally import (
    FITS,
    ITEM_TYPE,
    RATING_MISSING,
    RATING_TEXT,
    SHAPE,
    TIME_MISSING,
    TIME_TEXT,
    USER_TYPE,
    Tally,
)
from discreet.data.reading.text import lines_of, numbers_of_texts
from discreet.data.reading.times import moments_of_texts
from discreet.data.schema import Schema

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

_SHAPE = "a JSON object with text or a whole number for the person and the item"
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
# A number that is not whole, or too long, comes back rounded, and then two ids would be one. Texts that
# look like such a number cannot be told from it, so they are refused as well.
_ROUNDED = r"^-?[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)$"


def read_json_lines(file: Path, schema: Schema) -> tuple[Columns, Tally]:
    """Return the rows of a file of JSON lines, and what was left out."""
    fields = [
        pl.col("line").str.json_path_match(_path(name, file)).str.strip_chars().alias(role)
        for role, name in schema.roles.items()
    ]
    tally = Tally(file.name, len(fields), schema.roles, _SHAPE)
    before, parts, forms = 0, [], dict[str, None]()
    for block in blocks(file, schema.encoding):
        marks, numbers, lines = lines_of(as_array(block))
        table = pl.DataFrame({"line": lines}).select(*fields)
        reasons = _judged(table, schema)
        if TIME in table.columns:
            times = moments_of_texts(table[TIME], schema.date_order, schema.time_format)
            reasons = np.where((reasons == FITS) & times.moments.is_null().to_numpy(), TIME_TEXT, reasons)
            table = table.with_columns(times.moments.alias(TIME))
            forms |= dict.fromkeys(times.forms)
        marks[marks == FITS] = reasons
        tally.add(marks, numbers + before, np.zeros(marks.size, np.int64))
        before += block.count(b"\n")
        number = RATING if RATING in table.columns else WEIGHT
        if number in table.columns:
            table = table.with_columns(numbers_of_texts(table[number], schema.decimal).alias(number))
        parts.append(table.filter(pl.Series(reasons == FITS)))
    table = pl.concat(parts) if parts else pl.DataFrame({role: [] for role in schema.roles})
    whole = [role for role, kind in _types(schema).items() if kind == "integer" and role in table.columns]
    table = table.cast(dict.fromkeys(whole, pl.Int64))
    found = {role: table[role] for role in table.columns}
    columns = Columns(
        users=found[USER] if USER in found else pl.zeros(table.height, pl.Int64, eager=True),
        items=found[ITEM],
        values=found.get(WEIGHT, found.get(RATING)),
        times=found.get(TIME),
        weighted=WEIGHT in found,
        names=schema.roles,
        times_are=tuple(forms),
    )
    return columns, tally


def _types(schema: Schema) -> dict[str, str]:
    return {USER: schema.user_type, ITEM: schema.item_type}


def _judged(table: pl.DataFrame, schema: Schema) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return why each line is not a row; the first reason counts."""
    reasons = np.zeros(table.height, np.uint8)

    def mark(rows: pl.Series, reason: int) -> None:
        reasons[(reasons == FITS) & rows.fill_null(False).to_numpy()] = reason

    for role, kind in _types(schema).items():
        if role in table.columns:
            mark(~table.select(_is_id(pl.col(role))).to_series(), SHAPE)
            if kind == "integer":
                mark(~table[role].str.contains(_WHOLE), USER_TYPE if role == USER else ITEM_TYPE)
    for role in {RATING, WEIGHT} & set(table.columns):
        mark(table[role].is_null() | (table[role] == ""), RATING_MISSING)
        numbers = numbers_of_texts(table[role], schema.decimal)
        mark(numbers.is_null(), RATING_TEXT)
        mark(~numbers.is_finite(), RATING_MISSING)
    if TIME in table.columns:
        mark(table[TIME].is_null() | (table[TIME] == ""), TIME_MISSING)
    return reasons


def _is_id(field: pl.Expr) -> pl.Expr:
    """Return which fields are text or numbers: there, and neither lists, nor objects, nor rounded."""
    # A text such as [REC] is no JSON itself, and a list is.
    nested = field.str.contains(r"^[\[{]") & field.str.json_path_match("$").is_not_null()
    return (field.is_not_null() & (field != "") & ~nested & ~field.str.contains(_ROUNDED)).fill_null(False)


def _path(key: str, file: Path) -> str:
    mark = "'" if '"' in key else '"'
    if mark in key or "\\" in key:
        raise DataError(f"A key of {file.name} has quotes in its name and cannot be read; rename it.")
    return f"$[{mark}{key}{mark}]"
