"""Find out which column of a table has the user, the item, the rating and the time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from discreet.core import logger, one_of
from discreet.data.errors import ColumnsReversed, NoColumn, OneColumnTwice, RatingAndWeight, RolesMissing
from discreet.data.schema import DAY_FIRST, MONTH_FIRST

USER, ITEM, RATING, TIME, WEIGHT = "user", "item", "rating", "time", "weight"
ROLES = (USER, ITEM, RATING, TIME)
#: What a column of `only` is called in errors.
CONDITION = "condition"
Choice = Mapping[str, str | None]
"""Columns: `{"user": "who", "item": "sku"}`; also `rating`, `time`, `weight`. None leaves one out."""

# Names in letters and digits only, lower case; earlier ones win.
_USUAL_NAMES = {
    USER: (
        "userid user users uid reviewerid customerid customer personid person memberid visitorid profileid "
        "visitor member reader viewer listener subscriber clientid client accountid account buyerid buyer "
        "kunde kundennr kundennummer nutzer "
        "benutzer"
    ),
    ITEM: (
        "itemid item items iid movieid movie placeid place productid product asin parentasin bookid isbn "
        "book businessid jokeid joke trackid songid song artistid animeid filmid film gameid game recipeid "
        "newsid articleid article sku courseid course titleid titel buch artikel artikelnr artikelnummer "
        "produkt"
    ),
    RATING: (
        "rating ratings score stars overall ratingvalue bookrating grade value plays playcount listencount "
        "bewertung sterne"
    ),
    TIME: (
        "timestamp time unixreviewtime ts datetime date reviewtime createdat eventtime at when purchasedat "
        "orderdate orderedat occurredat ratedat day zeit zeitpunkt datum fecha"
    ),
}
# What may follow such a name in place of `id`, as in customer_no.
_NUMBERED = re.compile(r"(id|no|nr|num|number|code|key|nummer)$")
# Other names that end so are times, too, unless they say when an item or a user began, or how long it took.
_ENDS_LIKE_TIME = re.compile(r"([_\-. ](at|on|time|date|ts)|[a-z](At|On|Time|Date|Ts)|(?i:datum))$", re.ASCII)
_OF_SOMETHING_ELSE = re.compile(
    r"releas|publish|erschein|geburt|birth|launch|join|sign|regist|expir|"
    r"(watch|play|listen|dwell|run|total)[_\-. ]?time$",
    re.I,
)
# A date, with or without the time of day, or epoch seconds or milliseconds of the years 2001 to 2033.
_LOOKS_LIKE_TIME = re.compile(
    r"(\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([T ]\d{1,2}:.*)?|1\d{9}(\d{3})?"
)

#: A comma before one or two digits means a decimal point; before three it may separate thousands.
DECIMAL_COMMA = r"^([+-]?\d+),(\d{1,2})$"


def choose(names: Sequence[str], choice: Choice | None, *, implicit: bool) -> dict[str, str]:
    """Return which column plays which role: as the caller declares, else by the usual names.

    A role that the caller gives to None is played by no column; without a user all rows are one user's.
    Weights of events are never guessed, and they take the place of ratings.
    """
    chosen = dict(without_order(choice) or {})
    for role, name in chosen.items():
        if role not in (*ROLES, WEIGHT) and name in (*ROLES, WEIGHT):
            raise ColumnsReversed(role=name, column=role)
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
    missing = [role for role in ROLES if role not in found and role not in optional]
    found |= _by_elimination([name for name in names if name not in usual.values()], found, missing)
    _check(found, names, [role for role in missing if role not in found])
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
    bare = {_NUMBERED.sub("", short): name for short, name in reversed(simple.items())}
    for role in (USER, ITEM):
        near = [bare[word] for word in _USUAL_NAMES[role].split() if word in bare]
        if role not in found and near and near[0] not in found.values():
            found[role] = near[0]
    ends = [name for name in names if _ENDS_LIKE_TIME.search(name.split(":")[0])]
    ends = [name for name in ends if name not in found.values() and not _OF_SOMETHING_ELSE.search(name)]
    if TIME not in found and len(ends) == 1:
        found[TIME] = ends[0]
    return found


def _by_elimination(names: Sequence[str], found: Mapping[str, str], missing: Sequence[str]) -> dict[str, str]:
    """Return the only other column as the item, if only the item is missing; a history has no user."""
    others = [name for name in names if name not in found.values()]
    return {ITEM: others[0]} if found and len(others) == 1 and missing == [ITEM] else {}


def unread_times(
    sample: Mapping[str, Sequence[str]], roles: Mapping[str, str], choice: Choice | None
) -> str | None:
    """Return a column without a role and whose first fields all look like times, if no times are read."""
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
    """Return which column looks like times, and how to have it read."""
    return (
        f"column {unread!r} looks like times and was not read: --columns time={unread} "
        f'(columns={{"time": {unread!r}}}) reads it, and time=none leaves it out'
    )


def date_order(choice: Choice | None) -> str | None:
    """Return what the caller declares of dates whose year is last, as in time=when:month-first."""
    name = (choice or {}).get(TIME)
    return next((one for one in (DAY_FIRST, MONTH_FIRST) if name and name.endswith(f":{one}")), None)


def without_order(choice: Choice | None) -> Choice | None:
    """Return the choice with the bare name of the column of times."""
    order = date_order(choice)
    if choice is None or order is None:
        return choice
    return {**choice, TIME: str(choice[TIME]).removesuffix(f":{order}")}


def recognizes(names: Sequence[str], choice: Choice | None) -> bool:
    """Return whether the names are a header: one that the caller names, or a usual name of user or item."""
    given = {name for name in (without_order(choice) or {}).values() if name is not None}
    usual = roles_by_name(names)
    return bool(given & set(names)) or USER in usual or ITEM in usual


def has_roles(names: Sequence[str], choice: Choice | None) -> bool:
    """Return whether names are a header with a user and an item, by the caller's names or usual ones."""
    given = without_order(choice) or {}
    usual = roles_by_name(names)
    return all(given.get(role, usual.get(role)) in names for role in (USER, ITEM))


def check_conditions(names: Sequence[str], conditions: Iterable[str]) -> None:
    """Raise for a condition on a column that a table doesn't have."""
    for column in conditions:
        if column not in names:
            raise NoColumn(column=column, role=CONDITION, columns=tuple(names), spare=True)


_PLACE = re.compile(r"column_[1-9][0-9]*")


def are_places(choice: Choice | None) -> bool:
    """Return whether all names that the caller gives are places, column_1 and so on: those of no header."""
    given = [name for name in (without_order(choice) or {}).values() if name is not None]
    return bool(given) and all(map(_PLACE.fullmatch, given))


def is_number(text: str) -> bool:
    """Return whether a field is written as a number, with a decimal point or comma."""
    try:
        float(text)
    except ValueError:
        return re.match(DECIMAL_COMMA, text.strip()) is not None
    return True


def simplify(name: str) -> str:
    """Drop a type suffix such as `:token`, a remark such as (1-10), case and punctuation."""
    return re.sub(r"\(.*\)|[^a-z0-9]", "", name.split(":")[0].lower())


# A history can do without them, so the columns of a fit may be named for it.
_NOT_NEEDED = (USER, TIME, WEIGHT)
Found = TypeVar("Found")


def as_history(attempt: Callable[[Choice | None], Found], choice: Choice | None) -> Found:
    """Read a history; columns that it does not need and does not have are removed from the choice."""
    while True:
        try:
            return attempt(choice)
        except NoColumn as absent:
            # Several users must not be read as one because their column has another name.
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
