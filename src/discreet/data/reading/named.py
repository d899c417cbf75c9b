"""Read well-known layouts by name; a line that does not look like its layout is refused.

Netflix Prize, LightGCN and SASRec files are no tables: which item a line is about, how many fields it has, or
which came first is told by other means than a column. MovieLens and RecBole files are tables whose header and
number of fields are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from discreet.core.checks import DataError, FileError, ParameterError
from discreet.core.exports import Later
from discreet.data.facts import Declarations
from discreet.data.reading.blocks_of_lines import Fitting, LineBlock, blocks_of_lines
from discreet.data.reading.columns import ITEM, RATING, TIME, USER, Choice, Columns
from discreet.data.reading.layouts import Dialect, Layout, magic
from discreet.data.reading.limits import refuse_bomb, refuse_irregular

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

# An id in the usual form: no zeros in front, so that two texts are never one number.
_ID = r"(0|[1-9][0-9]{0,17})"


class _Form(Protocol):
    """Say how the blocks of a layout's files become rows."""

    shape: ClassVar[str]
    #: Which files of a folder are read.
    patterns: ClassVar[tuple[str, ...]]
    declared: ClassVar[Declarations]

    def rows(self, block: LineBlock, fitting: Fitting) -> pl.DataFrame:
        """Return a block's rows; lines that do not fit go to `fitting`."""


class _Netflix:
    """An item's number and a colon, and below it its ratings: user, stars, day."""

    shape = (
        "an item's number and a colon, or below one a user's number, 1 to 5 stars and a day (7,3,2005-09-06)"
    )
    patterns = ("combined_data_*.txt", "mv_*.txt")
    declared: ClassVar[Declarations] = {"low": 1.0, "high": 5.0, "step": 1.0}

    def __init__(self) -> None:
        self._item: int | None = None

    def rows(self, block: LineBlock, fitting: Fitting) -> pl.DataFrame:
        text = pl.col("line")
        table = pl.DataFrame({"number": block.numbers, "line": block.lines}).select(
            "number",
            heads=text.str.extract(rf"^{_ID}:$").cast(pl.Int64),
            user=text.str.extract(rf"^{_ID},[1-5],[0-9-]{{10}}$").cast(pl.Int64),
            rating=text.str.extract(r",([1-5]),[0-9-]{10}$").cast(pl.Float32),
            time=text.str.tail(10).str.to_datetime("%Y-%m-%d", strict=False, time_unit="us").dt.epoch("s"),
        )
        items = table["heads"].fill_null(strategy="forward")
        if self._item is not None:
            items = items.fill_null(self._item)
        rated = table["user"].is_not_null() & table["time"].is_not_null() & items.is_not_null()
        fitting.keep(block, table["heads"].is_not_null() | rated)
        self._item = self._item if items.is_empty() else items[-1]
        return table.with_columns(item=items).filter(rated).select(USER, ITEM, RATING, TIME)


class _LightGcn:
    """A user's number and the numbers of their items."""

    shape = "a user's number and the numbers of items, with one blank between them (7 12 40)"
    patterns = ("train.txt",)
    declared: ClassVar[Declarations] = {}

    def rows(self, block: LineBlock, fitting: Fitting) -> pl.DataFrame:
        kept = fitting.keep(block, block.lines.str.contains(rf"^{_ID}( {_ID})*$"))
        ids = kept.lines.str.split(" ")
        listed = pl.DataFrame({USER: ids.list.first().cast(pl.Int64), ITEM: ids.list.slice(1)})
        return listed.filter(pl.col(ITEM).list.len() > 0).explode(ITEM).cast({ITEM: pl.Int64})


class _SasRec:
    """A user's number and an item's; a user's lines are in order of time."""

    shape = "a user's number and an item's, with a blank between them (7 12)"
    patterns = ()
    declared: ClassVar[Declarations] = {}

    def rows(self, block: LineBlock, fitting: Fitting) -> pl.DataFrame:
        pair = rf"^{_ID}[ \t]{_ID}$"
        kept = fitting.keep(block, block.lines.str.contains(pair))
        text = pl.col("line")
        return pl.DataFrame({"line": kept.lines}).select(
            text.str.extract(pair, 1).cast(pl.Int64).alias(USER),
            text.str.extract(pair, 2).cast(pl.Int64).alias(ITEM),
        )


