"""Read the history of one user from a file: rated items, or a list of items."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from discreet.core.checks import DataError, DiscreetError
from discreet.data import errors
from discreet.data.guessing import Description, Wishes, describe
from discreet.data.inputs import UserHistory, of_row
from discreet.data.interactions import Interactions
from discreet.data.reading.blocks import packing_of
from discreet.data.reading.listed_values import unwatched
from discreet.data.reading.readers import read
from discreet.data.reading.tables import fits
from discreet.data.roles import CONDITION, ITEM, RATING, TIME, USER, Choice, as_history, choose, without_order
from discreet.data.schema import NOT_PACKED, Schema
from discreet.data.vocabulary import Vocabulary

# None of these is in a file with one column; a blank may, within an id.
_BETWEEN_COLUMNS = (",", ";", "\t", "|", "::")
# Is in no file, so that a line stays whole and only its quotes are taken off.
_NOWHERE = "\x1f"


def read_history(
    path: Path,
    *,
    user: str | None = None,
    columns: Choice | None = None,
    implicit: bool = False,
    catalog: Vocabulary | None = None,
    schema: Schema | None = None,
) -> UserHistory:
    """Return one user's history; with several users in the file, `user` names one.

    A file with the header of a `schema` is read with it, and other dates in the order that it declares. If
    another header has the schema's column of items, its columns are read by the schema's names.

    A line with blanks is one item if it is in the `catalog`, and otherwise a row of a table.

    A table is in order if it has times. Of an item that comes twice the last row counts. With `implicit`
    ratings are not read, and a file of one column is a list of items, oldest first. Columns of a fit that a
    history does not need may be named and absent.
    """
    if columns is None:
        columns = shared_columns(path, schema)
    if user is not None:
        return _one_of_many(path, user, columns, schema, implicit=implicit)
    raw = _content(path)

    def attempt(choice: Choice | None) -> UserHistory:
        return _read(path, raw, choice, catalog, schema, implicit=implicit)

    try:
        return as_history(attempt, columns)
    except errors.UnclearDates:
        if schema is None or not schema.date_order or TIME in (columns or {}):
            raise
        order = {TIME: f"{schema.time}:{schema.date_order}"}
        return read_history(path, columns={**(columns or {}), **order}, implicit=implicit, catalog=catalog)
    except (errors.BadRows, errors.HeaderNotFound) as error:
        error.of_one_user = True
        raise
    except errors.UnclearHeader as error:
        # One user's own file: what may be their record may be shown to them.
        names = "item=NAME" if implicit else "item=NAME,rating=NAME"
        raise errors.HeaderUnclear(file=path.name, columns=tuple(error.first), names=names) from None


def shared_columns(path: str | Path, schema: Schema | None) -> Choice | None:
    """Return the columns of a schema that are in a text file's header, if the file isn't of its form.

    None if the header doesn't have the schema's column of items: then usual names decide.
    """
    if schema is None or not schema.item or fits(path, schema):
        return None
    try:
        header = describe(
            Path(path), Wishes(choice={USER: None, ITEM: schema.item, TIME: None}, implicit=True, declared={})
        )
    except DiscreetError:
        return None
    names = {role: getattr(schema, role) for role in (USER, ITEM, RATING, TIME)}
    roles = {role: name for role, name in names.items() if name and name in header.schema.columns}
    if not header.schema.header or ITEM not in roles:
        return None
    if TIME in roles and schema.date_order:
        roles[TIME] = f"{schema.time}:{schema.date_order}"
    return roles


def _read(
    path: Path,
    raw: bytes,
    columns: Choice | None,
    catalog: Vocabulary | None,
    schema: Schema | None,
    *,
    implicit: bool,
) -> UserHistory:
    listed = _listed_items(raw, columns, catalog)
    if implicit and listed is not None:
        return UserHistory.of(listed, None, range(len(listed)))
    is_whole = listed is None and not (schema and schema.conditions)
    plain = read_plain_history(path, raw, columns, implicit=implicit) if is_whole else None
    if plain is not None:
        return plain
    if listed is not None and not implicit:
        raise errors.HistoryRatingsNeeded()
    data = _read_people(path, columns, schema, implicit=implicit, alone=True)
    if data.n_users != 1:
        raise errors.OneUserNeeded(users=data.n_users)
    return replace(of_row(data), user=None)


def _content(path: Path) -> bytes:
    """Return a file's content, or nothing: the reader of tables states why a file can't be read."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def _one_of_many(
    path: Path, user: str, columns: Choice | None, schema: Schema | None, *, implicit: bool
) -> UserHistory:
    """Return the history of one of the users in a file."""
    data = _read_people(path, columns, schema, implicit=implicit, alone=False)
    row = int(data.users.index_of([user])[0])
    if row < 0:
        raise errors.UserNotInHistory(user=user, file=path.name)
    return of_row(data, row)


