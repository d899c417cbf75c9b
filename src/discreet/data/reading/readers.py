"""Read ratings from files, data frames and matrices, through polars."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack, cast

import polars as pl

from discreet.checks import DataError, ParameterError
from discreet.data.declaring import Declarations
from discreet.data.interactions import Interactions
from discreet.data.reading.columns import Choice, of_frame
from discreet.data.reading.tables import TableSource, read_source
from discreet.data.vocabulary import Vocabulary


def read(
    path: str | Path,
    *,
    columns: Choice | None = None,
    name: str | None = None,
    implicit: bool = False,
    **declared: Unpack[Declarations],
) -> Interactions:
    """Read a CSV, TSV or Parquet file, or a MovieLens, Jester or RC file or folder; `.gz` is accepted.

    Columns with usual names (`userId`, `item_id`, `rating`, `timestamp`...) are found; `columns` names the
    others, as in `{"user": "who", "item": "what"}`; `{"time": None}` leaves the times out, and with
    `{"user": None}` all rows are one person's history. A file without header lists person, item, rating and
    time; its columns are called column_1, column_2... With `implicit` ratings are not read and count as 1.
    Facts are declared as in `Interactions.from_arrays`.

    Raises:
        FileError: There is no such file, or it cannot be read as a table.
        DataError: The table lacks a column, holds no ratings, or ratings that cannot be used.
    """
    if not isinstance(path, str | Path):
        raise ParameterError(
            f"read takes the path of a file, not a {type(path).__name__}. Tables: from_frame, from_scipy."
        )
    return build([read_source(path, columns, implicit=implicit)], name=name, declared=declared)


def from_frame(
    frame: Any,
    *,
    columns: Choice | None = None,
    name: str = "data",
    implicit: bool = False,
    **declared: Unpack[Declarations],
) -> Interactions:
    """Read a data frame of polars or pandas; columns are found as in `read`."""
    source = TableSource(columns=of_frame(frame, columns, implicit=implicit), name=name)
    return build([source], name=name, declared=declared)


def from_scipy(matrix: Any, *, name: str = "data", **declared: Unpack[Declarations]) -> Interactions:
    """Read a sparse matrix of people by items; ids are row and column numbers, stored zeros are ratings."""
    if not hasattr(matrix, "tocoo"):
        raise ParameterError(f"A {type(matrix).__name__} is not a scipy sparse matrix; pass one.")
    cells = matrix.tocoo()
    shape: Declarations = {
        "catalog": Vocabulary.range(matrix.shape[1]),
        "people": Vocabulary.range(matrix.shape[0]),
    }
    declared = _over(shape, declared)
    return Interactions.from_arrays(cells.row, cells.col, cells.data, name=name, **declared)


def build(sources: list[TableSource], *, name: str | None, declared: Declarations) -> Interactions:
    """Put the columns of one or several files together; what the caller declares beats what a layout does."""
    parts = [source.columns for source in sources]
    if not sum(len(part.users) for part in parts):
        raise DataError(f"{sources[0].name} holds no ratings.")
    return Interactions.from_arrays(
        _join([part.users for part in parts]),
        _join([part.items for part in parts]),
        _join_optional([part.values for part in parts]),
        _join_optional([part.times for part in parts]),
        name=name or sources[0].name,
        **_over(sources[0].declared, declared),
    )


def _over(layout: Declarations, caller: Declarations) -> Declarations:
    said = {key: value for key, value in caller.items() if value is not None}
    return cast(Declarations, {**layout, **said})


def _join(parts: list[pl.Series]) -> pl.Series:
    if len(parts) == 1:
        return parts[0]
    if len({part.dtype for part in parts}) > 1 and any(part.dtype == pl.String for part in parts):
        parts = [part.cast(pl.String) for part in parts]
    return pl.concat(parts)


def _join_optional(parts: list[pl.Series | None]) -> pl.Series | None:
    present = [part for part in parts if part is not None]
    return _join(present) if present and len(present) == len(parts) else None
