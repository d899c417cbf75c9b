"""Hand rows over as data frames and lists of many kinds, for the search over neighboring rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl

from discreet.data import Interactions, Schema, from_frame

_NAMES = ("user", "item", "rating", "time")
_BATCH = 2
Row = Sequence[str]


def value_of(text: str) -> Any:
    """Return what a program might have in place of a text: a number of some type, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _objects(rows: list[Row]) -> dict[str, list[Any]]:
    """Return columns of Python objects, whose types follow from the text of each and differ."""
    found = {name: [row[place] for row in rows] for place, name in enumerate(_NAMES)}
    return {
        **found,
        "item": [_odd_id(one) for one in found["item"]],
        "rating": [_odd_number(one) for one in found["rating"]],
        "time": [_odd_time(one) for one in found["time"]],
    }


def _odd_id(text: str) -> Any:
    kinds: dict[str, Any] = {"7": 7, "1.5": 1.5, "nan": None, "-0": np.float64(7.0), "+7": Decimal("7.50")}
    kinds |= {"null": True, "1e400": "\ud800", "{": b"bytes", "[1]": [1], "9223372036854775808": 2**63}
    kinds |= {"::": 10**5000, ";": np.timedelta64(3, "s"), "|": Decimal("1e999999999"), "'": Decimal("sNaN")}
    return kinds.get(text, text)


def _odd_number(text: str) -> Any:
    value = value_of(text)
    kinds: dict[str, Any] = {"3": np.float32(0.1), "4.5": Fraction(9, 2), "5": Decimal("5.1"), "null": True}
    kinds |= {"{": "\ud800", "[1]": [1], "9223372036854775808": 10**400, "2": np.int8(2)}
    kinds |= {"'": Decimal("sNaN"), "\\": complex(1)}
    return kinds.get(text, value)


def _odd_time(text: str) -> Any:
    kinds: dict[str, Any] = {"2005-03-01": datetime(2005, 3, 1), "5": np.int16(5), "{": "\ud800"}
    kinds |= {"2005-03-01T12:00:00Z": datetime(2005, 3, 1, 12, tzinfo=UTC), "null": np.datetime64("NaT")}
    kinds |= {"[1]": Decimal("1.5"), "\\": True, "'": np.datetime64("2005-03-01"), "#": datetime.max}
    kinds |= {"::": Decimal("sNaN"), ";": np.datetime64("300000-01-01"), "|": datetime.min}
    return kinds.get(text, value_of(text))


class _Container:
    """A data frame like that of pandas, whose columns are Python objects of several types."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self._values = list(columns), columns

    def __getitem__(self, name: str) -> Any:
        values = np.empty(len(self._values[name]), dtype=object)
        for place, one in enumerate(self._values[name]):
            values[place] = one
        return _Objects(values)


class _Objects:
    """A column of Python objects."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self._values = values

    def to_numpy(self, dtype: type | None = None) -> Any:
        """Return the objects."""
        return self._values


def _of_objects(rows: list[Row], schema: Schema) -> Any:
    return _Container(_objects(rows))


def _of_pandas(rows: list[Row], schema: Schema) -> Any:
    """Return a frame of pandas with types that know missing values, and with categories."""
    pd = import_module("pandas")
    ratings = [_odd_number(row[2]) for row in rows]
    floats = [one if isinstance(one, float | int) and abs(one) < 1e308 else None for one in ratings]
    return pd.DataFrame(
        {
            "user": pd.Series(pd.Categorical([row[0] for row in rows])),
            "item": pd.Series([row[1] for row in rows], dtype=object),
            "rating": pd.array(floats, dtype="Float64"),
            "time": pd.array([_small(row[3]) for row in rows], dtype="Int64"),
        }
    )


def _small(text: str) -> int | None:
    value = value_of(text)
    return value if isinstance(value, int) and abs(value) < 2**63 else None


#: Numbers in place of names; some have more than 18 digits, or more than 63 bits.
WHOLE_USERS = {
    "ann": 1234567890123456789, "bob": 2**63 + 5, "7": 7, "007": 8, "#tag": 9, "joé": 10**18, "x y": 12,
}  # fmt: skip


def _of_numbers(rows: list[Row], schema: Schema) -> Any:
    """Return a frame of pandas whose user IDs are numbers, or missing, and whose times are dates of Arrow."""
    pd, pa = import_module("pandas"), import_module("pyarrow")
    choice = _choice(schema)
    kinds = ("UInt64", pd.ArrowDtype(pa.uint64()), "Float64", pd.ArrowDtype(pa.decimal128(38, 2)), object)
    kind = kinds[choice % len(kinds)]
    users = [WHOLE_USERS.get(row[0], row[0] if kind is object else None) for row in rows]
    exact = [None if one is None else Decimal(one) for one in users] if "decimal" in str(kind) else users
    column = pd.Series(pd.Categorical(users)) if choice % 7 == 0 else pd.Series(exact, dtype=kind)
    unit = ("s", "ms", "us", "ns")[choice % 4]
    gap, old = datetime(2005, 3, 27, 2, 30), datetime(1960, 1, 1, 0, 0, 1)
    dates = {"5": gap, "-3": old, "2005-03-01": datetime(2005, 3, 1)}
    times = pd.Series([dates.get(row[3]) for row in rows], dtype=pd.ArrowDtype(pa.timestamp(unit)))
    items = pd.Series([row[1] for row in rows], dtype=object)
    return pd.DataFrame({"user": column, "item": items, "rating": len(rows) * [3], "time": times})


