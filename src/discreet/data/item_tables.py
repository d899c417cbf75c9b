"""Read public tables of items: features to learn from, and columns to show.

Numbers become a column, and one for each fifth of their range where they have many values; words become a
column for each word that several items share, lists of words (`Action|Comedy`, or real lists) likewise, and
if there is nothing else the words of texts such as titles. What only one item has shows nothing about others
and is ignored.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np
import polars as pl
import scipy.sparse as sp

from discreet.core import Floats
from discreet.data.errors import NoFiles, PublicTableWrong
from discreet.data.guessing import marked_encoding
from discreet.data.reading.blocks import MARK, beginning, blocks, shown_packing
from discreet.data.reading.cells import absent_part, address_of, read_texts
from discreet.data.reading.limits import collected, or_damaged
from discreet.data.schema import UTF_8, UTF_16, stateless
from discreet.data.vocabulary import Vocabulary

# A word counts if at least this part of the items share it, two in any case, and so many words at most.
_LEAST_PART, _FEWEST_ITEMS, _MOST_WORDS = 0.005, 2, 200
# Numbers with more different values than this are also grouped by range.
_MANY_VALUES, RANGES = 10, 5
_SEPARATORS = ("|", ";", ",")
# What may stand between the columns of a table of items; the first of equals is taken.
_BETWEEN = (b",", b";", b"\t")
_LONGEST_HEADER = 1 << 16
# A single letter or digit isn't a word.
_WORD = re.compile(r"[^\W_]{2,}")


class ItemTable(NamedTuple):
    """Item ids and what is known of each, one row an item, no number missing."""

    ids: pl.Series
    numbers: Floats

    def in_order_of(self, catalog: Vocabulary) -> tuple[Floats, Floats]:
        """Return the rows of the catalog's items, and 1 for those that the table names; others get means."""
        index = catalog.index_of(self.ids)
        known = index >= 0
        if not known.any():
            raise PublicTableWrong(why="foreign")
        found = np.tile(self.numbers[known].mean(axis=0), (len(catalog), 1))
        found[index[known]] = self.numbers[known]
        named = np.zeros(len(catalog))
        named[index[known]] = 1.0
        return found, named


def read_item_table(source: Any, catalog: Vocabulary) -> Floats:
    """Return what a table has on the catalog's items, in its order; the first column has item IDs.

    Reads `.csv` and `.parquet` files and data frames. Items of the catalog that the table does not name get
    the columns' means, items that only the table names are ignored.

    Raises:
        FileError: The file cannot be read.
        DataError: An id repeats, items don't differ, or no item is in the catalog.
    """
    return read_items(source).in_order_of(catalog)[0]


def item_frame(source: Any) -> pl.DataFrame:
    """Return a table of items as it is: an id that no other row has, and at least one column more."""
    is_file = isinstance(source, str | Path)
    table = read_public(Path(source), "items", infer=True) if is_file else as_table(source)
    if table.width < 2 or table.height == 0:
        raise PublicTableWrong(why="columns")
    ids = table.to_series(0)
    if ids.null_count() or ids.n_unique() != len(ids):
        raise PublicTableWrong(why="repeated")
    return table


def read_items(source: Any) -> ItemTable:
    """Read a table of items from a file or a data frame."""
    table = item_frame(source)
    columns = [part for name in table.columns[1:] for part in _encoded(table[name], apart=False)]
    # The words of titles say little about ratings; with other columns they would be noise.
    if not columns:
        columns = [part for name in table.columns[1:] for part in _encoded(table[name], apart=True)]
    numbers = np.column_stack(columns) if columns else np.zeros((table.height, 0))
    if not (numbers.std(axis=0) > 0).any() and table.height > 1:
        raise PublicTableWrong(why="same")
    return ItemTable(table.to_series(0), numbers)


def read_public(file: Path, what: str, *, infer: bool, encoding: str | None = None) -> pl.DataFrame:
    """Return a public table of a text file, a Parquet file, a spreadsheet or a database; `infer` types.

    Text is UTF-16 if it begins with its mark, else UTF-8 if it can be, else `encoding` or cp1252.
    """
    address = address_of(file)
    if address is None and not file.exists():
        raise NoFiles(source=absent_part(file))
    with or_damaged(file, f"a table of {what} (.csv, .tsv, .xlsx or .parquet)"):
        if address is not None:
            text = read_texts(address).write_csv().encode()
        elif file.suffix == ".parquet":
            return collected(file)
        else:
            text = as_utf8(file, None if encoding is None else stateless(encoding))
        most = max(_BETWEEN, key=text[:_LONGEST_HEADER].split(b"\n", 1)[0].count)
        mark = b"\t" if file.suffix == ".tsv" else most
        return pl.read_csv(text, separator=mark.decode(), infer_schema=infer)


