"""Read a party's new ratings from files, each row by itself: no row decides whether a file can be read.

Which files there are, their headers and the types of a Parquet file's columns are assumed to be public. A
line of text is a row whatever it holds: quotation marks join nothing, lines that are too short lack fields,
and lines that are too long are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.checks import FileError, require
from discreet.core.exports import Later
from discreet.data.reading.columns import DECIMAL_COMMA, ITEM, RATING, USER, Choice, choose
from discreet.follow.columns import RatingColumns

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

_PARQUET, _TEXT = (".parquet",), (".csv", ".tsv", ".txt")
_SEPARATORS = "\t;|,"
_AROUND = ' \t\r"'


def files_at(path: Path) -> list[Path]:
    """Return the file, or the tables in a folder by name; hidden ones are being written."""
    if not path.exists():
        raise FileError(f"There is no file or folder {path}.")
    if not path.is_dir():
        return [_known(path)]
    return [_known(file) for file in sorted(path.iterdir()) if not file.name.startswith(".")]


def supply_from(path: Path, columns: Choice | None, *, rated: bool) -> Callable[[int], RatingColumns | None]:
    """Return what supplies a party with all ratings at a path, whichever release is asked for.

    What entered before is left out again, so files may stay after the release that they were put there for.
    """
    require((columns or {}).get(USER, USER) is not None, "columns", columns, "must name the user of a row")

    def supply(release: int) -> RatingColumns | None:
        parts = [_columns(file, columns, rated=rated) for file in files_at(path)]
        return RatingColumns.joined(parts) if parts else None

    return supply


def _known(file: Path) -> Path:
    if not file.is_file() or file.suffix.lower() not in (*_PARQUET, *_TEXT):
        raise FileError(f"{file} is no table: new ratings are files that end with .parquet, .csv or .tsv.")
    return file


def _columns(file: Path, choice: Choice | None, *, rated: bool) -> RatingColumns:
    read = _parquet if file.suffix.lower() in _PARQUET else _text
    try:
        return read(file, choice, rated)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(f"{file} cannot be read as a table of new ratings.") from error


def _parquet(file: Path, choice: Choice | None, rated: bool) -> RatingColumns:
    roles = choose(list(pl.read_parquet_schema(file)), choice, implicit=not rated)
    return _of(pl.read_parquet(file, columns=list(_wanted(roles).values())), roles)


def _text(file: Path, choice: Choice | None, rated: bool) -> RatingColumns:
    header, *lines = file.read_bytes().decode("utf-8", errors="replace").removeprefix("\ufeff").split("\n")
    separator = max(_SEPARATORS, key=header.count)
    names = [name.strip(_AROUND) for name in header.split(separator)]
    roles = _wanted(choose(names, choice, implicit=not rated))
    # A reader of tables would judge a line by others: by their number of fields, or by their quotation marks.
    fields = pl.Series("line", lines, dtype=pl.String).str.split(separator)
    columns = {
        name: fields.list.get(names.index(name), null_on_oob=True).str.strip_chars(_AROUND)
        for name in roles.values()
    }
    return _of(pl.DataFrame({name: one.set(one == "", None) for name, one in columns.items()}), roles)


def _of(table: pl.DataFrame, roles: Mapping[str, str]) -> RatingColumns:
    values = table[roles[RATING]] if RATING in roles else None
    if values is not None and values.dtype == pl.String:
        values = values.str.replace(DECIMAL_COMMA, "${1}.${2}")
    return RatingColumns(users=table[roles[USER]], items=table[roles[ITEM]], values=values)


def _wanted(roles: Mapping[str, str]) -> dict[str, str]:
    return {role: name for role, name in roles.items() if role in (USER, ITEM, RATING)}
