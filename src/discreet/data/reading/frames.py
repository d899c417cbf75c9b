"""Read the columns of data frames: polars, pandas, pyarrow, and anything that streams Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core.checks import DiscreetError
from discreet.core.exports import pl
from discreet.data.errors import NotAFrame, UnreadableFrame
from discreet.data.reading.columns import Columns, joined_columns, number_of, typed
from discreet.data.reading.tally import Tally
from discreet.data.reading.times import YEARS, each_by_itself, times_of_objects
from discreet.data.roles import RATING, TIME, USER, WEIGHT
from discreet.data.schema import ROLES, Schema
from discreet.data.vocabulary import of_objects, readable_text

#: Columns by role: series of polars, or of pandas.
Block = Mapping[str, Any]


class Frame(NamedTuple):
    """A data frame: the types of its columns, None for those of pandas, and what yields blocks of some."""

    kinds: Mapping[str, Any]
    blocks: Callable[[Mapping[str, str]], Iterator[Block]]


def opened(frame: Any) -> Frame:
    """Return the columns of a frame of polars, pandas or pyarrow, or of an Arrow stream, read once."""
    if isinstance(frame, pl.LazyFrame | pl.DataFrame):
        return Frame(frame.collect_schema(), lambda roles: iter([_chosen(frame, roles)]))
    if hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "iloc"):
        return _of_stream(frame)
    if not (hasattr(frame, "columns") and hasattr(frame, "__getitem__")):
        raise NotAFrame(found=type(frame).__name__)
    labels = {str(label): label for label in frame.columns}
    return Frame(
        dict.fromkeys(labels),
        lambda roles: iter([{role: frame[labels[name]] for role, name in roles.items()}]),
    )


def _chosen(table: pl.DataFrame | pl.LazyFrame, roles: Mapping[str, str]) -> Block:
    kept = (
        table.lazy().select(list(dict.fromkeys(roles.values()))).collect()
        if isinstance(table, pl.LazyFrame)
        else table
    )
    return {key: kept[name] for key, name in roles.items()}


def _of_stream(stream: Any) -> Frame:
    """Open an Arrow stream; without pyarrow it is one block."""
    if find_spec("pyarrow") is None:
        whole = pl.DataFrame(stream)
        return Frame(whole.schema, lambda roles: iter([_chosen(whole, roles)]))
    reader = import_module("pyarrow").RecordBatchReader.from_stream(stream)
    # A stream may be empty; its columns have types all the same.
    empty = pl.DataFrame(_decoded(reader.schema.empty_table()))

    def blocks(roles: Mapping[str, str]) -> Iterator[Block]:
        yield _chosen(empty, roles)
        for batch in reader:
            yield _chosen(pl.DataFrame(_decoded(batch.select(list(dict.fromkeys(roles.values()))))), roles)

    return Frame(empty.schema, blocks)


def _decoded(table: Any) -> Any:
    """Return an Arrow table without runs, which polars doesn't read."""
    is_run = import_module("pyarrow").types.is_run_end_encoded
    for place, column in enumerate(table.columns):
        if is_run(column.type):
            plain = import_module("pyarrow.compute").run_end_decode(column)
            table = table.set_column(place, table.schema.names[place], plain)
    return table


def read_block(block: Block, schema: Schema, tally: Tally) -> Columns:
    """Return the rows of a block with the types that the schema declares; count the others."""
    found, marks = typed({role: as_polars(one, role, schema) for role, one in block.items()}, schema)
    tally.add(marks)
    return found


@contextmanager
def or_unreadable(frame: object) -> Iterator[None]:
    """Raise an `UnreadableFrame` if a library can't hand rows over: its own error may quote one of them."""
    try:
        yield
    except DiscreetError:
        raise
    # Polars raises a panic, which is not an `Exception`; streams raise whatever is behind them does.
    except (Exception, pl.exceptions.PanicException):
        raise UnreadableFrame(found=type(frame).__name__) from None


