"""Read Parquet files from anywhere: what polars makes of damaged ones becomes one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.checks import DiscreetError, FileError
from discreet.data.reading.limits import refuse_growth, refuse_pages
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
    """Return a Parquet file to be read; one that promises more than it can hold is refused."""
    refuse_pages(file)
    return pl.scan_parquet(file, glob=False)


def bounded(file: Path, columns: Iterable[pl.Series]) -> None:
    """Refuse columns whose texts would take more memory than a file of this size needs, written out.

    A dictionary holds a text once, however many rows have it, so the pages alone do not tell.
    """
    refuse_growth(file, sum(map(_text_bytes, columns)))


def _text_bytes(column: pl.Series) -> int:
    while isinstance(column.dtype, pl.List):
        column = column.explode()
    if column.dtype == pl.String:
        lengths = column.str.len_bytes()
    elif column.dtype in (pl.Categorical, pl.Enum):
        lengths = column.cat.len_bytes()
    else:
        return 0
    return int(lengths.cast(pl.UInt64).sum())
