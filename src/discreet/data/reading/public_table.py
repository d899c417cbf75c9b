"""Read what should be shown beside item ids: titles, years, whatever is public."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from discreet.checks import DataError
from discreet.data.reading.parquet import or_sentence, scanned
from discreet.data.vocabulary import Vocabulary

Row = dict[str, str]


def read_public_table(path: Path, catalog: Vocabulary) -> dict[str | int, Row]:
    """Return the columns beside each id of the catalog; the first column holds the ids.

    Reads `.csv`, `.tsv` and `.parquet`, with a header. Items that the table does not name have no row.
    """
    with or_sentence(
        f"{path} cannot be read as a table of titles; give a .csv, .tsv or .parquet file in UTF-8."
    ):
        if path.suffix == ".parquet":
            table = scanned(path).collect()
        else:
            separator = "\t" if path.suffix == ".tsv" else ","
            table = pl.read_csv(path, separator=separator, infer_schema=False, glob=False)
    if table.width < 2:
        raise DataError("A table of titles needs a column of item ids first, and one to show beside them.")
    ids = table.to_series(0).cast(pl.String).str.strip_chars()
    places = catalog.index_of(ids.to_list())
    if not (places >= 0).any():
        raise DataError(
            "The table of titles names no item of the catalog; its first column must hold item ids."
        )
    known = table.drop(table.columns[0]).cast(pl.String).fill_null("").filter(pl.Series(places >= 0))
    named = catalog.id_at(places[places >= 0]).tolist()
    return dict(zip(named, known.to_dicts(), strict=True))