def as_utf8(file: Path, declared: str | None = None) -> bytes:
    """Return a public text in UTF-8, whatever its encoding is."""
    own, packed = declared if declared in UTF_16 else UTF_8, shown_packing(file)
    encoding = marked_encoding(beginning(file, packed, 2)) or own
    text = b"".join(blocks(file, encoding, packed)).removeprefix(MARK)
    try:
        text.decode()
    except UnicodeDecodeError:
        return b"".join(blocks(file, declared or "cp1252", packed))
    return text


def as_table(frame: Any) -> pl.DataFrame:
    """Return a data frame of pandas, polars or pyarrow as one of polars."""
    if hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "column_names"):
        return pl.DataFrame(frame)
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    if not (hasattr(frame, "columns") and hasattr(frame, "__getitem__")):
        raise PublicTableWrong(why="frame")
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    return pl.DataFrame({name: _series(values) for name, values in columns.items()})


def _series(values: list[Any]) -> pl.Series:
    """Return a column of pandas; what is neither number nor list becomes text."""
    plain = [None if isinstance(value, float) and np.isnan(value) else value for value in values]
    if any(isinstance(value, list | tuple | set | frozenset | np.ndarray) for value in plain):
        lists = [[] if value is None else [str(word) for word in value] for value in plain]
        return pl.Series(lists, dtype=pl.List(pl.String))
    with contextlib.suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(plain, strict=True)
    return pl.Series([None if value is None else str(value) for value in plain], dtype=pl.String)


def _encoded(column: pl.Series, *, apart: bool) -> list[Floats]:
    """Return a column as numbers; texts are taken `apart` or left whole."""
    if column.dtype == pl.Boolean or column.dtype.is_numeric():
        return _number_columns(column.cast(pl.Float64))
    if column.dtype.is_temporal():
        return _number_columns(column.cast(pl.Int64, strict=False).cast(pl.Float64))
    return _word_columns(words_of(column, apart=apart))


def _number_columns(column: pl.Series) -> list[Floats]:
    known = column.drop_nulls().drop_nans().to_numpy()
    if not np.isfinite(known).all():
        raise PublicTableWrong(why="infinite")
    if known.size == 0:
        return []
    values: Floats = column.fill_null(np.nan).to_numpy().astype(np.float64)
    values = np.where(np.isnan(values), known.mean(), values)
    spread = values.std()
    found: list[Floats] = [(values - values.mean()) / spread if spread > 0 else np.zeros(values.size)]
    cuts = number_ranges(known)
    if cuts is not None:
        place = np.searchsorted(cuts, values)
        found += [(place == part).astype(np.float64) for part in range(RANGES)]
    return found


def number_ranges(known: Floats) -> Floats | None:
    """Return what divides numbers into fifths, or None where they have few different values."""
    if np.unique(known).size <= _MANY_VALUES:
        return None
    cuts: Floats = np.quantile(known, np.arange(1, RANGES) / RANGES)
    return cuts


def words_of(column: pl.Series, *, apart: bool = True) -> list[list[str]]:
    """Return the words of each row: of a list, of a text that lists some, the text itself, or its words.

    Where most rows have a text of their own, such as a title, it is taken `apart` at everything that is
    neither a letter nor a digit; case does not count.
    """
    if isinstance(column.dtype, pl.List | pl.Array):
        return [[] if row is None else [str(word) for word in row] for row in column.to_list()]
    texts = ["" if row is None else str(row) for row in column.to_list()]
    for separator in _SEPARATORS:
        rows = [[word.strip() for word in text.split(separator) if word.strip()] for text in texts]
        different = {word for row in rows for word in row}
        # Sentences have commas, too, but hardly ever the same parts between them.
        if any(len(row) > 1 for row in rows) and 2 * len(different) <= len(rows):
            return rows
    parts = [_WORD.findall(text.lower()) for text in texts]
    own = 2 * len(set(texts) - {""}) > sum(map(bool, texts)) and max(map(len, parts), default=0) > 1
    return parts if apart and own else [[text] if text else [] for text in texts]


def _word_columns(rows: list[list[str]]) -> list[Floats]:
    shared = Counter(word for row in rows for word in set(row))
    least = max(_FEWEST_ITEMS, round(_LEAST_PART * len(rows)))
    words = [word for word, count in shared.most_common(_MOST_WORDS) if least <= count < len(rows)]
    place = {word: number for number, word in enumerate(words)}
    found = np.zeros((len(rows), len(words)))
    for number, row in enumerate(rows):
        found[number, [place[word] for word in row if word in place]] = 1.0
    return list(found.T)


