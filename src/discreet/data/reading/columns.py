"""Find out which column of a table holds the person, the item, the rating and the time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from discreet.core.checks import DataError, one_of
from discreet.core.exports import Later
from discreet.core.progress import logger
from discreet.data.errors import (
    NoColumn,
    NotNumeric,
    OneColumnTwice,
    RatingAndWeight,
    RolesMissing,
    UnreadableValues,
)
from discreet.data.reading.times import read_times
from discreet.data.schema import DAY_FIRST, MONTH_FIRST

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

USER, ITEM, RATING, TIME, WEIGHT = "user", "item", "rating", "time", "weight"
ROLES = (USER, ITEM, RATING, TIME)
Choice = Mapping[str, str | None]
"""Columns: `{"user": "who", "item": "sku"}`; also `rating`, `time`, `weight`. None leaves one out."""

# Names in letters and digits only, lower case; earlier ones win.
_USUAL_NAMES = {
    USER: (
        "userid user users uid reviewerid customerid customer personid person memberid visitorid profileid "
        "visitor member clientid client accountid account buyerid buyer kunde kundennr kundennummer nutzer "
        "benutzer"
    ),
    ITEM: (
        "itemid item items iid movieid movie placeid place productid product asin parentasin bookid isbn "
        "book businessid jokeid joke trackid songid song artistid animeid filmid film gameid game recipeid "
        "newsid articleid article sku artikel artikelnr artikelnummer produkt"
    ),
    RATING: (
        "rating ratings score stars overall ratingvalue bookrating value plays playcount listencount "
        "bewertung sterne"
    ),
    TIME: (
        "timestamp time unixreviewtime ts datetime date reviewtime createdat eventtime at when purchasedat "
        "orderdate orderedat occurredat ratedat day zeit zeitpunkt datum fecha"
    ),
}
# Other names that end so are times, too, unless they say when an item or a person began, or how long it took.
_ENDS_LIKE_TIME = re.compile(r"([_\-. ](at|time|date|ts)|[a-z](At|Time|Date|Ts))$", re.ASCII)
_OF_SOMETHING_ELSE = re.compile(
    r"releas|publish|birth|launch|join|sign|regist|expir|(watch|play|listen|dwell|run|total)[_\-. ]?time$",
    re.I,
)
# A date, with or without the time of day, or epoch seconds or milliseconds of the years 2001 to 2033.
_LOOKS_LIKE_TIME = re.compile(
    r"(\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ]\d{1,2}:.*)?|1\d{9}(\d{3})?"
)

# A message lists so many columns of a wide table.
_MOST_NAMED = 12
#: A comma before one or two digits stands for a decimal point; before three it may separate thousands.
DECIMAL_COMMA = r"^([+-]?\d+),(\d{1,2})$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Hold the columns of a table that are needed, in the order of its rows.

    `values` are ratings, or weights of events if `weighted`. `names` says which column plays which role, and
    `times_are` in which forms times were written.
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
    """Return the rows of several blocks or files in one; a block's columns are of the types of all."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        users=_one_series([part.users for part in parts]),
        items=_one_series([part.items for part in parts]),
        values=_one_or_none([part.values for part in parts]),
        times=_one_or_none([part.times for part in parts]),
        times_are=tuple(dict.fromkeys(form for part in parts for form in part.times_are)),
    )


def _one_series(parts: list[pl.Series]) -> pl.Series:
    kinds = {part.dtype for part in parts}
    if len(kinds) > 1 and not all(kind.is_numeric() for kind in kinds):
        parts = [part.cast(pl.String) for part in parts]
    return pl.concat(parts)


def _one_or_none(parts: list[pl.Series | None]) -> pl.Series | None:
    present = [part for part in parts if part is not None]
    return _one_series(present) if len(present) == len(parts) else None


def choose(names: Sequence[str], choice: Choice | None, *, implicit: bool) -> dict[str, str]:
    """Return which column plays which role: as the caller says, else by the usual names.

    A role that the caller gives to None is played by no column; without a user all rows are one person's.
    Weights of events are never guessed, and they take the place of ratings.
    """
    chosen = dict(without_order(choice) or {})
    for role in chosen:
        one_of("columns", role, (*ROLES, WEIGHT))
    if implicit or chosen.get(WEIGHT) is not None:
        if chosen.get(WEIGHT) is not None and chosen.get(RATING) is not None:
            raise RatingAndWeight()
        chosen[RATING] = None
    usual = roles_by_name(names)
    playing = {role: chosen[role] if role in chosen else usual.get(role) for role in ROLES}
    playing[WEIGHT] = chosen.get(WEIGHT)
    found = {role: name for role, name in playing.items() if name is not None}
    optional = {TIME} | {role for role, name in chosen.items() if name is None and role != ITEM}
    _check(found, names, [role for role in ROLES if role not in found and role not in optional])
    return found


