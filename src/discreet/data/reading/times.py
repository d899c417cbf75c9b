"""Read times: numbers, dates, dates with a time zone; distinguish epoch seconds from finer units.

Every time is read by itself: none is both a number and a date. Whether the day or the month is first in
01/02/2025, and the zone of dates without one, are declared (proofs/reading.md).
Only the order of times matters to models, so numbers stay as they are, in whatever unit they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from discreet.core.exports import pl
from discreet.data.encoding import whole_number
from discreet.data.epochs import EPOCHS, SECONDS
from discreet.data.errors import NotNumeric
from discreet.data.schema import DAY_FIRST, MONTH_FIRST, UTC_ZONE, Schema
from discreet.data.vocabulary import readable_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The first and the last second that dates of Python have; a time in other years isn't read.
YEARS = (-62_135_596_800, 253_402_300_799)
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_ZONED = "dates with a time zone, as epoch seconds"
_UNZONED = "dates without a time zone, as epoch seconds"
_DAYS = "days, as epoch seconds"
_NUMBERS = "numbers as they are"

# How dates may be written; a text is tried with each in this order. The usual ones are first.
_DATES = (
    ("%Y-%m-%d %H:%M:%S%.f", _UNZONED),
    ("%Y-%m-%dT%H:%M:%S%.f", _UNZONED),
    ("%Y-%m-%dT%H:%M:%S%.f%#z", _ZONED),
    ("%Y-%m-%d %H:%M:%S%.f%#z", _ZONED),
    ("%Y-%m-%d %H:%M:%S%.f %#z", _ZONED),
    ("%Y-%m-%d %H:%M:%S%.f UTC", _ZONED),
    ("%Y-%m-%d", _DAYS),
    ("%Y/%m/%d", _DAYS),
    ("%Y/%m/%d %H:%M:%S", _UNZONED),
    ("%Y-%m-%dT%H:%M", _UNZONED),
    ("%Y-%m-%d %H:%M", _UNZONED),
)
#: What dates such as 25/12/2024 are read as, by the order of their parts.
_ORDERED = {
    DAY_FIRST: ("%d/%m/%Y", "dates with the day first, as epoch seconds"),
    MONTH_FIRST: ("%m/%d/%Y", "dates with the month first, as epoch seconds"),
}
# What may follow such a date, and what may be between its parts in place of a slash.
_CLOCKS, _MARKS = ("", " %H:%M:%S", " %H:%M"), "/-."
# A year has four digits and is first, so that 1/2/25 isn't a day of the year 1. Only dates that can show the
# order of day and month are read by it.
_YEAR_FIRST = r"^\d{4}[/-]"
YEAR_LAST = r"^(\d{1,2})[/.-](\d{1,2})[/.-]\d{4}( \d{1,2}:\d{2}(:\d{2})?)?$"
# What a text looks like, apart from a date with the year first or last.
_WHOLE, _ODD = 0, 3
_IN_SECONDS = (_ZONED, _UNZONED, _DAYS, SECONDS, *(form for _, form in _ORDERED.values()))


class Times(NamedTuple):
    """Times as whole numbers, null where a text is none, and the forms they were written in."""

    moments: pl.Series
    forms: tuple[str, ...]


def are_mixed(forms: Sequence[str]) -> bool:
    """Return whether times are in several units, so that comparing them means nothing."""
    return len({SECONDS if form in _IN_SECONDS else form for form in forms} - {_NUMBERS}) > 1


def moments_of(series: pl.Series, schema: Schema) -> Times:
    """Return times as whole numbers: numbers as they are, dates as seconds since 1970; null for others."""
    kind = series.dtype
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        zone = getattr(kind, "time_zone", None)
        form = _DAYS if kind == pl.Date else _UNZONED if zone is None else _ZONED
        # polars fails for the whole column if a date is out of its range.
        dates = pl.when(is_known_date(kind)).then(pl.col("date")).cast(pl.Datetime("us", zone))
        moments = pl.DataFrame({"date": series}).select(_seconds(dates, form, schema)).to_series()
        return Times(moments, (form,))
    if kind == pl.String:
        return moments_of_texts(series, schema)
    if not (kind.is_numeric() or kind == pl.Null):
        raise NotNumeric(what="times", kind="numbers or dates", found=str(kind))
    moments = series if kind == pl.Int64 else series.cast(pl.Int64, strict=False)
    return Times(moments, units_of(moments.drop_nulls().to_numpy()))


def is_known_date(kind: Any) -> pl.Expr:
    """Return whether each `date` of a type is one that Python has."""
    first, last = _years_in(kind)
    return pl.col("date").to_physical().is_between(first, last)


def _years_in(kind: Any) -> Iterator[int]:
    """Yield the first and the last date in the unit of a type."""
    for second in YEARS:
        number = second // 86_400 if kind == pl.Date else second * _PER_SECOND[kind.time_unit]
        yield max(-(2**63), min(number, 2**63 - 1))


def _seconds(dates: pl.Expr, form: str, schema: Schema) -> pl.Expr:
    """Return dates as seconds since 1970; a clock that shows one hour twice shows its first, none its gap."""
    if form != _ZONED and schema.time_zone != UTC_ZONE:
        dates = dates.dt.replace_time_zone(schema.time_zone, ambiguous="earliest", non_existent="null")
    return dates.dt.epoch("s")


def moments_of_texts(texts: pl.Series, schema: Schema) -> Times:
    """Return times that are written as text, each read by itself.

    A text is a whole number, or a date in the first form of a fixed list that fits, or a number whose
    fraction is dropped. A declared pattern is the only form.
    """
    table, text = pl.DataFrame({"text": texts}), pl.col("text").str.strip_chars()
    if schema.date_pattern:
        form = f"dates such as {schema.date_pattern}, as epoch seconds"
        zoned = _ZONED if "%z" in schema.date_pattern or "%#z" in schema.date_pattern else form
        dates = text.str.to_datetime(schema.date_pattern, strict=False, time_unit="us")
        return Times(table.select(_seconds(dates, zoned, schema)).to_series(), (form,))
    whole = text.cast(pl.Int64, strict=False)
    fraction = text.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
    is_date = [text.str.contains(shape).fill_null(False) for shape in (_YEAR_FIRST, YEAR_LAST)]
    looked = table.select(
        moment=whole.fill_null(0),
        shape=pl.when(whole.is_not_null()).then(_WHOLE).when(is_date[0]).then(1).when(is_date[1]).then(2)
        .otherwise(_ODD),
    )  # fmt: skip
    found, shape = looked["moment"].to_numpy().copy(), looked["shape"].to_numpy().copy()
    forms = dict.fromkeys(units_of(found[shape == _WHOLE]))
    for number, pattern, form in _ways(schema.date_order):
        places = np.flatnonzero(shape == number)
        if not places.size:
            continue
        dates = _seconds(text.str.to_datetime(pattern, strict=False, time_unit="us"), form, schema)
        own = table[places].select(dates if pattern else fraction).to_series()
        fits, read = own.is_not_null().to_numpy(), own.drop_nulls().to_numpy()
        found[places[fits]], shape[places[fits]] = read, _WHOLE
        forms |= dict.fromkeys((form,) if form and read.size else units_of(read))
    series, left = pl.Series(found), shape != _WHOLE
    return Times(series.set(pl.Series(left), None) if left.any() else series, tuple(forms))


def _ways(order: str) -> Iterator[tuple[int, str, str]]:
    """Yield how texts of a shape may be read: a pattern and its form. The first that fits counts."""
    yield from ((1, *one) for one in _DATES)
    if order:
        pattern, form = _ORDERED[order]
        yield from ((2, pattern.replace("/", mark) + clock, form) for mark in _MARKS for clock in _CLOCKS)
    yield _ODD, "", ""


def times_of_objects(items: Sequence[Any], schema: Schema) -> pl.Series:
    """Return times in a container of Python objects; null for what isn't a time.

    Whole numbers, fractions and dates become whole numbers, and texts are read as those of files are.
    """
    return each_by_itself(
        items, partial(_moment, schema=schema), lambda own: moments_of_texts(own, schema).moments, pl.Int64
    )


def each_by_itself(
    items: Sequence[Any],
    read: Callable[[Any], Any],
    read_texts: Callable[[pl.Series], pl.Series],
    kind: type[pl.DataType],
) -> pl.Series:
    """Return Python objects as values of one type; none of them depends on the others."""
    texts = [readable_text(item) for item in items if isinstance(item, str)]
    own = iter(read_texts(pl.Series(texts, dtype=pl.String)).to_list())
    return pl.Series([next(own) if isinstance(item, str) else read(item) for item in items], dtype=kind)


def _moment(item: Any, schema: Schema) -> int | None:
    """Return one time: a number without its fraction, or seconds since 1970; None for anything else."""
    try:
        if isinstance(item, np.datetime64):
            item = item.astype("datetime64[us]").item()
        # pandas has a date that isn't one.
        if isinstance(item, date) and item == item:
            aware = item if isinstance(item, datetime) else datetime(item.year, item.month, item.day)
            aware = aware if aware.tzinfo else aware.replace(tzinfo=ZoneInfo(schema.time_zone))
            return (aware - _EPOCH) // timedelta(seconds=1)
        number = whole_number(item)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if -(2**63) <= number < 2**63 else None


def units_of(numbers: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """Return the units that numbers are in, as far as their size shows."""
    if not numbers.size:
        return ()
    ends = [_unit(numbers.min()), _unit(numbers.max())]
    if ends[0] == ends[1]:
        return (ends[0],)
    between = (name for name, low, high, _ in EPOCHS if np.any((numbers >= low) & (numbers < high)))
    return (*((_NUMBERS,) if numbers.min() < EPOCHS[0][1] else ()), *between)


def _unit(number: Any) -> str:
    return next((name for name, low, high, _ in EPOCHS if low <= number < high), _NUMBERS)
