"""Read a party's new ratings from Parquet files, each row by itself.

A row of Parquet is a row whatever its values hold. In a text file it is not: a line feed, a separator or a
quotation mark in one user's text can end a row, begin another one or change an id, and no rule reads all such
files as they were meant. So text files are rejected, by their names.

A party answers whatever its rows contain: an error that one user's row could cause would take out everyone's
new ratings, or the answer. So rows are cleaned one by one, and no row can cause an error here. Only what is
public is rejected: that a column is missing, of another length or of a type that has no ids or no numbers.

Which files there are, and the names and types of their columns, are assumed to be public, and so is that text
in them is UTF-8, as the format requires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core import FileUnreadable, Floats, require
from discreet.data import (
    DECIMAL_COMMA,
    ITEM,
    RATING,
    USER,
    Choice,
    Column,
    Interactions,
    PublicFacts,
    Vocabulary,
    choose,
)
from discreet.follow.errors import NotParquet, ValuesNeeded, WrongColumnType


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatingColumns:
    """New ratings as they come: users' ids, items' ids and values, one rating a row.

    A row is excluded if its user is missing, its item is not declared or its value isn't a finite number.
    Values beyond the scale are clipped to it. Of the rows of one user and item the first one counts.

    Example:
        >>> new = RatingColumns(users=["ann", "bob", None], items=[1, 1, 2], values=[9, float("nan"), 3])
        >>> kept = new.usable(Vocabulary.of([1, 2]), PublicFacts(n_items=2, low=1, high=5))
        >>> kept.users.ids.tolist(), kept.values.tolist()
        (['ann'], [5.0])

    Stability
        Provisional: names may still change in 0.x.
    """

    users: Column
    items: Column
    values: Column | None = None

    @classmethod
    def joined(cls, parts: Sequence[RatingColumns]) -> RatingColumns:
        """Return the rows of several tables, one after the other; ids are text from here on."""
        values = [None if one.values is None else pl.Series(_floats(one.values)) for one in parts]
        known = [one for one in values if one is not None]
        return cls(
            users=pl.concat([_texts(one.users, "user ids") for one in parts]),
            items=pl.concat([_texts(one.items, "item ids") for one in parts]),
            values=pl.concat(known) if len(known) == len(parts) else None,
        )

    def usable(self, catalog: Vocabulary, facts: PublicFacts) -> Interactions:
        """Return the rows that can enter; whether one does depends on nothing but itself and public facts."""
        users, items = _texts(self.users, "user ids"), _texts(self.items, "item ids")
        rated = facts.low != facts.high
        if rated and self.values is None:
            raise ValuesNeeded()
        values = np.full(len(users), facts.low) if self.values is None or not rated else _floats(self.values)
        sizes = {len(users), len(items), values.size}
        if len(sizes) > 1:
            raise ValuesNeeded()
        names = Vocabulary.of(catalog.series.cast(pl.String))
        kept = users.is_not_null().to_numpy() & (names.index_of(items) >= 0) & np.isfinite(values)
        mask = pl.Series(kept)
        clipped = np.clip(values[kept], facts.low, facts.high)
        return Interactions.from_columns(
            [users.filter(mask), items.filter(mask), clipped, None],
            name="data",
            catalog=names,
            # Steps, and how many ratings someone has, exclude nothing.
            facts=replace(facts, n_items=len(names), step=None, max_per_user=None, n_users=None),
            duplicates="first",
        )


def _texts(column: Column, what: str) -> pl.Series:
    """Return ids as text, each by itself; None if the ID is missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        column = pl.Series(column.astype(np.float64) if column.dtype.kind == "f" else column)
    if not isinstance(column, pl.Series) or column.dtype == pl.Object:
        return pl.Series([_text(one) for one in column], dtype=pl.String)
    column = decoded(column)
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        return whole.set(~(whole.cast(pl.Float64) == column).fill_null(False), None).cast(pl.String)
    if column.dtype.is_integer() or column.dtype in (pl.String, pl.Null):
        return column.cast(pl.String)
    raise WrongColumnType(column=what, kind="whole numbers or text", found=str(column.dtype))


