"""Guess the schema of any source: Parquet, cells and data frames have types; text is described by its lines.

As in `guessing`, a guess may depend on any user's rows, and the schema lists what was guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.core import logger
from discreet.core.exports import pl
from discreet.data.errors import DeclaredByLayout, NoColumn, RolesMissing
from discreet.data.guessing import Wishes, describe, is_year_last, keys_of, with_order
from discreet.data.reading.blocks import PARQUET, magic
from discreet.data.reading.cells import (
    Address,
    address_of,
    read_texts,
    refuse_first_row,
    refuse_first_sheet,
    rows_above_header,
)
from discreet.data.reading.frames import as_polars, texts_of
from discreet.data.reading.limits import or_damaged, scanned
from discreet.data.reading.named import has_own_form, named_schema
from discreet.data.reading.tables import keys_in, tables_at
from discreet.data.roles import ITEM, RATING, TIME, USER, Choice, check_conditions, choose, has_roles
from discreet.data.schema import ROLES, UTF_8, Schema
from discreet.data.vocabulary import WHOLE


def schema_of(path: str | Path, wishes: Wishes) -> tuple[Schema, str | None]:
    """Return the schema of a file, or of the first of several, and a column of times that is not read."""
    if has_own_form(wishes.layout):
        return _of_layout(str(wishes.layout), wishes), None
    address = address_of(path) if wishes.layout is None else None
    if address is not None:
        return _of_cells(address, wishes), None
    file = tables_at(path)[0]
    wishes = replace(wishes, keys=keys_in(file))
    # A layout is declared, and one user's first row must not look like another.
    if wishes.layout is None and magic(file) == PARQUET:
        return _of_parquet(file, wishes)
    found = describe(file, wishes)
    schema = found.schema
    is_pairs = not schema.header and len(schema.columns) == 2 and schema.delimiter == " "
    if wishes.implicit and is_pairs and not wishes.choice:
        logger.warning(
            "%s has two columns and no times, so it is read without an order. If each user's lines are "
            "oldest first, pass layout='sasrec' (--layout sasrec).",
            file.name,
        )
    return schema, found.unread_times


def _of_layout(layout: str, wishes: Wishes) -> Schema:
    said = wishes.declared
    taken = [role for role, name in (wishes.choice or {}).items() if name is not None]
    taken += sorted({"delimiter", "comment", "escape", "only", "weights"} & set(said))
    if taken:
        raise DeclaredByLayout(layout=layout, names=tuple(taken))
    without = set(wishes.choice or {}) | ({RATING} if wishes.implicit else set())
    return named_schema(layout, without, said.get("bad_rows", "reject"), said.get("encoding", UTF_8))


def _of_parquet(file: Path, wishes: Wishes) -> tuple[Schema, str | None]:
    with or_damaged(file):
        table = scanned(file)
        kinds = {**table.collect_schema(), **dict.fromkeys(wishes.keys, pl.String)}
        roles = choose(list(kinds), wishes.choice, implicit=wishes.implicit)
        check_conditions(list(kinds), wishes.conditions)
        schema = _typed_schema("parquet", kinds, roles, wishes)
        own = {role: roles[role] for role in (TIME, USER) if roles.get(role) not in (None, *wishes.keys)}
        if TIME in own and kinds[own[TIME]] == pl.String:
            dates = table.select(own.values()).collect()
            schema = with_order(schema, dates[own[TIME]], dates[own[USER]] if USER in own else None)
    return schema, unread_of_types(kinds, roles, wishes.choice)


def _of_cells(address: Address, wishes: Wishes) -> Schema:
    """Return the schema of a table of cells, guessed from all of its rows."""
    skip = wishes.declared.get("skip_rows")
    if skip is None:
        skip = rows_above_header(address, lambda names: has_roles(names, wishes.choice))
    address = address._replace(skip=skip)
    table = read_texts(address)
    try:
        roles = choose(table.columns, wishes.choice, implicit=wishes.implicit)
    except (NoColumn, RolesMissing) as missing:
        if isinstance(missing, RolesMissing) and {USER, ITEM} & set(missing.roles):
            refuse_first_sheet(address)
        refuse_first_row(address)
        raise
    check_conditions(table.columns, wishes.conditions)
    for name, values in wishes.conditions.items():
        table = table.filter(pl.col(name).is_in(values))
    ids = [roles[role] for role in (USER, ITEM) if role in roles]
    whole = {name: pl.Int64 for name in ids if table[name].str.contains(WHOLE).all()}
    schema = _typed_schema("cells", {**table.schema, **whole}, roles, wishes)
    if skip and "skip_rows" not in wishes.declared:
        schema = schema.changed(skip_rows=skip, guessed=(*schema.guessed, "skip_rows"))
    if TIME not in roles or not is_year_last(table[roles[TIME]].drop_nulls().head(100).to_list()):
        return schema
    return with_order(schema, table[roles[TIME]], table[roles[USER]] if USER in roles else None)


def frame_schema(block: Mapping[str, Any], roles: Mapping[str, str], wishes: Wishes) -> Schema:
    """Return the schema of a data frame, of which all rows are in one block of columns by role.

    Names and types of columns are the frame's, about which guarantees state an assumption.
    """
    ids = {role: as_polars(block[role], role) for role in (USER, ITEM) if role in block}
    kinds = {roles[role]: column.dtype for role, column in ids.items()}
    schema = replace(_typed_schema("frame", kinds, roles, wishes), guessed=(), columns=())
    dates = texts_of(block[TIME]) if TIME in block else None
    return schema if dates is None else with_order(schema, dates, ids.get(USER))


def _typed_schema(form: str, kinds: Mapping[str, Any], roles: Mapping[str, str], wishes: Wishes) -> Schema:
    types = {
        f"{role}_type": "integer" if kinds[roles[role]].is_numeric() else "text"
        for role in (USER, ITEM)
        if role in roles
    }
    guessed = [name for name in types if name not in wishes.declared]
    guessed += [role for role in ROLES if role in roles and role not in (wishes.choice or {})]
    declared: dict[str, Any] = {"bad_rows": "reject", **types, **wishes.declared, **roles}
    declared |= {"format": form, "header": False, "guessed": ("format", *guessed), **keys_of(roles, wishes)}
    return Schema(columns=tuple(name for name in kinds if name not in wishes.keys), **declared)


def unread_of_types(kinds: Mapping[str, Any], roles: Mapping[str, str], choice: Choice | None) -> str | None:
    """Return a column of dates that was not read; types are part of the layout, so no value is looked at."""
    if TIME in roles or TIME in (choice or {}):
        return None
    dates = (name for name, kind in kinds.items() if kind == pl.Date or isinstance(kind, pl.Datetime))
    return next((name for name in dates if name not in roles.values()), None)