def _choice(schema: Schema) -> int:
    """Return a number that follows from a schema, and so from no row."""
    letters = (schema.delimiter, schema.comment, schema.escape, schema.quote, schema.decimal)
    return len("".join(letters)) + 2 * len(schema.date_order) + len(schema.duplicates)


def _of_arrow(rows: list[Row], schema: Schema) -> Any:
    """Return a stream of short batches, with dictionaries, runs and long texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pl.DataFrame([tuple(row) for row in rows], schema=dict.fromkeys(_NAMES, pl.String), orient="row")
    batches = []
    for start in range(0, max(1, table.height), _BATCH):
        part = table.slice(start, _BATCH).to_arrow()
        columns = [
            pc.run_end_encode(part["user"].combine_chunks().cast(pa.string())),
            part["item"].combine_chunks().cast(pa.string()).dictionary_encode(),
            part["rating"].combine_chunks().cast(pa.large_string()),
            part["time"].combine_chunks().cast(pa.string()),
        ]
        batches.append(pa.RecordBatch.from_arrays(columns, names=list(_NAMES)))
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


#: Conditions on the columns of `with_types`; no condition can compare bytes.
TYPED_CONDITIONS = {
    "day": ("1970-01-01", "1970-01-06", "1970-01-07"),
    "moment": ("1970-01-01 00:00:00.000001", "1970-01-01 00:00:00.000005"),
    "clock": ("00:00:00",),
    "is_best": ("true",),
    "stored": ("i1",),
}


def with_types(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table of texts with columns of other types, in which strangers' dates are beyond calendars."""
    whole = pl.col("time").cast(pl.Int64, strict=False)
    number = pl.when(whole < -9).then(whole).otherwise(whole % 9)
    return table.with_columns(
        day=number.clip(-(2**31)).cast(pl.Int32).cast(pl.Date),
        moment=number.cast(pl.Datetime("us")),
        clock=number.cast(pl.Time, strict=False),
        is_best=pl.col("rating") == "5",
        stored=pl.Series([one.encode("latin-1", "replace") for one in table["item"]], dtype=pl.Binary),
    )


def _of_types(rows: list[Row], schema: Schema) -> Any:
    """Return a frame with numbers where files have texts; other texts are missing."""
    table = pl.DataFrame([tuple(row) for row in rows], schema=dict.fromkeys(_NAMES, pl.String), orient="row")
    times = pl.col("time").cast(pl.Float64, strict=False)
    kinds = (times, times.cast(pl.UInt64, strict=False), pl.col("time").cast(pl.Decimal(38, 2), strict=False))
    moments = pl.col("time").cast(pl.Int64, strict=False)
    dates = [pl.Datetime("us"), pl.Datetime("ms"), pl.Datetime("ns", "Asia/Tokyo")]
    days = moments.cast(pl.Int32, strict=False).cast(pl.Date)
    chosen = [*kinds, moments, *(moments.cast(date) for date in dates), days]
    return with_types(table).with_columns(
        pl.col("user", "item").cast(pl.Categorical),
        pl.col("rating").cast(pl.Float64, strict=False),
        chosen[_choice(schema) % len(chosen)].alias("time"),
    )


def _of_duckdb(rows: list[Row], schema: Schema) -> Any:
    """Return a relation of DuckDB, whose types are wider than those of other frames."""
    duckdb = import_module("duckdb")
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("CREATE TABLE rated (user VARCHAR, item VARCHAR, rating VARCHAR, time VARCHAR)")
    kept = [[cell.replace("\x00", "") for cell in row] for row in rows]
    if kept:
        connection.executemany("INSERT INTO rated VALUES (?, ?, ?, ?)", kept)
    kinds = ("HUGEINT", "UBIGINT", "DOUBLE", "TIMESTAMP", "DATE", "TIMESTAMPTZ", "DECIMAL(30, 3)", "VARCHAR")
    time = f"TRY_CAST(time AS {kinds[_choice(schema) % len(kinds)]}) AS time"
    return connection.sql(f"SELECT user, item, TRY_CAST(rating AS FLOAT) AS rating, {time} FROM rated")


_MAKERS: dict[str, Callable[[list[Row], Schema], Any]] = {
    "objects": _of_objects,
    "pandas": _of_pandas,
    "numbers": _of_numbers,
    "arrow": _of_arrow,
    "duckdb": _of_duckdb,
    "typed": _of_types,
}
#: Kinds of frames; libraries that aren't installed are not tried.
_NEEDS = {"objects": "polars", "typed": "polars", "duckdb": "duckdb"}
KINDS = ("lists", *(kind for kind in _MAKERS if find_spec(_NEEDS.get(kind, "pyarrow"))))


def read_frame(kind: str, rows: list[Row], schema: Schema, options: dict[str, Any]) -> Interactions:
    """Return the rows as they are read from a frame, or from lists."""
    if kind != "lists":
        return from_frame(_MAKERS[kind](rows, schema), **options)
    columns = _objects(rows)
    # Lists have no rule for rows that can't be read, so these are not among them.
    columns["rating"] = [one if isinstance(one, float | int) else 1 for one in columns["rating"]]
    columns["rating"] = [one if abs(one) < 1e30 else 1 for one in columns["rating"]]
    columns["time"] = [one if type(one) is int and abs(one) < 2**63 else 1.5 for one in columns["time"]]
    columns["item"] = [one if isinstance(one, str) else "i1" for one in columns["item"]]
    known = [one in options["catalog"] for one in columns["item"]]
    kept = {
        name: [one for one, keep in zip(column, known, strict=True) if keep]
        for name, column in columns.items()
    }
    return Interactions.from_arrays(
        *kept.values(),
        catalog=options["catalog"],
        low=options["low"],
        high=options["high"],
        duplicates=schema.duplicates,
    )