# The public words of items: a sparse TF-IDF matrix of lists, texts and ranges of numbers. Words are hashed to
# a fixed number of columns, so a table may have any number of different ones.

#: Words are hashed to this many columns.
COLUMNS = 1 << 15


def item_words(source: Any, catalog: Vocabulary) -> sp.csr_matrix:
    """Return a row for every item of the catalog, of length 1 or, where the table has nothing, 0.

    Reads what `read_item_table` reads: the first column has item IDs.
    """
    table = item_frame(source)
    places = catalog.index_of(table.to_series(0))
    rows: list[list[str]] = [[] for _ in range(table.height)]
    for name in table.columns[1:]:
        for row, words in zip(rows, _words(table[name]), strict=True):
            row += [f"{name}={word}" for word in words]
    known = [(int(place), set(row)) for place, row in zip(places, rows, strict=True) if place >= 0]
    return _weighted(known, len(catalog))


def _words(column: pl.Series) -> list[list[str]]:
    """Return the words of a column; of numbers, the fifth of their range or the number itself."""
    if column.dtype == pl.Boolean or not (column.dtype.is_numeric() or column.dtype.is_temporal()):
        return words_of(column.cast(pl.String) if column.dtype == pl.Boolean else column)
    numbers = column.cast(pl.Int64, strict=False) if column.dtype.is_temporal() else column
    values: Floats = numbers.cast(pl.Float64).fill_null(np.nan).to_numpy()
    ranges = number_ranges(values[np.isfinite(values)])
    if ranges is not None:
        return [[f"{np.searchsorted(ranges, one)} of {RANGES}"] if np.isfinite(one) else [] for one in values]
    return [[f"{one:g}"] if np.isfinite(one) else [] for one in values]


def _weighted(known: list[tuple[int, set[str]]], n_items: int) -> sp.csr_matrix:
    """Return the matrix of inverse document frequencies, rows scaled to length 1."""
    shared = Counter(word for _, words in known for word in words)
    weights = {word: np.log(len(known) / count) for word, count in shared.items() if 1 < count < len(known)}
    cells = [
        (place, zlib.crc32(word.encode()) % COLUMNS, weights[word])
        for place, words in known
        for word in sorted(words)
        if word in weights
    ]
    places, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
    matrix = sp.csr_matrix(
        (np.array(values, dtype=np.float64), (places, columns)), shape=(n_items, COLUMNS), dtype=np.float64
    )
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / np.maximum(lengths, 1e-300)) @ matrix)


Row = dict[str, str]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PublicTable:
    """A table with item ids in its first column, and texts to show with them in the others."""

    ids: list[str | None]
    texts: pl.DataFrame

    @classmethod
    def read(cls, path: Path, encoding: str | None = None) -> Self:
        """Read a file with a header, or a sheet or table."""
        return cls._of(read_public(path, "titles", infer=False, encoding=encoding))

    @classmethod
    def of_frame(cls, frame: Any) -> Self:
        """Read a data frame of pandas, polars or pyarrow; lists of words are joined by commas."""
        table = as_table(frame)
        lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
        texts = [pl.col(name).cast(pl.List(pl.String)).list.join(", ") for name in lists]
        return cls._of(table.with_columns(texts))

    @classmethod
    def _of(cls, table: pl.DataFrame) -> Self:
        if table.width < 2:
            raise PublicTableWrong(why="columns", what="titles")
        ids = table.to_series(0).cast(pl.String).str.strip_chars().to_list()
        return cls(ids, table.drop(table.columns[0]).cast(pl.String).fill_null(""))

    @property
    def names(self) -> list[str]:
        """Return the names of the columns next to the IDs."""
        return self.texts.columns

    def refuse_foreign(self, catalog: Vocabulary) -> None:
        """Reject a table that names no item of the catalog."""
        if not (catalog.index_of(self.ids) >= 0).any():
            raise PublicTableWrong(why="foreign", what="titles")

    def rows_of(self, catalog: Vocabulary) -> dict[str | int, Row]:
        """Return the texts of each item of the catalog by column; items that the table lacks have no row."""
        places = catalog.index_of(self.ids)
        known = self.texts.filter(pl.Series(places >= 0))
        return dict(zip(catalog.id_at(places[places >= 0]).tolist(), known.to_dicts(), strict=True))


def read_public_table(path: Path, catalog: Vocabulary) -> dict[str | int, Row]:
    """Return the columns next to each ID of the catalog, of which the table must name one."""
    table = PublicTable.read(path)
    table.refuse_foreign(catalog)
    return table.rows_of(catalog)
