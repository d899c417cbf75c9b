"""Read JSON lines: one object a line, whose keys are the columns.

How a line is read depends on that line alone: each is parsed by itself, never as part of a list. An ID is
text or a whole number, and a number is the same ID as its text. `customer.id` is the key `id` of the object
under the key `customer`, in a line that has no key `customer.id`.
"""

from __future__ import annotations

from functools import reduce
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
from discreet.data.reading.text import lines_of, number_of
from discreet.data.reading.times import moments_of_texts
from discreet.data.schema import Schema

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

_SHAPE = "a JSON object with text or a whole number for the user and the item"
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
# A number that is not whole, or too long, comes back rounded, and then two ids would be one. Texts that
# look like such a number cannot be told from it, so they are refused as well.
_ROUNDED = r"^-?[0-9]+(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)$"


def read_json_lines(file: Path, schema: Schema) -> tuple[Columns, Tally]:
    """Return the rows of a file of JSON lines, and what was left out."""
    fields = [_field(name).str.strip_chars().alias(role) for role, name in schema.roles.items()]
    tally = Tally(file.name, len(fields), schema.roles, _SHAPE)
    before, parts, forms = 0, [pl.DataFrame(schema=_types(schema))], dict[str, None]()
    for block in blocks(file, schema.encoding):
        marks, numbers, lines = lines_of(as_array(block))
        table = pl.DataFrame({"line": lines}).select(*fields)
        table = table.with_columns(_reason(schema).alias("reason"), *_numbers(schema))
        reasons = table["reason"].to_numpy().copy()
        if TIME in table.columns:
            times = moments_of_texts(table[TIME], schema.date_order, schema.date_pattern)
            reasons[(reasons == FITS) & times.moments.is_null().to_numpy()] = TIME_TEXT
            table = table.with_columns(times.moments.alias(TIME))
            forms |= dict.fromkeys(times.forms)
        marks[marks == FITS] = reasons
        tally.add(marks, numbers + before, np.zeros(marks.size, np.int64))
        before += block.count(b"\n")
        parts.append(table.drop("reason").filter(pl.Series(reasons == FITS)).cast(_types(schema)))  # type: ignore[arg-type]
    table = pl.concat(parts)
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


def _types(schema: Schema) -> dict[str, type[pl.DataType]]:
    """Return the type of each column that is read."""
    ids = {"text": pl.String, "integer": pl.Int64}
    kinds = {USER: ids[schema.user_type], ITEM: ids[schema.item_type], TIME: pl.Int64}
    return {role: kinds.get(role, pl.Float32) for role in schema.roles}


def _numbers(schema: Schema) -> list[pl.Expr]:
    return [number_of(pl.col(role), schema.decimal) for role in (RATING, WEIGHT) if role in schema.roles]


def _reason(schema: Schema) -> pl.Expr:
    """Return why each line is not a row; the first reason counts."""
    found: list[tuple[pl.Expr, int]] = []
    for role, kind, odd in ((USER, schema.user_type, USER_TYPE), (ITEM, schema.item_type, ITEM_TYPE)):
        if role in schema.roles:
            found.append((~_is_id(pl.col(role)), SHAPE))
            found += [(~pl.col(role).str.contains(_WHOLE), odd)] * (kind == "integer")
    for role in {RATING, WEIGHT} & set(schema.roles):
        number = number_of(pl.col(role), schema.decimal)
        found += [(_is_missing(role), RATING_MISSING), (number.is_null(), RATING_TEXT)]
        found.append((~number.is_finite(), RATING_MISSING))
    if TIME in schema.roles:
        found.append((_is_missing(TIME), TIME_MISSING))
    reasons = [pl.when(bad).then(pl.lit(reason, pl.UInt8)) for bad, reason in found]
    return pl.coalesce(*reasons, pl.lit(FITS, pl.UInt8))


def _is_missing(role: str) -> pl.Expr:
    return pl.col(role).is_null() | (pl.col(role) == "")


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
        raise DataError("A key has quotes in its name and cannot be read; rename it.")
    return f"{path}[{mark}{key}{mark}]"
