"""Read the needed columns of one file: delimited text, Parquet, or Jester's dense table."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet.checks import DataError, FileError
from discreet.data.columns import RATING, Choice, Columns, from_table, of_frame
from discreet.data.declaring import Declarations
from discreet.data.layouts import PARQUET, Layout, magic, sniff
from discreet.data.vocabulary import Vocabulary

# Looked for in a folder, in this order, also with .gz behind.
_KNOWN_FILES = (
    "u.data",
    "ratings.dat",
    "ratings.csv",
    "ratings.parquet",
    "rating_final.csv",
    "jester-data-1.csv",
)
_TABLES = (".csv", ".tsv", ".txt", ".dat", ".data", ".inter", ".parquet")
_JESTER_NOT_RATED = 99.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Hold the columns of a file and the facts that its layout declares."""

    columns: Columns
    name: str
    declared: Declarations = field(default_factory=lambda: Declarations())


def read_source(path: str | Path, columns: Choice | None, *, implicit: bool) -> Source:
    """Return the needed columns of a file, or of the file in a folder."""
    file = locate(Path(path))
    if magic(file) == PARQUET:
        return Source(columns=_read_parquet(file, columns, implicit), name=_name(file))
    layout = sniff(file, columns, implicit=implicit)
    if layout.is_dense:
        return _read_dense(file, layout)
    return Source(columns=_read_text(file, layout), name=_name(file), declared=_declared_by(file, implicit))


def locate(path: Path) -> Path:
    """Return the file itself, or the one known file (or only table) of a folder."""
    if not path.exists():
        raise FileError(f"There is no file or folder {path}.")
    if not path.is_dir():
        return path
    known = [path / (name + end) for name in _KNOWN_FILES for end in ("", ".gz")]
    found = [file for file in known if file.is_file()]
    if found:
        return found[0]
    tables = [file for file in sorted(path.iterdir()) if file.name.removesuffix(".gz").endswith(_TABLES)]
    if len(tables) != 1:
        raise FileError(
            f"The folder {path} holds {len(tables)} tables and none called {', '.join(_KNOWN_FILES)}; "
            "name the file."
        )
    return tables[0]


def _name(file: Path) -> str:
    """Return a name for the ledger: the folder's if the file is called as in every folder of its kind."""
    plain = file.name.removesuffix(".gz")
    if plain in _KNOWN_FILES:
        return file.resolve().parent.name
    return plain.rsplit(".", 1)[0] if plain.endswith(_TABLES) else plain


def _declared_by(file: Path, implicit: bool) -> Declarations:
    """Return the scale that a file of this name is published with."""
    scale: Declarations = {}
    if file.name.removesuffix(".gz") == "u.data":
        scale = {"low": 1.0, "high": 5.0, "step": 1.0}
    if file.name.removesuffix(".gz") == "rating_final.csv":
        scale = {"low": 0.0, "high": 2.0, "step": 1.0}
    return {} if implicit else scale


def _read_parquet(file: Path, columns: Choice | None, implicit: bool) -> Columns:
    try:
        return of_frame(pl.scan_parquet(file, glob=False), columns, implicit=implicit)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileError(f"{file.name} is damaged and cannot be read as Parquet; write it again.") from error


def _read_text(file: Path, layout: Layout) -> Columns:
    """Read with the types the first lines suggest; if a later line breaks them, read again as text."""
    types: dict[str, Any] = {
        name: pl.Int64 if name in layout.whole else pl.String for name in layout.roles.values()
    }
    if RATING in layout.roles:
        types[layout.roles[RATING]] = pl.Float32
    try:
        table = _scan(file, layout, types)
    except (pl.exceptions.PolarsError, OSError):
        table = _scan_as_text(file, layout, types)
    return from_table(table.with_columns(pl.col(pl.String).str.strip_chars()), layout.roles)


def _scan_as_text(file: Path, layout: Layout, types: dict[str, Any]) -> pl.DataFrame:
    try:
        table = _scan(file, layout, dict.fromkeys(types, pl.String))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileError(
            f"{file.name} cannot be read as a table: it is damaged, it is not UTF-8 text, "
            "or its lines differ in their number of fields."
        ) from error
    for name in layout.whole:
        numbers = table[name].str.strip_chars().cast(pl.Int64, strict=False)
        if numbers.null_count() == table[name].null_count():
            table = table.with_columns(numbers)
    return table


def _scan(file: Path, layout: Layout, types: dict[str, Any]) -> pl.DataFrame:
    # polars knows separators of one letter only: read with ":", every second column of a "::" file is empty.
    stride = len(layout.separator)
    width = (len(layout.names) - 1) * stride + 1
    place = {name: f"column_{layout.names.index(name) * stride + 1}" for name in types}
    schema: dict[str, Any] = {f"column_{k + 1}": pl.String for k in range(width)}
    table = pl.read_csv(
        file,
        separator=layout.separator[0],
        has_header=False,
        skip_rows=1 if layout.header else 0,
        columns=list(place.values()),
        schema=schema | {place[name]: kind for name, kind in types.items()},
        raise_if_empty=False,
        # A bracket or a star in a file's name is part of the name.
        glob=False,
    )
    return table.rename({column: name for name, column in place.items()})


def _read_dense(file: Path, layout: Layout) -> Source:
    """Read rows of people: how many they rated, then a rating or 99 for each item."""
    try:
        types = dict.fromkeys(layout.names, pl.Float32)
        table = pl.read_csv(file, separator=layout.separator, has_header=False, schema=types, glob=False)
        numbers = table.to_numpy()
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"{file.name} looks like Jester's table but holds text where a number belongs."
        ) from error
    rated, ratings = numbers[:, 0], numbers[:, 1:]
    is_rated = ratings != _JESTER_NOT_RATED
    wrong = int(np.count_nonzero(is_rated.sum(axis=1) != rated))
    if wrong:
        raise DataError(
            f"{wrong:,} of {rated.size:,} rows of {file.name} do not hold as many ratings as they say."
        )
    rows, items = np.nonzero(is_rated)
    return Source(
        columns=Columns(
            users=pl.Series(rows + 1),
            items=pl.Series(items + 1),
            values=pl.Series(ratings[is_rated]),
            times=None,
        ),
        name=_name(file),
        declared={
            "low": -10.0,
            "high": 10.0,
            "catalog": Vocabulary.range(ratings.shape[1], 1),
            "people": Vocabulary.range(rated.size, 1),
        },
    )
