"""Columns of ratings with their declared types: each value is converted by itself (proofs/reading.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from discreet.core.exports import pl
from discreet.data.errors import NotComparable, NotNumeric
from discreet.data.reading.listed_values import watch
from discreet.data.reading.tally import (
    FITS,
    ITEM_MISSING,
    ITEM_TYPE,
    OTHER,
    RATING_MISSING,
    RATING_TEXT,
    TIME_MISSING,
    TIME_TEXT,
    USER_MISSING,
    USER_TYPE,
)
from discreet.data.reading.times import is_known_date, moments_of
from discreet.data.roles import DECIMAL_COMMA, ITEM, RATING, TIME, USER, WEIGHT
from discreet.data.schema import Schema, condition_key
from discreet.data.vocabulary import WHOLE

Marks = npt.NDArray[np.uint8]
# Why a row of a role isn't read: its field is missing, or of another type.
_REASONS = {
    USER: (USER_MISSING, USER_TYPE),
    ITEM: (ITEM_MISSING, ITEM_TYPE),
    RATING: (RATING_MISSING, RATING_TEXT),
    WEIGHT: (RATING_MISSING, RATING_TEXT),
    TIME: (TIME_MISSING, TIME_TEXT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The needed columns of a table, in the order of its rows.

    IDs are text or whole numbers, `values` are singles, and `times` whole numbers. `values` are ratings, or
    weights of events if `weighted`. `names` has the column of each role, and `times_are` the forms of times.
    """

    users: pl.Series
    items: pl.Series
    values: pl.Series | None
    times: pl.Series | None
    weighted: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    times_are: tuple[str, ...] = ()
    #: A column that looks like times and was not read.
    unread_times: str | None = None

    @classmethod
    def by_role(
        cls, found: Mapping[str, pl.Series], names: Mapping[str, str], times_are: Sequence[str] = ()
    ) -> Columns:
        """Return the columns of a mapping; without users, all rows are those of one user."""
        count = len(next(iter(found.values())))
        none = pl.zeros(count, pl.Int64, eager=True)
        return cls(
            users=found.get(USER, none),
            items=found.get(ITEM, none),
            values=found.get(WEIGHT, found.get(RATING)),
            times=found.get(TIME),
            weighted=WEIGHT in found,
            names=dict(names),
            times_are=tuple(times_are),
        )

    def only(self, kept: pl.Series) -> Columns:
        """Return the rows that a mask marks."""
        return replace(
            self,
            users=self.users.filter(kept),
            items=self.items.filter(kept),
            values=None if self.values is None else self.values.filter(kept),
            times=None if self.times is None else self.times.filter(kept),
        )


