"""Read what is publicly known about items: a table with one row an item and columns of numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from discreet.arrays import Floats
from discreet.checks import DataError, FileError
from discreet.data.vocabulary import Vocabulary


def read_item_table(path: str | Path, catalog: Vocabulary) -> Floats:
    """Return the table's numbers in the catalog's order; the first column holds item ids.

    Reads `.csv` and `.parquet`. Items of the catalog that the table does not name get the columns' means,
    items that only the table names are left out.

    Raises:
        FileError: The file cannot be read.
        DataError: An id repeats, a column is not numeric, or no item is in the catalog.
    """
    file = Path(path)
    try:
        table = (
            pl.read_parquet(file, glob=False) if file.suffix == ".parquet" else pl.read_csv(file, glob=False)
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FileError(
            f"{file} cannot be read as a table of items; give a .csv or .parquet file."
        ) from error
    ids, columns = table.to_series(0), table.columns[1:]
    if not columns or not all(table[name].dtype.is_numeric() for name in columns):
        raise DataError("A table of items needs an id column first and then at least one column of numbers.")
    if ids.n_unique() != len(ids):
        raise DataError("The table of items names an item twice; keep one row for each.")
    if catalog.ids.dtype.kind not in "iu":
        ids = ids.cast(pl.String)
    index = catalog.index_of(ids.to_numpy())
    known = index >= 0
    if not known.any():
        raise DataError(
            "The table of items names no item of the catalog; its first column must hold item ids."
        )
    numbers = table.select(columns).fill_null(np.nan).to_numpy().astype(np.float64)[known]
    if not np.isfinite(numbers).all():
        raise DataError("The table of items has empty or infinite cells; fill them in.")
    found = np.tile(numbers.mean(axis=0), (len(catalog), 1))
    found[index[known]] = numbers
    return found