def read_blocks(blocks: Iterator[Block], schema: Schema, name: str, *, above: int | None = 0) -> Columns:
    """Return the rows of all blocks of a frame, with this many rows above; None if rows have no numbers."""
    tally = Tally(name, schema.roles, above=above)
    found = joined_columns([read_block(block, schema, tally) for block in blocks])
    tally.settle(schema)
    return found


def as_polars(column: Any, role: str, schema: Schema | None = None) -> pl.Series:
    """Return a column of polars or pandas as a series of polars."""
    return column if isinstance(column, pl.Series) else of_pandas(column, role, schema)


def texts_of(column: Any) -> pl.Series | None:
    """Return the texts of a column, null for anything else in it; None if its type has none."""
    if isinstance(column, pl.Series):
        return column if column.dtype == pl.String else None
    if isinstance(getattr(column, "dtype", None), np.dtype) and column.dtype != object:
        return None
    own = (one if isinstance(one, str) else None for one in column.to_numpy().tolist())
    return pl.Series([None if one is None else readable_text(one) for one in own], dtype=pl.String)


def of_pandas(column: Any, role: str, schema: Schema | None = None) -> pl.Series:
    """Return a series or an index of pandas as a series of polars; what is missing becomes null.

    The type of the column decides the conversion, and not whether something is missing. Python objects are
    converted one by one, to what a column of this role has: their common type would follow from all users'
    values. So would that of numbers and missing values, which pandas makes doubles.
    """
    kind: Any = getattr(column, "dtype", None)
    if hasattr(kind, "categories"):
        own = of_pandas(column.dtype.categories, role, schema)
        codes = pl.Series(getattr(column, "cat", column).codes.copy(), dtype=pl.Int64)
        return own.gather(codes.set(codes < 0, None))
    # Sparse columns of pandas are arrays of one type as well.
    if (isinstance(kind, np.dtype) and kind.kind != "O") or hasattr(kind, "fill_value"):
        return pl.Series(_in_known_unit(column.to_numpy()))
    if getattr(kind, "kind", "O") in "iufb":
        numbers = column.to_numpy(dtype=kind.numpy_dtype, na_value=0)
        return pl.Series(numbers).set(pl.Series(np.asarray(column.isna())), None)
    if str(getattr(kind, "pyarrow_dtype", "")).startswith("date"):
        # As objects, all of them fail if one is a date that Python doesn't have.
        return pl.Series(column.array.__arrow_array__())
    items = column.to_numpy(dtype=object).tolist()
    if role == TIME:
        return times_of_objects(items, schema or Schema())
    by_value = role == WEIGHT and schema is not None and schema.weights
    if role in (RATING, WEIGHT) and not by_value:
        return numbers_of_objects(items, schema or Schema())
    if role not in ROLES:
        # A condition, or a rule of weights, states them as text, and True as true.
        return of_objects([str(one).lower() if isinstance(one, bool) else one for one in items], "text")
    declared = "" if schema is None else schema.user_type if role == USER else schema.item_type
    return of_objects(items, declared)


def _in_known_unit(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return dates in seconds as milliseconds, since polars has no type for them; others as they are."""
    if array.dtype != np.dtype("datetime64[s]"):
        return array
    seconds = array.view(np.int64)
    far = (seconds < YEARS[0]) | (seconds > YEARS[1])
    return np.where(far, np.datetime64("NaT"), array).astype("datetime64[ms]")


def numbers_of_objects(items: Sequence[Any], schema: Schema) -> pl.Series:
    """Return ratings in a container of Python objects, each read by itself; null for what isn't a number."""

    def read_texts(own: pl.Series) -> pl.Series:
        return own.to_frame("text").select(number_of(pl.col("text"), schema.decimal)).to_series()

    return each_by_itself(items, _number, read_texts, pl.Float64)


def _number(item: Any) -> float | None:
    try:
        return float(item)
    except (TypeError, ValueError, OverflowError):
        return None
