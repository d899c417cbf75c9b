"""Read times: numbers, dates, dates with a time zone; tell epoch seconds from finer units.

Every time is read by itself: none is both a number and a date. The one thing that dates share is whether the
day or the month comes first in 01/02/2025: that is declared, or dates of two users must show it and none the
other. So nobody's dates are read otherwise because of one other user's (proofs/reading.md).
Only the order of times matters to models, so numbers stay as they are, in whatever unit they come.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.core.checks import DataError
from discreet.core.exports import Later
from discreet.data.encoding import whole_number
from discreet.data.reading.epochs import EPOCHS, SECONDS
from discreet.data.schema import DAY_FIRST, MONTH_FIRST

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZONED = "dates with a time zone, as epoch seconds"
_UNZONED = "dates without a time zone, taken for UTC, as epoch seconds"
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
# What may follow such a date, and what may stand between its parts in place of a slash.
_CLOCKS, _MARKS = ("", " %H:%M:%S", " %H:%M"), "/-."
#: The order of day and month, by the form of times.
ORDERS = {form: order for order, (_, form) in _ORDERED.items()}
ORDERED_FORMS = frozenset(ORDERS)
_YEAR_FIRST = r"^\d{4}[/-]"
_PARTS = r"^(\d{1,2})[/.-](\d{1,2})[/.-]\d{4}( \d{1,2}:\d{2}(:\d{2})?)?$"
_IN_SECONDS = (_ZONED, _UNZONED, _DAYS, SECONDS, *ORDERED_FORMS)


class Times(NamedTuple):
    """Hold times as whole numbers, and the forms they were written in, in a fixed order."""

    moments: pl.Series
    forms: tuple[str, ...]

    @property
    def are_mixed(self) -> bool:
        """Return whether the times are in several units, so that comparing them means nothing."""
        units = {SECONDS if form in _IN_SECONDS else form for form in self.forms}
        return len(units - {_NUMBERS}) > 1


def read_times(
    series: pl.Series, order: str | None = None, owners: pl.Series | None = None, *, strict: bool = True
) -> Times:
    """Return times as whole numbers: numbers as they are, dates as seconds since 1970.

    `order` says whether the day or the month comes first where the year is last; None leaves it to the dates,
    of which each belongs to one of the `owners`, or all to one person.
    What is neither a number nor a date is refused, or missing if this is not `strict`.
    """
    if series.dtype.is_temporal() and series.dtype != pl.Time:
        zone = getattr(series.dtype, "time_zone", None)
        form = _DAYS if series.dtype == pl.Date else _UNZONED if zone is None else _ZONED
        return Times(series.cast(pl.Datetime("us", zone)).dt.epoch("s"), (form,))
    if series.dtype != pl.String:
        return Times(series, units_of(series))
    if order is None:
        order = shown_order(series, owners)
    found = moments_of_texts(series, order)
    if strict:
        _refuse_others(found.moments, series)
    return found


def moments_of_texts(series: pl.Series, order: str | None, pattern: str = "") -> Times:
    """Return times that are written as text, each read by itself; null where it is none.

    A text is a whole number, or a date in the first form of a fixed list that fits, or a number. `order`
    declares the order of day and month, and a `pattern` the only form of dates.
    """
    text = series.str.strip_chars()
    if pattern:
        moments = text.str.to_datetime(pattern, strict=False, time_unit="us")
        return Times(moments.dt.epoch("s"), (f"dates such as {pattern}, as epoch seconds",))
    whole = text.cast(pl.Int64, strict=False)
    forms = dict.fromkeys(units_of(whole))
    found, left = whole.fill_null(0).to_numpy().copy(), (whole.is_null() & text.is_not_null()).to_numpy()
    # A year has four digits and is first, so that 1/2/25 isn't a day of the year 1. Only dates that can show
    # the order of day and month are read by it.
    for shape, known in (*((_YEAR_FIRST, dates) for dates in _DATES), (_PARTS, _in_order(order)), ("", ())):
        places = np.flatnonzero(left)
        if not places.size:
            break
        tried = pl.DataFrame({"text": text.gather(places)}).select(*_first_fitting(shape, known))
        table = tried.fill_null(-1)
        fits = table["form"].to_numpy() >= 0
        found[places[fits]], left[places[fits]] = table["moment"].to_numpy()[fits], False
        used = np.unique(table["form"].to_numpy()[fits])
        units = [known[place][1] for place in used] if known else units_of(pl.Series(found[places[fits]]))
        forms |= dict.fromkeys(units)
    missing = left | text.is_null().to_numpy()
    moments = pl.Series(found)
    return Times(moments.set(pl.Series(missing), None) if missing.any() else moments, tuple(forms))


def _first_fitting(shape: str, known: Sequence[tuple[str, str]]) -> tuple[pl.Expr, pl.Expr]:
    """Return dates as seconds, each in the first known form that fits, and the place of that form.

    Without known forms, texts are numbers, whose fraction is dropped.
    """
    text = pl.col("text")
    if not known:
        whole = text.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
        return whole.alias("moment"), pl.when(whole.is_not_null()).then(0).alias("form")
    text = pl.when(text.str.contains(shape)).then(text)
    tried = [text.str.to_datetime(form, strict=False, time_unit="us").dt.epoch("s") for form, _ in known]
    places = [pl.when(one.is_not_null()).then(place) for place, one in enumerate(tried)]
    return pl.coalesce(tried).alias("moment"), pl.coalesce(places).alias("form")


def _refuse_others(moments: pl.Series, series: pl.Series) -> None:
    bad = moments.null_count() - series.null_count()
    if bad:
        raise DataError(
            f"{bad:,} of {len(series):,} times are neither numbers nor dates (as 2005-03-01T12:00:00+00:00); "
            "choose another column, leave such rows out (--skip-bad-lines), or leave the times out with "
            "columns time=None (--columns time=none)."
        )


def times_of_objects(items: Sequence[Any]) -> pl.Series:
    """Return times in a container of Python objects, each converted by itself.

    Whole numbers, fractions and dates become whole numbers. If texts are among them, all become texts of
    these, which `read_times` reads one by one. What is missing, or no time, is null.
    """
    moments = [_moment(item) for item in items]
    if not any(isinstance(item, str) for item in items):
        return pl.Series(moments, dtype=pl.Int64)
    texts = [
        item if isinstance(item, str) else None if moment is None else str(moment)
        for item, moment in zip(items, moments, strict=True)
    ]
    return pl.Series(texts, dtype=pl.String)


def _moment(item: Any) -> int | None:
    """Return one time: a number without its fraction, or seconds since 1970; None for anything else."""
    try:
        if isinstance(item, date):
            aware = item if isinstance(item, datetime) else datetime(item.year, item.month, item.day)
            aware = aware if aware.tzinfo else aware.replace(tzinfo=UTC)
            return (aware - _EPOCH) // timedelta(seconds=1)
        if isinstance(item, np.datetime64):
            return int(item.astype("datetime64[s]").astype(np.int64))
        number = whole_number(item)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if -(2**63) <= number < 2**63 else None


def _in_order(order: str | None) -> list[tuple[str, str]]:
    """Return the forms of dates whose year is last."""
    if not order:
        return []
    form, name = _ORDERED[order]
    return [(form.replace("/", mark) + clock, name) for mark in _MARKS for clock in _CLOCKS]


def shown_order(texts: pl.Series, owners: pl.Series | None) -> str | None:
    """Return the order of day and month that dates show; raise a DataError if nothing shows it.

    One user's dates alone do not: with others in their place everybody's would be read otherwise.
    """
    text = texts.cast(pl.String).str.strip_chars()
    parts = pl.DataFrame({"text": text}).select(
        first=pl.col("text").str.extract(_PARTS, 1).cast(pl.Int64),
        second=pl.col("text").str.extract(_PARTS, 2).cast(pl.Int64),
    )
    if parts["first"].null_count() == len(text):
        return None
    shows = {DAY_FIRST: parts["first"] > 12, MONTH_FIRST: parts["second"] > 12}
    shown = [way for way, dates in shows.items() if dates.any()]
    why = "both orders occur" if shown else "no part of any is above 12"
    if len(shown) == 1:
        if owners is None or _of_two(owners, shows[shown[0]]):
            return shown[0]
        why = "only one user's dates show it"
    raise DataError(
        f"Dates such as DD/MM/YYYY or MM/DD/YYYY do not show which comes first ({why}); say it with "
        f'--columns time=NAME:{DAY_FIRST} or time=NAME:{MONTH_FIRST} (columns={{"time": '
        f'"NAME:{MONTH_FIRST}"}}).'
    )


def is_year_last(texts: Sequence[str]) -> bool:
    """Return whether a text is a date whose year is last."""
    return any(re.match(_PARTS, text.strip()) for text in texts)


def _of_two(owners: pl.Series, dates: pl.Series) -> bool:
    """Tell whether marked dates are of two users, or of all that there are."""
    return owners.filter(dates.fill_null(False)).n_unique() >= min(owners.n_unique(), 2)


def units_of(series: pl.Series) -> tuple[str, ...]:
    """Return the units that numbers are in, as far as their size tells."""
    if not series.dtype.is_numeric() or series.null_count() == len(series):
        return ()
    least, most = _unit(series.min()), _unit(series.max())
    if least == most:
        return (least,)
    between = (name for name, low, high, _ in EPOCHS if series.is_between(low, high, closed="left").any())
    small = (series < EPOCHS[0][1]).any()
    return (*((_NUMBERS,) if small else ()), *between)


def _unit(number: Any) -> str:
    return next((name for name, low, high, _ in EPOCHS if low <= number < high), _NUMBERS)
