"""Read the columns of data frames: polars, pandas, pyarrow, and anything that streams Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Any

from discreet.core.exports import Later
from discreet.core.progress import logger
from discreet.data.errors import NotAFrame, NotNumeric
from discreet.data.reading.columns import (
    ITEM,
    RATING,
    TIME,
    WEIGHT,
    Choice,
    Columns,
    choose,
    date_order,
    from_table,
    joined_columns,
)
from discreet.data.reading.times import times_of_objects
from discreet.data.vocabulary import of_objects

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")


def of_frame(
    frame: Any, choice: Choice | None, *, implicit: bool, order: str | None = None, strict: bool = True
) -> Columns:
    """Return the columns of a frame of polars, pandas or pyarrow; the latter two are not needed for that.

    `order` declares the order of day and month; None leaves it to the dates. If this is not `strict`, what
    cannot be read is null.
    """
    order = date_order(choice) if order is None else order
    if hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "iloc") and not _is_polars(frame):
        return _of_stream(frame, choice, order, implicit=implicit, strict=strict)
    if _is_polars(frame):
        kinds = frame.collect_schema()
        roles = choose(kinds.names(), choice, implicit=implicit)
        table = frame.lazy().select(roles.values()).collect() if isinstance(frame, pl.LazyFrame) else frame
        found = from_table(table, roles, pl.Float64, order, strict=strict)
        return replace(found, unread_times=unread_of_types(kinds, roles, choice))
    if not (hasattr(frame, "columns") and hasattr(frame, "__getitem__")):
        raise NotAFrame(found=type(frame).__name__)
    labels = {str(label): label for label in frame.columns}
    roles = choose(list(labels), choice, implicit=implicit)
    columns = {name: of_pandas(frame[labels[name]], role) for role, name in roles.items()}
    return from_table(columns, roles, pl.Float64, order, strict=strict)


def _is_polars(frame: Any) -> bool:
    return isinstance(frame, pl.LazyFrame | pl.DataFrame)


def _of_stream(
    stream: Any, choice: Choice | None, order: str | None, *, implicit: bool, strict: bool
) -> Columns:
    """Return the columns of an Arrow stream, block by block; columns that play no role are not kept.

    Whether the day or the month is first in dates follows from all of them, so such a stream is read as one.
    """
    blocks = _arrow_blocks(stream)
    first = next(blocks)
    roles = choose(first.columns, choice, implicit=implicit)
    tables: Iterable[pl.DataFrame] = (block.select(roles.values()) for block in chain([first], blocks))
    if order is None and TIME in roles and first.schema[roles[TIME]] == pl.String:
        tables = [pl.concat(tables)]
    parts = [from_table(table, roles, pl.Float64, order, strict=strict) for table in tables]
    return replace(joined_columns(parts), unread_times=unread_of_types(first.schema, roles, choice))


def _arrow_blocks(stream: Any) -> Iterator[pl.DataFrame]:
    """Yield the batches of a stream as frames; without pyarrow a stream is one frame."""
    if find_spec("pyarrow") is None:
        yield pl.DataFrame(stream)
        return
    reader = import_module("pyarrow").RecordBatchReader.from_stream(stream)
    # A stream may be empty; its columns have types all the same.
    yield pl.DataFrame(reader.schema.empty_table())
    for batch in reader:
        yield pl.DataFrame(batch)


def readable(columns: Columns, name: str) -> Columns:
    """Return the rows that have all that is read of them, each judged by itself; log how many have not."""
    fits = pl.repeat(True, len(columns.items), eager=True)
    for ids in (columns.users, columns.items):
        fits &= ids.is_not_null()
        if ids.dtype == pl.String:
            fits &= (ids != "").fill_null(False)
    if columns.values is not None:
        fits &= columns.values.cast(pl.Float32, strict=False).is_finite().fill_null(False)
    if columns.times is not None:
        fits &= columns.times.is_not_null()
    bad = len(fits) - int(fits.sum())
    if bad:
        logger.warning(
            "%d of %d rows of %s lack an id, a number or a time and were left out.", bad, len(fits), name
        )
    return columns.only(fits) if bad else columns


def unread_of_types(schema: pl.Schema, roles: Mapping[str, str], choice: Choice | None) -> str | None:
    """Return a column of dates that was not read; types are part of the layout, so no value is looked at."""
    if TIME in roles or TIME in (choice or {}):
        return None
    dates = (name for name, kind in schema.items() if kind == pl.Date or isinstance(kind, pl.Datetime))
    return next((name for name in dates if name not in roles.values()), None)


def of_pandas(column: Any, role: str = ITEM) -> pl.Series:
    """Return a series or an index of pandas as a series of polars; what is missing becomes null.

    Python objects are converted one by one, to what a column of this role holds: their common type would
    follow from everybody's values.
    """
    array = column.to_numpy()
    try:
        if array.dtype != object:
            return pl.Series(array)
        items = [None if gone else item for item, gone in zip(array.tolist(), column.isna(), strict=True)]
        if role == TIME:
            return times_of_objects(items)
        return numbers_of_objects(items) if role in (RATING, WEIGHT) else of_objects(items)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        raise NotNumeric(what=f"{role}s", kind="readable", found=f"a column of type {array.dtype}") from None


def numbers_of_objects(items: Sequence[Any]) -> pl.Series:
    """Return ratings in a container of Python objects as doubles, each by itself; text stays text."""
    if any(isinstance(item, str) for item in items):
        return pl.Series([None if item is None else str(item) for item in items], dtype=pl.String)
    return pl.Series([None if item is None else float(item) for item in items], dtype=pl.Float64)
