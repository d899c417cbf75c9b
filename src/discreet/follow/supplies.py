"""Read a party's new ratings from Parquet files, each row by itself.

A row of Parquet is a row whatever its values hold. In a text file it is not: a line feed, a separator or a
quotation mark in one user's text can end a row, begin another one or change an id, and no rule reads all such
files as they were meant. So text files are rejected, by their names.

Which files there are, and the names and types of their columns, are assumed to be public, and so is that text
in them is UTF-8, as the format requires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from discreet.core.checks import require
from discreet.core.errors import FileUnreadable
from discreet.core.exports import pl
from discreet.data.roles import DECIMAL_COMMA, ITEM, RATING, USER, Choice, choose
from discreet.follow.columns import RatingColumns, decoded
from discreet.follow.errors import NotParquet

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
