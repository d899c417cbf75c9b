"""Describe items by their public words: a sparse TF-IDF matrix of lists, texts and ranges of numbers.

Words are hashed to a fixed number of columns, so a table may have any number of different ones. A word that
one item alone has, or that all have, shows nothing about others and is ignored.
"""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from discreet.core.arrays import Floats
from discreet.data.item_tables import RANGES, item_frame, number_ranges, words_of
from discreet.data.vocabulary import Vocabulary

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
