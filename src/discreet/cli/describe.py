"""`discreet describe`: guess the schema of a file, for its data owner."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.cli import lib
from discreet.cli.options.declared import Columns, Force, TextFile, reading_label, rule_for_duplicates
from discreet.cli.options.parsing import command_line, parse_columns
from discreet.cli.output.printing import Output, show, show_next, table_of
from discreet.core import FileExists, logger, shown_while
from discreet.core.checks import DiscreetError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_PREVIEW = 5
_NAMES = ("name", "product_name", "item_name", "article_name")


def describe(
    file: str,
    *,
    text: TextFile,
    columns: Columns = None,
    implicit: bool = False,
    out: Path | None = None,
    force: Force = False,
) -> Output:
    """Describe the layout of a file of ratings or clicks, and write the schema that reads it.

    The schema's list `guessed` names the fields that were guessed from the file. To declare a field public,
    remove it from this list. Until the list is empty, guarantees apply only if the file's layout is public.
    Don't publish the output.

    Options:
        file: A file, folder, or table, as for `fit`.
        implicit: Don't read ratings. This is the default if no column has ratings.
        out: Write the schema to this TOML file.
    """
    choice, implicit = parse_columns(columns), implicit or bool(text.weights)
    with shown_while(reading_label(file)):
        guess, unread, rated = _guessed(file, text, choice, rated=not implicit)
        # Unreadable rows are counted here, so that the data owner can look at them before a fit.
        droppable = guess.format in ("text", "json", "parquet", "cells")
        with lib.skipped_rows() as skipped, lib.remarking_on_values(guess):
            source = lib.read_rows(file, guess.changed(bad_rows="drop") if droppable else guess)
    if not len(source.columns.items):
        raise lib.EmptyData(name=source.name, what=lib.what_is_read(guess))
    repeats = rated and source.schema.duplicates == "refuse" and _repeats(source)
    if repeats:
        # Without times no rating of a pair is the latest.
        rule = "mean" if source.columns.times is None else "last"
        guessed = (*source.schema.guessed, "duplicates")
        source = replace(source, schema=source.schema.changed(duplicates=rule, guessed=guessed))
    if out is not None:
        if out.exists() and not force:
            raise FileExists(path=out)
        source.schema.write(out)
    said = []
    if not (rated or implicit):
        said.append(
            "No column has a usual name for ratings, so rows are read as interactions. To read ratings, pass "
            "--columns rating=NAME."
        )
    if unread is not None:
        said.append(
            f"Column {unread!r} looks like times and isn't read. To read it, pass --columns time={unread}."
        )
    if (titles := _titles(source.schema)) is not None:
        said.append(
            f"Column {titles!r} looks like titles and isn't read, because the items that users chose aren't "
            "public. To show titles, write the IDs and titles of all items into a table, and pass --titles "
            "to `fit`."
        )
    if (column := _kinds(file, source.schema)) is not None and not (rated or text.only or text.weights):
        name, values = column
        example = ",".join(f"{value}:{place}" for place, value in enumerate(values, start=1))
        said.append(
            f"Column {name!r} has few values and isn't read: {', '.join(values)}. If some count more, pass "
            f"--weights with your own numbers, as in --weights {name}={example}. To use only the rows of one "
            f"value, pass --only {name}={values[-1]}."
        )
    done = "Pass --out FILE.toml to write the schema." if out is None else f"Written to {out}."
    said.append(
        f"{done} The schema skips rows that can't be read (`bad_rows`). Its list `guessed` names the fields "
        "that `describe` guessed from your data. To declare a field public, remove it from the list."
    )
    plain = not (rated or text.weights)
    given: dict[str, Any] = {"--schema": out}
    if out is None:
        # Bad JSON lines are skipped only if their keys are declared.
        named = (
            _all_columns(source.schema, columns, choice) if skipped and guess.format == "json" else columns
        )
        given = {"--columns": named, "--implicit": plain, **text.given()}
        given |= {"--skip-bad-lines": True} if skipped else {}
        given |= {"--duplicates": source.schema.duplicates} if repeats else {}
    return Output(
        {
            "schema": source.schema.to_json(),
            "rows": len(source.columns.items),
            "unread_times": unread,
            "titles": titles,
        },
        lambda: show(*_tables(source)),
        *said,
        lambda: show_next(command_line("discreet", "try", file, options=given)),
    )


def _repeats(source: lib.TableSource) -> bool:
    """Return whether a pair of user and item has several ratings."""
    import polars as pl

    pairs = pl.DataFrame({"user": source.columns.users, "item": source.columns.items})
    return pairs.n_unique() < pairs.height


def _all_columns(schema: lib.Schema, columns: str | None, choice: lib.Choice | None) -> str:
    """Return the option `--columns` with every role of a schema."""
    given = [columns] if columns else []
    own = {"time": "none", **schema.roles}
    return ",".join(
        [*given, *(f"{role}={name}" for role, name in own.items() if role not in {"weight", *(choice or {})})]
    )


def _titles(schema: lib.Schema) -> str | None:
    """Return a column that seems to have the items' titles: no role takes it."""
    unread = (one for one in schema.columns if one not in (schema.user, schema.item))
    return next((one for one in unread if one.lower().endswith("title") or one.lower() in _NAMES), None)