_FORMS: dict[str, type[Any]] = {"netflix": _Netflix, "lightgcn": _LightGcn, "sasrec": _SasRec}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """Hold what was read of a named layout, and what the layout declares."""

    columns: Columns
    declared: Declarations


def has_own_form(layout: str | None) -> bool:
    """Tell whether files of this layout are no tables, so that this module reads them."""
    return layout in _FORMS


def files_of_layout(path: Path, layout: str) -> list[Path]:
    """Return the files that are read for a path: itself, or the layout's files in a folder, in order."""
    if not path.exists():
        raise FileError(f"There is no file or folder {path}.")
    if not path.is_dir():
        return [path]
    patterns = _FORMS[layout].patterns
    for pattern in patterns:
        found = sorted([*path.glob(pattern), *path.glob(f"{pattern}.gz")])
        if found:
            return found
    known = f" none called {' or '.join(patterns)};" if patterns else ""
    raise FileError(f"The folder {path} is read with layout {layout};{known} name a file.")


def read_named(path: Path, choice: Choice | None, *, implicit: bool, dialect: Dialect) -> NamedTable:
    """Read files of a layout that is no table."""
    layout = str(dialect.layout)
    if any(name is not None for name in (choice or {}).values()):
        raise ParameterError(f"layout={layout!r} says which column is which; only NAME=none may be given.")
    if dialect.delimiter or dialect.comment or dialect.escape:
        raise ParameterError(f"layout={layout!r} says how a line is written; leave delimiter and signs out.")
    if layout == "netflix" and dialect.skip_bad_lines:
        raise ParameterError(
            "No line of layout='netflix' can be left out: its ratings could be another item's."
        )
    without = set(choice or {}) | ({RATING} if implicit else set())
    if without & {USER, ITEM}:
        raise ParameterError("A row needs a person and an item; only time and rating can be left out.")
    form = _FORMS[layout]
    # Narrow types: a hundred million ratings must fit.
    parts = [part for file in files_of_layout(path, layout) for part in _parts(file, form(), dialect)]
    table = pl.concat(parts) if parts else pl.DataFrame({USER: [], ITEM: []})
    if layout == "sasrec" and TIME not in without:
        # A place among the person's own lines, which is the same whoever else is in the file.
        table = table.with_columns(pl.int_range(pl.len()).over(USER).alias(TIME))
    kept = {name: table[name] for name in table.columns if name not in without}
    return NamedTable(
        columns=Columns(
            users=kept[USER],
            items=kept[ITEM],
            values=kept.get(RATING),
            times=kept.get(TIME),
            names=dict.fromkeys(kept, f"layout {layout}"),
            times_are=() if TIME not in kept else (_TIMES[layout],),
        ),
        declared={} if RATING not in kept else form.declared,
    )


_TIMES = {"netflix": "days, as epoch seconds", "sasrec": "the order of a person's lines"}


def _parts(file: Path, form: _Form, dialect: Dialect) -> Iterator[pl.DataFrame]:
    refuse_irregular(file)
    refuse_bomb(file, magic(file))
    fitting = Fitting(file, form.shape, skip=dialect.skip_bad_lines)
    for block in blocks_of_lines(file, dialect.encoding):
        yield form.rows(block, fitting)
    fitting.close()


def refuse_other_table(file: Path, layout: Layout) -> None:
    """Refuse a table that does not look like the layout named for it."""
    named = layout.dialect.layout
    if named == "movielens":
        header = tuple(name.lower() for name in layout.names)
        as_csv = layout.separator == "," and header == ("userid", "movieid", "rating", "timestamp")
        plain = layout.separator in ("\t", "::") and not layout.header and len(layout.names) == 4
        if not as_csv and not plain:
            raise DataError(
                f"{file.name} is not laid out as MovieLens files are: four fields between tabs or ::, or the "
                "header userId,movieId,rating,timestamp; leave the layout out, or name another."
            )
    if named == "recbole":
        typed = all(name.endswith(_TYPES) for name in layout.names)
        if layout.separator != "\t" or not layout.header or not typed:
            raise DataError(
                f"{file.name} is not laid out as RecBole's .inter files are: a header such as user_id:token, "
                "item_id:token, rating:float, with tabs between; leave the layout out, or name another."
            )


_TYPES = (":token", ":float", ":token_seq", ":float_seq")
