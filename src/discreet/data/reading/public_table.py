"""Read what should be shown beside item ids: titles, years, whatever is public."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self, final

import polars as pl

from discreet.checks import DataError
from discreet.data.reading.parquet import bounded, or_sentence, scanned
from discreet.data.vocabulary import Vocabulary

Row = dict[str, str]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PublicTable:
    """Hold a table with item ids in its first column, and texts to show beside them in the others."""

    ids: list[str | None]
    texts: pl.DataFrame

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a `.csv`, `.tsv` or `.parquet` file with a header."""
        with or_sentence(
            f"{path} cannot be read as a table of titles; give a .csv, .tsv or .parquet file in UTF-8."
        ):
            if path.suffix == ".parquet":
                table = scanned(path).collect()
                bounded(path, table)
            else:
                separator = "\t" if path.suffix == ".tsv" else ","
                table = pl.read_csv(path, separator=separator, infer_schema=False, glob=False)
        if table.width < 2:
            raise DataError(
                "A table of titles needs a column of item ids first, and one to show beside them."
            )
        ids = table.to_series(0).cast(pl.String).str.strip_chars().to_list()
        return cls(ids, table.drop(table.columns[0]).cast(pl.String).fill_null(""))

    @property
    def names(self) -> list[str]:
        """Return the names of the columns beside the ids."""
        return self.texts.columns

    def refuse_foreign(self, catalog: Vocabulary) -> None:
        """Refuse a table that names no item of the catalog."""
        if not (catalog.index_of(self.ids) >= 0).any():
            raise DataError(
                "The table of titles names no item of the catalog; its first column must hold item ids."
            )

    def rows_of(self, catalog: Vocabulary) -> dict[str | int, Row]:
        """Return the texts of each item of the catalog by column; items that the table lacks have no row."""
        places = catalog.index_of(self.ids)
        known = self.texts.filter(pl.Series(places >= 0))
        return dict(zip(catalog.id_at(places[places >= 0]).tolist(), known.to_dicts(), strict=True))


def read_public_table(path: Path, catalog: Vocabulary) -> dict[str | int, Row]:
    """Return the columns beside each id of the catalog, of which the table must name one."""
    table = PublicTable.read(path)
    table.refuse_foreign(catalog)
    return table.rows_of(catalog)
