"""Read times: numbers, dates, dates with a time zone; tell epoch seconds from finer units.

Every time is read by itself: none is both a number and a date. Whether the day or the month is first in
01/02/2025, and the zone of dates without one, are declared (proofs/reading.md).
Only the order of times matters to models, so numbers stay as they are, in whatever unit they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from discreet.core.exports import Later
from discreet.data.encoding import whole_number
from discreet.data.epochs import EPOCHS, SECONDS
from discreet.data.errors import NotNumeric
from discreet.data.schema import DAY_FIRST, MONTH_FIRST, UTC_ZONE, Schema
from discreet.data.vocabulary import readable_text

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONED = "dates with a time zone, as epoch seconds"
_UNZONED = "dates without a time zone, as epoch seconds"
_DAYS = "days, as epoch seconds"
_NUMBERS = "numbers as they are"

# How dates may be written; a text is tried with each in this order. The usual ones are tried first, since
# most columns are written in one form, and the others together.
_DATES = (
    (("%Y-%m-%d %H:%M:%S%.f", _UNZONED),),
    (("%Y-%m-%dT%H:%M:%S%.f", _UNZONED), ("%Y-%m-%dT%H:%M:%S%.f%#z", _ZONED)),
    (
        ("%Y-%m-%d %H:%M:%S%.f%#z", _ZONED),
        ("%Y-%m-%d %H:%M:%S%.f %#z", _ZONED),
        ("%Y-%m-%d %H:%M:%S%.f UTC", _ZONED),
        ("%Y-%m-%d", _DAYS),
        ("%Y/%m/%d", _DAYS),
        ("%Y/%m/%d %H:%M:%S", _UNZONED),
        ("%Y-%m-%dT%H:%M", _UNZONED),
        ("%Y-%m-%d %H:%M", _UNZONED),
    ),
)
#: What dates such as 25/12/2024 are read as, by the order of their parts.
_ORDERED = {
    DAY_FIRST: ("%d/%m/%Y", "dates, the day before the month, as epoch seconds"),
    MONTH_FIRST: ("%m/%d/%Y", "dates, the month before the day, as epoch seconds"),
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
        dates = pl.col("date").cast(pl.Datetime("us", zone))
        moments = pl.DataFrame({"date": series}).select(_seconds(dates, form, schema)).to_series()
        return Times(moments, (form,))
    if kind == pl.String:
        return moments_of_texts(series, schema)
    if not (kind.is_numeric() or kind == pl.Null):
        raise NotNumeric(what="times", kind="numbers or dates", found=str(kind))
    moments = series if kind == pl.Int64 else series.cast(pl.Int64, strict=False)
    return Times(moments, units_of(moments.drop_nulls().to_numpy()))


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
    is_date = [text.str.contains(shape).fill_null(False) for shape in (_YEAR_FIRST, YEAR_LAST)]
    looked = table.select(
        moment=whole.fill_null(0),
        shape=pl.when(whole.is_not_null()).then(_WHOLE).when(is_date[0]).then(1).when(is_date[1]).then(2)
        .otherwise(_ODD),
    )  # fmt: skip
    found, shape = looked["moment"].to_numpy().copy(), looked["shape"].to_numpy().copy()
    forms = dict.fromkeys(units_of(found[shape == _WHOLE]))
    for number, stage in _stages(schema.date_order, schema.time_zone):
        places = np.flatnonzero(shape == number)
        if not places.size:
            continue
        fitting = [pl.when(one.is_not_null()).then(place) for place, (one, _) in enumerate(stage)]
        tried = (table if places.size == shape.size else table[places]).select(
            moment=pl.coalesce([one for one, _ in stage]).fill_null(0),
            form=pl.coalesce(fitting).fill_null(-1),
        )
        which, moments = tried["form"].to_numpy(), tried["moment"].to_numpy()
        fits = which >= 0
        found[places[fits]], shape[places[fits]] = moments[fits], _WHOLE
        named = [stage[place][1] for place in np.unique(which[fits])]
        forms |= dict.fromkeys(named if all(named) else units_of(moments[fits]))
    series, left = pl.Series(found), shape != _WHOLE
    return Times(series.set(pl.Series(left), None) if left.any() else series, tuple(forms))


@cache
def _stages(order: str, zone: str) -> list[tuple[int, list[tuple[pl.Expr, str]]]]:
    """Return how texts of a shape may be read, with the form of each way; the first that fits counts."""
    schema, text = Schema(date_order=order, time_zone=zone), pl.col("text").str.strip_chars()
    known: list[tuple[int, Sequence[tuple[str, str]]]] = [(1, dates) for dates in _DATES]
    if order:
        pattern, form = _ORDERED[order]
        marked = [pattern.replace("/", mark) + clock for mark in _MARKS for clock in _CLOCKS]
        known.append((2, tuple((one, form) for one in marked)))
    found = [
        (
            shape,
            [
                (_seconds(text.str.to_datetime(one, strict=False, time_unit="us"), form, schema), form)
                for one, form in dates
            ],
        )
        for shape, dates in known
    ]
    number = text.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
    return [*found, (_ODD, [(number, "")])]


def times_of_objects(items: Sequence[Any], schema: Schema) -> pl.Series:
    """Return times in a container of Python objects, each converted by itself; null for what isn't a time.

    Whole numbers, fractions and dates become whole numbers, and texts are read as those of files are.
    """
    moments = [_moment(item, schema) for item in items]
    texts = [place for place, item in enumerate(items) if isinstance(item, str)]
    own = [readable_text(items[place]) for place in texts]
    read = moments_of_texts(pl.Series(own, dtype=pl.String), schema).moments
    for place, moment in zip(texts, read.to_list(), strict=True):
        moments[place] = moment
    return pl.Series(moments, dtype=pl.Int64)


def _moment(item: Any, schema: Schema) -> int | None:
    """Return one time: a number without its fraction, or seconds since 1970; None for anything else."""
    try:
        if isinstance(item, np.datetime64):
            item = item.astype("datetime64[us]").item()
        if isinstance(item, date):
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