def roles_by_name(names: Sequence[str]) -> dict[str, str]:
    """Return which columns have a usual name, by their role."""
    # In product.sku the last part counts, unless a column is called so itself.
    simple = {simplify(name.rpartition(".")[2]): name for name in reversed(names) if "." in name}
    simple |= {simplify(name): name for name in reversed(names)}
    matches = (
        (role, [word for word in words.split() if word in simple]) for role, words in _USUAL_NAMES.items()
    )
    found = {role: simple[words[0]] for role, words in matches if words}
    ends = [name for name in names if _ENDS_LIKE_TIME.search(name.split(":")[0])]
    ends = [name for name in ends if name not in found.values() and not _OF_SOMETHING_ELSE.search(name)]
    if TIME not in found and len(ends) == 1:
        found[TIME] = ends[0]
    return found


def unread_times(
    sample: Mapping[str, Sequence[str]], roles: Mapping[str, str], choice: Choice | None
) -> str | None:
    """Return a column that nobody named and whose first fields all look like times, if no times are read."""
    if TIME in roles or TIME in (choice or {}):
        return None
    others = ((name, [one for one in fields if one]) for name, fields in sample.items())
    likely = (
        name
        for name, fields in others
        if name not in roles.values() and fields and all(map(_LOOKS_LIKE_TIME.fullmatch, fields))
    )
    return next(likely, None)


def how_to_read(unread: str) -> str:
    """Say which column looks like times, and how to have it read."""
    return (
        f"column {unread!r} looks like times and was not read: --columns time={unread} "
        f'(columns={{"time": {unread!r}}}) reads it, and time=none leaves it out'
    )


def date_order(choice: Choice | None) -> str | None:
    """Return what the caller says of dates whose year is last, as in time=when:month-first."""
    name = (choice or {}).get(TIME)
    return next((one for one in (DAY_FIRST, MONTH_FIRST) if name and name.endswith(f":{one}")), None)


def without_order(choice: Choice | None) -> Choice | None:
    """Return the choice with the bare name of the column of times."""
    order = date_order(choice)
    if choice is None or order is None:
        return choice
    return {**choice, TIME: str(choice[TIME]).removesuffix(f":{order}")}


def recognizes(names: Sequence[str], choice: Choice | None) -> bool:
    """Tell whether the names are a header: one that the caller names, or a usual name of person or item."""
    given = {name for name in (without_order(choice) or {}).values() if name is not None}
    usual = roles_by_name(names)
    return bool(given & set(names)) or USER in usual or ITEM in usual


_PLACE = re.compile(r"column_[1-9][0-9]*")


def are_places(choice: Choice | None) -> bool:
    """Tell whether all names that the caller gives are places, column_1 and so on: those of no header."""
    given = [name for name in (without_order(choice) or {}).values() if name is not None]
    return bool(given) and all(map(_PLACE.fullmatch, given))


def looks_like_time(field: str) -> bool:
    """Tell whether a field is written as a date, or as epoch seconds or milliseconds."""
    return _LOOKS_LIKE_TIME.fullmatch(field) is not None


def is_number(text: str) -> bool:
    """Return whether a field is written as a number, with a decimal point or comma."""
    try:
        float(text)
    except ValueError:
        return re.match(DECIMAL_COMMA, text.strip()) is not None
    return True


def is_moment(text: str) -> bool:
    """Return whether a field is written as a number or a date."""
    return is_number(text) or looks_like_time(text.strip())


class UnclearHeader(DataError):
    """A first line may be names or a record. It is not quoted; `first` is for whose own record it is."""

    def __init__(self, message: str, first: Sequence[str]) -> None:
        """Hold the sentence and the fields of the line."""
        super().__init__(message)
        self.first = tuple(first)