def joined_columns(parts: Sequence[Columns]) -> Columns:
    """Return the rows of several blocks or files in one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        users=_joined_ids([part.users for part in parts]),
        items=_joined_ids([part.items for part in parts]),
        values=None if first.values is None else pl.concat(_present([part.values for part in parts])),
        times=None if first.times is None else pl.concat(_present([part.times for part in parts])),
        times_are=tuple(dict.fromkeys(form for part in parts for form in part.times_are)),
    )


def _joined_ids(parts: list[pl.Series]) -> pl.Series:
    """Return IDs in one series; of dictionaries, and of guesses that differ, the texts are joined."""
    is_one_type = len({part.dtype for part in parts}) == 1
    return pl.concat(parts if is_one_type else [one.cast(pl.String) for one in parts])


def _present(parts: Sequence[pl.Series | None]) -> list[pl.Series]:
    return [part for part in parts if part is not None]


def typed(
    table: Mapping[str, pl.Series], schema: Schema, marks: Marks | None = None
) -> tuple[Columns, Marks]:
    """Return the rows of a table, whose columns are named by role, and a mark for each of its rows.

    A mark states why a row isn't read. It depends on that row, on the types of the columns and on the schema.
    Rows that have a mark already aren't read.
    """
    count = len(next(iter(table.values())))
    marks = np.zeros(count, np.uint8) if marks is None else marks
    _mark_others(table, schema, marks)
    found, forms = dict[str, pl.Series](), tuple[str, ...]()
    for role in schema.roles:
        if role not in table:
            continue
        found[role], own = converted(table[role], role, schema, marks)
        forms = forms or own
    columns = Columns.by_role(found, schema.roles, forms)
    return (columns if not marks.any() else columns.only(pl.Series(marks == FITS))), marks


def _mark_others(table: Mapping[str, pl.Series], schema: Schema, marks: Marks) -> None:
    """Mark the rows that a condition of the schema skips.

    A row that can't be read keeps its mark, unless its own value shows that it is to be skipped.
    """
    for column, values in schema.conditions.items():
        if condition_key(column) in table:
            given = plain_texts(table[condition_key(column)], column)
            watch(column, given)
            is_other = ~given.is_in(values).fill_null(False).to_numpy()
            marks[is_other & ((marks == FITS) | given.is_not_null().to_numpy())] = OTHER


def plain_texts(given: pl.Series, column: str) -> pl.Series:
    """Return the values of a column as a condition states them: texts without blanks around them.

    What isn't a value of the column's type is null. Whether a condition can compare a type is the same for
    all rows.
    """
    kind = given.dtype
    if not _has_text(kind):
        raise NotComparable(column=column, found=str(kind))
    if isinstance(kind, pl.Date | pl.Datetime):
        # polars fails for the whole column if a date is out of its range.
        dates = pl.when(is_known_date(kind)).then(pl.col("date")).cast(pl.String)
        return pl.DataFrame({"date": given}).select(dates).to_series()
    if kind.is_float():
        whole = given.cast(pl.Int64, strict=False)
        as_whole = (whole.cast(kind) == given).fill_null(False)
        return whole.cast(pl.String).zip_with(as_whole, given.cast(pl.String))
    return given.cast(pl.String, strict=False).str.strip_chars()


def _has_text(kind: pl.DataType) -> bool:
    """Return whether each value of a type has a text that a condition can state."""
    texts = (pl.String, pl.Categorical, pl.Enum, pl.Null)
    return kind.is_numeric() or isinstance(kind, (*texts, pl.Boolean, pl.Date, pl.Datetime, pl.Time))


def converted(given: pl.Series, role: str, schema: Schema, marks: Marks) -> tuple[pl.Series, tuple[str, ...]]:
    """Return the values of a role with the declared type, and the forms of times; mark the other rows."""
    forms: tuple[str, ...] = ()
    if given.dtype in (pl.Categorical, pl.Enum):
        given = given.cast(pl.String)
    if role == TIME:
        found, forms = moments_of(given, schema)
    else:
        found = _ids(given, role, schema) if role in (USER, ITEM) else _numbers(given, role, schema)
    by_value = role == WEIGHT and bool(schema.weights)
    _mark(marks, given, found, *((OTHER, OTHER) if by_value else _REASONS[role]))
    return found, forms


def _mark(marks: Marks, given: pl.Series, found: pl.Series, missing: int, odd: int) -> None:
    """Mark the rows whose value is missing or not finite, or of another type."""
    bad = ~np.isfinite(found.to_numpy()) if found.dtype.is_float() else found.is_null().to_numpy()
    if not bad.any():
        return
    gone = given.is_null() | found.is_not_null()
    if given.dtype == pl.String:
        gone |= (given.str.strip_chars() == "").fill_null(False)
    elif given.dtype.is_float():
        gone |= given.is_nan().fill_null(False)
    places = bad & (marks == FITS)
    marks[places] = np.where(gone.to_numpy()[places], missing, odd)


def _ids(given: pl.Series, role: str, schema: Schema) -> pl.Series:
    """Return IDs of the declared type, without blanks around them; null for any other."""
    kind, declared = given.dtype, schema.user_type if role == USER else schema.item_type
    own = pl.col("id")
    if kind in (pl.String, pl.Null):
        text = own.cast(pl.String).str.strip_chars()
        text = pl.when(text != "").then(text)
        whole = pl.when(text.str.contains(WHOLE)).then(text).cast(pl.Int64, strict=False)
        found = text if declared == "text" else whole
    elif kind.is_integer():
        if declared == "integer":
            # Files may have whole numbers of several widths, which are joined as numbers.
            return given.cast(pl.Int64, strict=False)
        found = own.cast(pl.String)
    elif kind.is_numeric():
        whole = own.cast(pl.Int64, strict=False)
        # A fraction, or a number of more than 64 bits, isn't an ID.
        whole = pl.when(whole.cast(kind) == own).then(whole)
        found = whole if declared == "integer" else whole.cast(pl.String)
    else:
        raise NotNumeric(what=f"{role} IDs", kind="whole numbers or text", found=str(kind))
    return pl.DataFrame({"id": given}).select(found).to_series()


def _numbers(given: pl.Series, role: str, schema: Schema) -> pl.Series:
    """Return numbers as the nearest singles, or the weights of values; null for what has none."""
    if role == WEIGHT and schema.weights:
        return plain_texts(given, schema.weight).replace_strict(
            schema.weight_of, default=None, return_dtype=pl.Float32
        )
    kind = given.dtype
    if kind == pl.String:
        return pl.DataFrame({"text": given}).select(number_of(pl.col("text"), schema.decimal)).to_series()
    if kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        return given.cast(pl.Float32, strict=False)
    raise NotNumeric(what=f"{role}s", found=str(kind))


def number_of(text: pl.Expr, decimal: str) -> pl.Expr:
    """Return numbers as the nearest singles, each from its own text; null if a text isn't a number."""
    text = text.str.strip_chars()
    if decimal == "comma":
        text = text.str.replace(".", "x", literal=True).str.replace(",", ".", literal=True)
    elif decimal == "either":
        text = text.str.replace(DECIMAL_COMMA, "${1}.${2}")
    return text.cast(pl.Float32, strict=False)
