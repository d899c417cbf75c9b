"""Read Parquet files from anywhere: what polars makes of damaged ones becomes one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.checks import DiscreetError, FileError
from discreet.data.reading.limits import refuse_rows
from discreet.exports import Later

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")


@contextmanager
def or_sentence(sentence: str) -> Iterator[None]:
    """Raise a `FileError` with this sentence where polars finds a file damaged, foreseen or not."""
    try:
        yield
    except DiscreetError:
        raise
    # What polars itself did not foresee is a panic, which is no `Exception`.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise FileError(sentence) from error


def scanned(file: Path) -> pl.LazyFrame:
    """Return a Parquet file to be read; one that promises more rows than it can hold is refused."""
    table = pl.scan_parquet(file, glob=False)
    refuse_rows(file, table.select(pl.len()).collect().item())
    return table