def how_to_name(count: int, choice: Choice | None, name: str) -> str:
    """Say how the columns of a table are named, with a header and without one."""
    given = [one for one in (without_order(choice) or {}).values() if one is not None]
    found = f"{name} does not say which column is which"
    if given:
        found = f"No column of {name} is called {' or '.join(given)}, and no other name is a usual one"
    return (
        f"{found}. If its first line is a header, give the names in it: --columns "
        f"user=NAME,item=NAME,rating=NAME. Without a header columns have numbers, here column_1 to "
        f"column_{count}: --columns user=column_1,item=column_2 and so on (in Python "
        'columns={"user": "column_1", ...}).'
    )


def simplify(name: str) -> str:
    """Drop a type suffix such as `:token`, case and punctuation."""
    return re.sub(r"[^a-z0-9]", "", name.split(":")[0].lower())


# A history can do without them, so the columns of a fit may be named for it.
_NOT_NEEDED = (USER, TIME, WEIGHT)
Found = TypeVar("Found")


def as_history(attempt: Callable[[Choice | None], Found], choice: Choice | None) -> Found:
    """Read a history; columns that it does not need and does not have are left out of the choice."""
    while True:
        try:
            return attempt(choice)
        except NoColumn as absent:
            # Several people must not be read as one because their column has another name.
            if absent.role not in _NOT_NEEDED or (absent.role == USER and absent.spare):
                raise
            if absent.role == TIME:
                logger.warning("The history has no column for the time, so it is read without an order.")
            choice = {**(choice or {}), absent.role: None}


def _check(found: Mapping[str, str], names: Sequence[str], missing: Sequence[str]) -> None:
    for role, name in found.items():
        if name not in names:
            spare = bool(set(names) - set(found.values()))
            raise NoColumn(column=name, role=role, columns=tuple(names), spare=spare)
    if missing:
        raise RolesMissing(roles=tuple(missing), columns=tuple(names))
    if len(set(found.values())) < len(found):
        raise OneColumnTwice(
            roles=tuple(role for role, name in found.items() if list(found.values()).count(name) > 1)
        )


def from_table(
    table: Mapping[str, pl.Series] | pl.DataFrame,
    roles: Mapping[str, str],
    rating: type[pl.DataType],
    order: str | None = None,
    called: Mapping[str, str] | None = None,
    *,
    strict: bool = True,
) -> Columns:
    """Return the chosen columns with their types settled; refuse text where numbers belong.

    Ratings that are text become `rating`: what the same ratings would be if none of them were text. `order`
    is that of the parts of dates whose year is last; `called` are the columns' names in the file.
    """
    called = roles if called is None else called
    number = WEIGHT if WEIGHT in roles else RATING
    values, times = (table[roles[role]] if role in roles else None for role in (number, TIME))
    items = table[roles[ITEM]]
    owners = table[roles[USER]] if USER in roles else None
    read = None if times is None else read_times(times, order, owners, strict=strict)
    if read is not None and read.are_mixed:
        logger.warning(
            "Times are written in several units (%s) and compared as they stand; convert them to one.",
            "; ".join(read.forms),
        )
    return Columns(
        users=pl.zeros(len(items), pl.Int64, eager=True) if owners is None else owners,
        items=items,
        values=None if values is None else to_numbers(values, number, called[number], rating, strict=strict),
        times=None if read is None else read.moments,
        weighted=WEIGHT in roles,
        names=dict(called),
        times_are=() if read is None else read.forms,
    )


def to_numbers(
    series: pl.Series, role: str, name: str, dtype: type[pl.DataType], *, strict: bool = True
) -> pl.Series:
    """Return a numeric series; text that holds numbers becomes `dtype`, other text is counted and refused."""
    if series.dtype.is_numeric() or series.dtype == pl.Null:
        return series
    if series.dtype == pl.Boolean:
        return series.cast(pl.Float32)
    if series.dtype != pl.String:
        raise NotNumeric(what=f"{role}s", found=str(series.dtype))
    numbers = _parsed(series, dtype)
    bad = numbers.is_null() & series.is_not_null()
    if strict and bad.any():
        raise UnreadableValues(count=int(bad.sum()), of=len(series), role=role, column=name)
    return numbers


def _parsed(text: pl.Series, dtype: type[pl.DataType]) -> pl.Series:
    """Return numbers that are written as text; what is none is missing."""
    return text.str.strip_chars().str.replace(DECIMAL_COMMA, "${1}.${2}").cast(dtype, strict=False)
