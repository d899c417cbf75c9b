"""Read layouts that are not tables: Netflix Prize, LightGCN, SASRec and Jester.

Which item a line is about, how many fields it has, or which came first follows from other things than a
column. A line that doesn't look like its layout is skipped, or rejects the file.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from discreet.core import without_password
from discreet.core.exports import pl
from discreet.data.errors import LinesNeeded, NoFiles, NoneOfLayout, OtherCounts, OtherLayout, RolesNeeded
from discreet.data.facts import Declarations
from discreet.data.reading.blocks import blocks, packing
from discreet.data.reading.columns import Columns, Marks
from discreet.data.reading.tally import FITS, SHAPE, Tally
from discreet.data.reading.text import read_lines
from discreet.data.roles import ITEM, RATING, TIME, USER
from discreet.data.schema import Schema
from discreet.data.vocabulary import Vocabulary

# An id in the usual form: no zeros in front, so that two texts are never one number.
_ID = r"(0|[1-9][0-9]{0,17})"
_JESTER_NOT_RATED = 99.0


class _Form(NamedTuple):
    """How the lines of a layout become rows."""

    #: What a line is, for messages.
    shape: str
    #: Which files of a folder are read.
    patterns: tuple[str, ...]
    roles: tuple[str, ...]
    #: Returns which lines fit and their rows, given the item of the last line before them.
    rows: Callable[[pl.Series, int | None], tuple[pl.Series, pl.DataFrame, int | None]]
    times: str = ""
    declared: Declarations | None = None


def _netflix(lines: pl.Series, item: int | None) -> tuple[pl.Series, pl.DataFrame, int | None]:
    """Read an item's number and a colon, and below it its ratings: user, stars, day."""
    text = pl.col("line")
    table = pl.DataFrame({"line": lines}).select(
        heads=text.str.extract(rf"^{_ID}:$").cast(pl.Int64),
        user=text.str.extract(rf"^{_ID},[1-5],[0-9-]{{10}}$").cast(pl.Int64),
        rating=text.str.extract(r",([1-5]),[0-9-]{10}$").cast(pl.Float32),
        time=text.str.tail(10).str.to_datetime("%Y-%m-%d", strict=False, time_unit="us").dt.epoch("s"),
    )
    items = table["heads"].fill_null(strategy="forward")
    if item is not None:
        items = items.fill_null(item)
    rated = table["user"].is_not_null() & table["time"].is_not_null() & items.is_not_null()
    rows = table.with_columns(item=items).filter(rated).select(USER, ITEM, RATING, TIME)
    return table["heads"].is_not_null() | rated, rows, item if items.is_empty() else items[-1]


def _lightgcn(lines: pl.Series, item: int | None) -> tuple[pl.Series, pl.DataFrame, int | None]:
    """Read a user's number and the numbers of their items."""
    fits = lines.str.contains(rf"^{_ID}( {_ID})*$")
    ids = lines.filter(fits).str.split(" ")
    listed = pl.DataFrame({USER: ids.list.first().cast(pl.Int64), ITEM: ids.list.slice(1)})
    return fits, listed.filter(pl.col(ITEM).list.len() > 0).explode(ITEM).cast({ITEM: pl.Int64}), item


def _sasrec(lines: pl.Series, item: int | None) -> tuple[pl.Series, pl.DataFrame, int | None]:
    """Read a user's number and an item's; a user's lines are in order of time."""
    pair = rf"^{_ID}[ \t]{_ID}$"
    text = pl.col("line")
    fits = lines.str.contains(pair)
    rows = pl.DataFrame({"line": lines.filter(fits)}).select(
        text.str.extract(pair, 1).cast(pl.Int64).alias(USER),
        text.str.extract(pair, 2).cast(pl.Int64).alias(ITEM),
    )
    return fits, rows, item


_FORMS: dict[str, _Form] = {
    "netflix": _Form(
        shape=(
            "an item's number and a colon, or below one a user's number, 1 to 5 stars and a day "
            "(7,3,2005-09-06)"
        ),
        patterns=("combined_data_*.txt", "mv_*.txt"),
        roles=(USER, ITEM, RATING, TIME),
        rows=_netflix,
        times="days, as epoch seconds",
        declared={"low": 1.0, "high": 5.0, "step": 1.0},
    ),
    "lightgcn": _Form(
        shape="a user's number and the numbers of items, with one blank between them (7 12 40)",
        patterns=("train.txt",),
        roles=(USER, ITEM),
        rows=_lightgcn,
    ),
    "sasrec": _Form(
        shape="a user's number and an item's, with a blank between them (7 12)",
        patterns=(),
        roles=(USER, ITEM, TIME),
        rows=_sasrec,
        times="the order of a user's lines",
    ),
}