# Names of columns whose few values are kinds of events, and how many values are few.
_OF_KINDS, _FEW = ("event", "event_type", "action", "behavior", "interaction_type"), 8


def _kinds(file: str, schema: lib.Schema) -> tuple[str, list[str]] | None:
    """Return a column that seems to have kinds of events, and its values, the most common first."""
    known = {name.lower(): name for name in schema.columns}
    # Only text lists its columns.
    tried = [known.get(name, "") for name in _OF_KINDS] if known else list(_OF_KINDS[:2])
    for name in tried:
        if not name or name in schema.roles.values():
            continue
        absent = {"rating": "", "time": "", "weight": "", "weights": (), "only": ()}
        form = schema.changed(item=name, item_type="text", bad_rows="drop", **absent)
        with contextlib.suppress(DiscreetError), _unlogged():
            counted = lib.read_rows(file, form).columns.items.cast(str).alias("kind").value_counts(sort=True)
            values = counted["kind"].to_list()
            if 1 < len(values) <= _FEW:
                return name, values
    return None


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Log nothing: the same rows were read, and counted, before."""
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


class _Guess(NamedTuple):
    """A schema, a column of times that no role takes, and whether ratings are read."""

    schema: lib.Schema
    unread_times: str | None
    rated: bool


def _guessed(file: str, text: TextFile, choice: lib.Choice | None, *, rated: bool) -> _Guess:
    """Return the guess of a schema; if no column has ratings, rows are interactions."""
    try:
        wishes = lib.Wishes.taken_from(text.written(), choice, implicit=not rated)
        schema, unread = lib.schema_of(file, wishes)
    except lib.RolesMissing as missing:
        if missing.roles != ("rating",):
            raise
        return _guessed(file, text, choice, rated=False)
    if not rated:
        rule = rule_for_duplicates(None, None, implicit=True, weights=schema.weights)
        schema = schema.changed(duplicates=rule)
    return _Guess(schema, unread, rated)


def _tables(source: lib.TableSource) -> Iterator[lib.Table]:
    """Yield the fields of the schema, and the first rows as they are read."""
    schema = source.schema
    rows = [
        (name, repr(value) if isinstance(value, str) else str(value), "yes" * (name in schema.guessed))
        for name, value in _said(schema).items()
    ]
    yield table_of(("field", "value", "guessed"), rows, title=f"Layout of {source.name}")
    title = f"The first of {len(source.columns.items):,} rows, as read"
    yield table_of(tuple(schema.roles), islice(_rows(source), _PREVIEW), title=title)


def _said(schema: lib.Schema) -> dict[str, Any]:
    plain = lib.Schema() if schema.format == "text" else lib.Schema(header=False)
    given = {field.name: getattr(schema, field.name) for field in fields(schema) if field.name != "guessed"}
    return {name: one for name, one in given.items() if name in schema.guessed or one != getattr(plain, name)}


def _rows(source: lib.TableSource) -> Any:
    parts = source.columns
    by_role = {"user": parts.users, "item": parts.items, "time": parts.times}
    by_role["weight" if parts.weighted else "rating"] = parts.values
    columns = [by_role.get(role) for role in source.schema.roles]
    shown = [column.head(_PREVIEW).to_list() for column in columns if column is not None]
    if parts.times is not None:
        shown[list(source.schema.roles).index("time")] = _dates(parts.times.head(_PREVIEW).to_numpy())
    return ([str(one) for one in row] for row in zip(*shown, strict=True))


def _dates(times: npt.NDArray[np.int64]) -> list[str]:
    """Return epoch times as dates, and positions as they are."""
    return [
        str(time) if second != second else f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M:%S}"
        for time, second in zip(times.tolist(), lib.epoch_seconds(times).tolist(), strict=True)
    ]