@unwatched()
def _read_people(
    path: Path, columns: Choice | None, schema: Schema | None, *, implicit: bool, alone: bool
) -> Interactions:
    """Read a history; one without a column for the user is one user's."""
    if not implicit and _lacks_ratings(path, columns, alone=alone):
        raise errors.HistoryRatingsNeeded()
    if columns is None and schema is not None and fits(path, schema):
        try:
            rule = "count" if schema.weights else "last"
            return read(path, schema=schema.with_fields(duplicates=rule), implicit=implicit)
        except DataError:
            # Only a header shows that a file has all columns.
            if schema.header:
                raise
    # Weights list the values of which a row must have one; nothing else of them is needed here.
    kept = {} if schema is None else schema.conditions
    only = [f"{name}={value}" for name, values in kept.items() for value in values]
    try:
        return _read_rows(path, columns, only, implicit=implicit, alone=alone)
    except errors.NoColumn as absent:
        if absent.role != CONDITION:
            raise
        return _read_rows(path, columns, (), implicit=implicit, alone=alone)


def _read_rows(
    path: Path, columns: Choice | None, only: Sequence[str], *, implicit: bool, alone: bool
) -> Interactions:
    try:
        return read(path, columns=columns, implicit=implicit, duplicates="last", only=only)
    except (errors.NoColumn, errors.UnclearHeader):
        raise
    except DataError:
        if not alone:
            raise
        choice = {**(columns or {}), USER: None}
        return read(path, columns=choice, implicit=implicit, duplicates="last", only=only)


def _listed_items(raw: bytes, columns: Choice | None, catalog: Vocabulary | None) -> list[str] | None:
    """Return the ids in a text file of one column, with or without a header; None if it is a table."""
    try:
        lines = [line.strip() for line in raw.decode("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        return None
    if not lines or any(mark in lines[0] for mark in _BETWEEN_COLUMNS):
        return None
    ids = [row[0] for row in csv.reader(lines, delimiter=_NOWHERE)]
    try:
        choose(ids[:1], {**(columns or {}), USER: None}, implicit=True)
        return ids[1:]
    except DataError:
        # Without a header, a line with blanks may as well be a table with blanks between its columns.
        is_known = catalog is not None and catalog.index_of(ids[:1])[0] >= 0
        return None if (" " in ids[0] and not is_known) or ITEM in (columns or {}) else ids


def _lacks_ratings(path: Path, columns: Choice | None, *, alone: bool) -> bool:
    """Return whether a text file would be a history if only it had ratings."""
    choice = {**(columns or {}), **({USER: None} if alone else {})}
    try:
        describe(path, Wishes(choice=choice, implicit=True, declared={}))
    except (errors.NoColumn, errors.UnclearHeader):
        raise
    except DiscreetError:
        return False
    try:
        describe(path, Wishes(choice=choice, declared={}))
    except errors.NoColumn as absent:
        return absent.role == RATING
    except DataError:
        return True
    return False


_MOST_BYTES = 1 << 16
_SEPARATORS = (",", ";", "\t")
# Written so, a number is the same float32 for every reader; a zero may be worth a remark.
_RATING = re.compile(r"-?[0-9]{1,5}(\.[0-9]{1,4})?")
_SECONDS = re.compile(r"0|-?[1-9][0-9]{0,17}")


def read_plain_history(
    path: Path, raw: bytes, columns: Choice | None, *, implicit: bool
) -> UserHistory | None:
    """Return what the reader of tables would, or None for a file that needs it: long, quoted, or odd."""
    try:
        if len(raw) >= _MOST_BYTES or packing_of(raw, path.name) != NOT_PACKED:
            return None
        lines = raw.decode("utf-8-sig").split("\n")
        found = _described(path, raw, without_order(columns), implicit=implicit)
    except (UnicodeDecodeError, DiscreetError):
        return None
    schema = found.schema
    if found.unread_times or schema.format != "text" or schema.comment or schema.delimiter not in _SEPARATORS:
        return None
    filled = [line.removesuffix("\r") for line in lines if line.strip()]
    rows = [line.split(schema.delimiter) for line in filled[schema.header :]]
    return _by_item(rows, schema) if _is_plain(rows, schema) else None


def _described(path: Path, raw: bytes, choice: Choice | None, *, implicit: bool) -> Description:
    try:
        return describe(path, Wishes(choice=choice, implicit=implicit, declared={}), raw)
    except DataError:
        alone = Wishes(choice={**(choice or {}), USER: None}, implicit=implicit, declared={})
        return describe(path, alone, raw)


def _is_plain(rows: list[list[str]], schema: Schema) -> bool:
    """Return whether every line has all fields, none of them quoted or with blanks around it."""
    return bool(rows) and all(
        len(row) == len(schema.columns)
        and all(field and field == field.strip() and '"' not in field and "\r" not in field for field in row)
        for row in rows
    )


def _by_item(rows: list[list[str]], schema: Schema) -> UserHistory | None:
    place = {role: schema.columns.index(name) for role, name in schema.roles.items()}
    if USER in place and len({row[place[USER]] for row in rows}) > 1:
        return None
    ratings = [row[place[RATING]] for row in rows] if RATING in place else ["1"] * len(rows)
    times = [row[place[TIME]] for row in rows] if TIME in place else None
    if not all(_RATING.fullmatch(text) and float(text) for text in ratings):
        return None
    if times is not None and not all(_SECONDS.fullmatch(text) for text in times):
        return None
    whole = schema.item_type == "integer"
    return UserHistory.of(
        [int(row[place[ITEM]]) if whole else row[place[ITEM]] for row in rows],
        [float(np.float32(text)) for text in ratings],
        None if times is None else [int(text) for text in times],
    )