def has_own_form(layout: str | None) -> bool:
    """Return whether files of this layout are not tables, so that this module reads them."""
    return layout in _FORMS


def named_schema(layout: str, leave_out: set[str], bad_rows: str, encoding: str) -> Schema:
    """Return the schema of a layout; times and ratings can be skipped."""
    if leave_out & {USER, ITEM}:
        raise RolesNeeded(layout=layout)
    if layout == "netflix" and bad_rows == "drop":
        raise LinesNeeded(layout=layout)
    roles = {role: role for role in _FORMS[layout].roles if role not in leave_out}
    types = {"user_type": "integer", "item_type": "integer"}
    return Schema(format=layout, header=False, bad_rows=bad_rows, encoding=encoding, **roles, **types)  # type: ignore[arg-type]


def declared_by(schema: Schema) -> Declarations:
    """Return the scale that a layout declares."""
    return (_FORMS[schema.format].declared or {}) if schema.rating else {}


def files_of_layout(path: Path, layout: str) -> list[Path]:
    """Return the files that are read for a path: itself, or the layout's files in a folder, in order."""
    if not path.exists():
        raise NoFiles(source=without_password(path))
    if not path.is_dir():
        return [path]
    patterns = _FORMS[layout].patterns
    for pattern in patterns:
        found = sorted([*path.glob(pattern), *path.glob(f"{pattern}.gz")])
        if found:
            return found
    raise NoneOfLayout(folder=str(path), layout=layout, patterns=patterns)


def read_named(path: Path, schema: Schema) -> tuple[Columns, Tally]:
    """Read files of a layout that is not a table."""
    form = _FORMS[schema.format]
    tally = Tally(path.name, schema.roles, shape=form.shape)
    parts = [
        part for file in files_of_layout(path, schema.format) for part in _parts(file, form, schema, tally)
    ]
    table = pl.concat(parts)
    if schema.format == "sasrec" and schema.time:
        # A place among the user's own lines, which is the same whichever other users are in the file.
        table = table.with_columns(pl.int_range(pl.len()).over(USER).alias(TIME))
    kept = {name: table[name] for name in table.columns if name in schema.roles}
    names = dict.fromkeys(kept, f"layout {schema.format}")
    return Columns.by_role(kept, names, (form.times,) if TIME in kept else ()), tally


def _parts(file: Path, form: _Form, schema: Schema, tally: Tally) -> list[pl.DataFrame]:
    item: int | None = None
    parts: list[pl.DataFrame] = []

    def read(lines: pl.Series) -> Marks:
        nonlocal item
        fits, rows, item = form.rows(lines, item)
        parts.append(rows)
        return np.where(fits.fill_null(False).to_numpy(), FITS, SHAPE).astype(np.uint8)

    read_lines(file, schema, tally, read)
    return parts


def read_jester(file: Path, schema: Schema) -> tuple[Columns, Declarations]:
    """Read rows of users: how many items they rated, then a rating or 99 for each item."""
    try:
        types = dict.fromkeys(schema.columns, pl.Float32)
        text = io.BytesIO(b"".join(blocks(file, schema.encoding, packing(file, schema.packed))))
        table = pl.read_csv(text, separator=schema.delimiter, has_header=False, schema=types, quote_char=None)
        numbers = table.to_numpy()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        raise OtherLayout(path=file.name, layout="jester") from None
    rated, ratings = numbers[:, 0], numbers[:, 1:]
    is_rated = ratings != _JESTER_NOT_RATED
    wrong = int(np.count_nonzero(is_rated.sum(axis=1) != rated))
    if wrong:
        raise OtherCounts(path=file.name, count=wrong, of=int(rated.size))
    rows, items = np.nonzero(is_rated)
    found = {USER: pl.Series(rows + 1), ITEM: pl.Series(items + 1), RATING: pl.Series(ratings[is_rated])}
    columns = Columns.by_role(found, {})
    return columns, {
        "low": -10.0,
        "high": 10.0,
        "catalog": Vocabulary.range(ratings.shape[1], 1),
        "people": Vocabulary.range(rated.size, 1),
    }
