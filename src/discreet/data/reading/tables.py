"""Read the needed columns of one file: delimited text, Parquet, or Jester's dense table."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from discreet.core.checks import DataError, FileError, ParameterError
from discreet.core.exports import Later
from discreet.core.progress import logger
from discreet.data.facts import Declarations
from discreet.data.reading.columns import (
    RATING,
    TIME,
    WEIGHT,
    Choice,
    Columns,
    NoNumbers,
    choose,
    from_table,
    how_to_read,
    readable_rows,
)
from discreet.data.reading.frames import of_frame
from discreet.data.reading.json_lines import read_json_lines
from discreet.data.reading.layouts import PARQUET, Dialect, Layout, is_json_lines, magic, sniff
from discreet.data.reading.limits import bounded, or_sentence, refuse_bomb, refuse_irregular, scanned
from discreet.data.reading.lines import first_is_in_line, fitting_lines, why_unreadable
from discreet.data.reading.named import has_own_form, read_named, refuse_other_table
from discreet.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

# Looked for in a folder, in this order, also with .gz behind.
_KNOWN_FILES = (
    "u.data",
    "ratings.dat",
    "ratings.csv",
    "ratings.parquet",
    "rating_final.csv",
    "jester-data-1.csv",
)
_TABLES = (".csv", ".tsv", ".txt", ".dat", ".data", ".inter", ".parquet", ".jsonl", ".ndjson")
_JESTER_NOT_RATED = 99.0
_STRANGE = "no number: "
_FEW_ROWS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """Hold the columns of a file and the facts that its layout declares."""

    columns: Columns
    name: str
    layout: str
    declared: Declarations = field(default_factory=lambda: Declarations())

    def how_read(self) -> dict[str, str]:
        """Return how the table was understood; this shows how records are written, and none of them."""
        parts = self.columns
        found = {role: f"from {name}" for role, name in parts.names.items()}
        found[TIME] = f"{found[TIME]}: {'; '.join(parts.times_are)}" if TIME in found else "not read"
        if parts.unread_times is not None:
            found[TIME] = f"not read; {how_to_read(parts.unread_times)}"
        return {"layout": self.layout, **found}


class _Below(NamedTuple):
    """Where ratings begin: in a file below its first lines, or in lines that were looked at."""

    file: Path | io.BytesIO
    skip: int = 0

    def start(self) -> Path | io.BytesIO:
        """Return what polars reads, from its beginning."""
        if isinstance(self.file, io.BytesIO):
            self.file.seek(0)
        return self.file


def read_source(
    path: str | Path, columns: Choice | None, *, implicit: bool, dialect: Dialect | None = None
) -> TableSource:
    """Return the needed columns of a file, or of the file in a folder."""
    dialect = dialect or Dialect()
    if has_own_form(dialect.layout):
        named = read_named(Path(path), columns, implicit=implicit, dialect=dialect)
        return TableSource(
            columns=named.columns,
            name=_name(Path(path)),
            layout=str(dialect.layout),
            declared=named.declared,
        )
    file = locate(Path(path))
    refuse_irregular(file)
    kind = magic(file)
    refuse_bomb(file, kind)
    if kind == PARQUET:
        if dialect.layout is not None:
            raise ParameterError(f"{file.name} is Parquet; layout={dialect.layout!r} is for text files.")
        return TableSource(columns=_read_parquet(file, columns, implicit), name=_name(file), layout="Parquet")
    if is_json_lines(file, dialect):
        found = read_json_lines(file, columns, implicit=implicit, dialect=dialect)
        return TableSource(columns=found, name=_name(file), layout="JSON lines")
    layout = sniff(file, columns, implicit=implicit, dialect=dialect)
    refuse_other_table(file, layout)
    if implicit and not layout.header and len(layout.names) == 2 and layout.separator == " " and not columns:
        logger.warning(
            "%s has two columns and no times, so it is read without an order. If each user's lines are "
            "oldest first, pass layout='sasrec' (--layout sasrec).",
            file.name,
        )
    if layout.is_dense:
        return _read_dense(file, layout)
    return TableSource(
        columns=_read_text(file, layout),
        name=_name(file),
        layout=f"text, with{'' if layout.header else 'out'} a header, fields between {layout.separator!r}",
        declared=_declared_by(file, implicit),
    )


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
    if any(file.name.startswith(("mv_", "combined_data_")) for file in tables):
        raise FileError(
            f'The folder {path} looks like the Netflix Prize; pass layout="netflix" (--layout netflix).'
        )
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
    with or_sentence(f"{file.name} is damaged and cannot be read as Parquet; write it again."):
        table = scanned(file, lambda names: choose(names, columns, implicit=implicit).values())
        # Long texts are slow to work on, so a few rows are tried first.
        # A few times may not show which part of a date comes first, so these are left out.
        for rows, chosen in ((table.head(_FEW_ROWS), {**(columns or {}), TIME: None}), (table, columns)):
            found = of_frame(rows, chosen, implicit=implicit)
            bounded(file, (found.users, found.items))
        # As in text files, blanks around an id are no part of it.
        return replace(found, users=_stripped(found.users), items=_stripped(found.items))


def _stripped(ids: pl.Series) -> pl.Series:
    return ids.str.strip_chars() if ids.dtype == pl.String else ids


def _read_text(file: Path, layout: Layout) -> Columns:
    """Read the columns; how one line is read must not depend on what stands in others.

    Ids are whole numbers only if each of them is written as one, in the usual way: then no two texts are the
    same number, and it does not matter for anybody whether somebody else's id is text.
    """
    source = _Below(fitting_lines(file, layout)) if layout.is_careful else _Below(file, layout.skip)
    try:
        table = _collect(source, layout, pl.Float32)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        # Perhaps a rating is written in a way that only the reading of text forgives.
        table = _collect_as_text(file, source, layout)
    if not layout.is_careful and any(table[role].null_count() for role in layout.roles):
        # Lines that are blank or too short leave gaps; the latter are named.
        table = _collect_as_text(file, _Below(fitting_lines(file, layout)), layout)
    roles = {role: role for role in layout.roles}
    if layout.dialect.skip_bad_lines:
        table = readable_rows(table, file.name, layout.date_order)
    try:
        found = from_table(table, roles, pl.Float32, layout.date_order, layout.roles)
    except NoNumbers as refused:
        raise DataError(f"{refused} {first_is_in_line(file, layout, refused.first, len(table))}") from None
    return replace(found, unread_times=layout.unread_times)


def _collect_as_text(file: Path, source: _Below, layout: Layout) -> pl.DataFrame:
    try:
        return _collect(source, layout, pl.String)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(why_unreadable(file, layout)) from error


def _collect(source: _Below, layout: Layout, rating: type[pl.DataType]) -> pl.DataFrame:
    """Return the table, with whole numbers where every field of a column is one, and text elsewhere.

    Columns are called by their roles: a name from a file could mean something to polars.
    """
    whole = [role for role, name in layout.roles.items() if name in layout.whole]
    # Blanks are rare, so they are taken off only where a column is not whole numbers as it stands.
    tries = {role: [pl.col(role), pl.col(role).str.strip_chars()] for role in whole}
    while True:
        lines = _scan(source, layout, rating)
        numbers = {role: left[0] for role, left in tries.items() if left}
        table = lines.select(
            *(role for role in layout.roles if role not in numbers),
            *(field.cast(pl.Int64, strict=False) for field in numbers.values()),
            *(_is_no_number(field).alias(f"{_STRANGE}{role}") for role, field in numbers.items()),
        ).collect(engine="streaming")
        failed = [role for role in numbers if table[f"{_STRANGE}{role}"].any()]
        if not failed:
            settled = table.drop(pl.selectors.starts_with(_STRANGE))
            return settled.with_columns(pl.col(pl.String).str.strip_chars())
        for role in failed:
            tries[role].pop(0)


def _is_no_number(field: pl.Expr) -> pl.Expr:
    """Tell which fields are not whole numbers in the usual way: 007, +7, -0 and " 7" are something else."""
    # In the order of letters, what begins with 1 to 9 stands from "1" on and before ":".
    positive = (field >= "1") & (field < ":")
    negative = (field >= "-1") & (field < "-:")
    usual = positive | negative | (field == "0")
    return ~usual | (field.cast(pl.Int64, strict=False).is_null() & field.is_not_null())


def _scan(source: _Below, layout: Layout, rating: type[pl.DataType]) -> pl.LazyFrame:
    # polars knows separators of one letter only: read with ":", every second column of a "::" file is empty.
    stride = len(layout.separator)
    width = (len(layout.names) - 1) * stride + 1
    place = {role: f"column_{layout.names.index(name) * stride + 1}" for role, name in layout.roles.items()}
    schema: dict[str, Any] = {f"column_{k + 1}": pl.String for k in range(width)}
    for number in {RATING, WEIGHT} & set(layout.roles):
        schema[place[number]] = rating
    lines = pl.scan_csv(
        source.start(),
        separator=layout.separator[0],
        has_header=False,
        skip_rows=source.skip,
        schema=schema,
        # Where "::" stands between fields nothing is quoted.
        quote_char=layout.dialect.quote if stride == 1 else None,
        raise_if_empty=False,
        # A bracket or a star in a file's name is part of the name.
        glob=False,
    )
    needed = lines.select(pl.col(column).alias(role) for role, column in place.items())
    # A blank line has no field at all.
    return needed.filter(pl.any_horizontal(pl.all().is_not_null()))


def _read_dense(file: Path, layout: Layout) -> TableSource:
    """Read rows of people: how many they rated, then a rating or 99 for each item."""
    try:
        types = dict.fromkeys(layout.names, pl.Float32)
        table = pl.read_csv(file, separator=layout.separator, has_header=False, schema=types, glob=False)
        numbers = table.to_numpy()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
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
    return TableSource(
        columns=Columns(
            users=pl.Series(rows + 1),
            items=pl.Series(items + 1),
            values=pl.Series(ratings[is_rated]),
            times=None,
        ),
        name=_name(file),
        layout="a line for each person, a column for each item",
        declared={
            "low": -10.0,
            "high": 10.0,
            "catalog": Vocabulary.range(ratings.shape[1], 1),
            "people": Vocabulary.range(rated.size, 1),
        },
    )