def _text(one: Any) -> str | None:
    """Return an id as text; None if it is none. 7, 7.0 and "7" are one id."""
    one = one.item() if isinstance(one, np.generic) else one
    try:
        if isinstance(one, float) and one.is_integer():
            one = int(one)
        text = str(one) if isinstance(one, str | int) and not isinstance(one, bool) else None
        # Half of a pair of surrogates isn't text, and very long numbers cannot be written.
        return text if text is None else text.encode().decode()
    except ValueError:
        return None


def decoded(column: pl.Series) -> pl.Series:
    """Return bytes and categories as text, each by itself; None if bytes aren't UTF-8."""
    if column.dtype == pl.Binary:
        return pl.Series([None if one is None else _decoded(one) for one in column], dtype=pl.String)
    return column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column


def _decoded(one: bytes) -> str | None:
    try:
        return one.decode()
    except UnicodeDecodeError:
        return None


def _floats(column: Column) -> Floats:
    """Return values as numbers, each by itself; NaN where there is none."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        return column.astype(np.float64)
    if not isinstance(column, pl.Series) or column.dtype == pl.Object:
        return np.array([_number(one) for one in column], dtype=np.float64)
    column = decoded(column)
    # A type is public; whether Python can hold one of a column's dates, say, is up to a row.
    if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean, pl.Null)):
        raise WrongColumnType(column="ratings", kind="numbers or text", found=str(column.dtype))
    plain = column.str.strip_chars() if column.dtype == pl.String else column
    found: npt.NDArray[np.float64] = plain.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    return found


def _number(one: Any) -> float:
    try:
        return float(one)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


_PARQUET = ".parquet"


def files_at(path: Path) -> list[Path]:
    """Return the file, or the files in a folder by name; hidden ones are being written."""
    if not path.exists():
        raise FileUnreadable(path=path, reason="it doesn't exist")
    if not path.is_dir():
        return [_known(path)]
    return [_known(file) for file in sorted(path.iterdir()) if not file.name.startswith(".")]


def supply_from(path: Path, columns: Choice | None, *, rated: bool) -> Callable[[int], RatingColumns | None]:
    """Return what supplies a party with all ratings at a path, whichever release is asked for.

    What entered before is excluded again, so files may stay after the release that they were put there for.
    """
    require((columns or {}).get(USER, USER) is not None, "columns", columns, must="name the user of a row")

    def supply(release: int) -> RatingColumns | None:
        parts = [_columns(file, columns, rated=rated) for file in files_at(path)]
        return RatingColumns.joined(parts) if parts else None

    return supply


def _known(file: Path) -> Path:
    if not file.is_file() or file.suffix.lower() != _PARQUET:
        raise NotParquet(path=file)
    return file


def _columns(file: Path, choice: Choice | None, *, rated: bool) -> RatingColumns:
    try:
        # A bracket or a star in a file's name, or a folder called user=7, is part of a name only.
        table = pl.scan_parquet(file, glob=False, hive_partitioning=False)
        roles = choose(table.collect_schema().names(), choice, implicit=not rated)
        wanted = {role: name for role, name in roles.items() if role in (USER, ITEM, RATING)}
        return _of(table.select(list(wanted.values())).collect(), wanted)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise NotParquet(path=file) from error


def _of(table: pl.DataFrame, roles: Mapping[str, str]) -> RatingColumns:
    values = decoded(table[roles[RATING]]) if RATING in roles else None
    if values is not None and values.dtype == pl.String:
        values = values.str.strip_chars().str.replace(DECIMAL_COMMA, "${1}.${2}")
    return RatingColumns(users=table[roles[USER]], items=table[roles[ITEM]], values=values)
