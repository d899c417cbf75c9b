"""Cut files of ratings into pieces that fit into memory, and survey them once.

Facts that are taken from the ratings are marked so, as when a file is read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np
import polars as pl

from discreet.core.checks import DataError
from discreet.data.bounding import hash_ids
from discreet.data.encoding import to_values
from discreet.data.facts import N_ITEMS, SCALE, Declarations, PublicFacts, count_off_step
from discreet.data.reading.columns import Choice, Columns, choose, date_order
from discreet.data.reading.frames import of_frame
from discreet.data.reading.layouts import GZIP, PARQUET, Dialect, is_json_lines, magic, sniff
from discreet.data.reading.limits import bounded, or_sentence, scanned
from discreet.data.reading.named import files_of_layout, has_own_form
from discreet.data.reading.readers import without_zeros
from discreet.data.reading.tables import locate, read_source
from discreet.data.reading.times import ORDERED_FORMS
from discreet.data.vocabulary import UNKNOWN, Vocabulary, as_series

_ROWS = 1 << 22
_BYTES = 1 << 27
_CHUNK = 1 << 20


class Piece(NamedTuple):
    """Name a part of a file: rows of Parquet, or bytes of text below its header lines."""

    file: Path
    start: int
    stop: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PieceReader:
    """Read files piece by piece, with the given settings."""

    columns: Choice | None = None
    implicit: bool = False
    dialect: Dialect | None = None
    zeros: str = "ratings"
    #: Users to leave out, as texts, and the only items to keep.
    without: Vocabulary | None = None
    known: Vocabulary | None = None

    def pieces(self, path: Path) -> list[Piece]:
        """Return the pieces of a file in order; some files are one piece."""
        dialect = self.dialect or Dialect()
        if has_own_form(dialect.layout):
            files = files_of_layout(path, str(dialect.layout))
            return [Piece(file, 0, file.stat().st_size) for file in files]
        file = locate(path)
        kind = magic(file)
        if kind == PARQUET:
            rows = self._count_rows(file)
            return [Piece(file, at, min(at + _ROWS, rows)) for at in range(0, rows, _ROWS)]
        size = file.stat().st_size
        if kind[:2] == GZIP or size <= _BYTES or is_json_lines(file, dialect):
            return [Piece(file, 0, size)]
        head = self._head(file)
        edges = [head, *self._line_ends(file, head, size), size]
        return [Piece(file, a, b) for a, b in pairwise(edges) if a < b]

    def read(self, piece: Piece) -> Columns:
        """Return the columns of a piece."""
        columns = self._columns(piece)
        # Dates of one piece must not say how those of another are read, so it is declared.
        if ORDERED_FORMS & set(columns.times_are) and date_order(self.columns) is None:
            raise DataError(
                "Dates with the year last are read piece by piece; say which part comes first with "
                "--columns time=NAME:day-first or time=NAME:month-first."
            )
        if self.zeros == "missing":
            columns = without_zeros(columns)
        if self.without is not None:
            gone = self.without.index_of(columns.users.cast(pl.String)) != UNKNOWN
            columns = columns.only(pl.Series(~gone))
        if self.known is not None:
            columns = columns.only(pl.Series(self.known.index_of(columns.items) != UNKNOWN))
        return columns

    def described(self) -> dict[str, str]:
        """Return a description that is equal for readers with equal settings."""
        plain = replace(self, without=None, known=None)
        filters = {"without": self.without, "known": self.known}
        return {"reader": repr(plain)} | {
            name: str(int(hash_ids(ids).sum())) for name, ids in filters.items() if ids is not None
        }

    def _columns(self, piece: Piece) -> Columns:
        if magic(piece.file) == PARQUET:
            return self._read_parquet(piece)
        if piece.stop - piece.start == piece.file.stat().st_size:
            return read_source(piece.file, self.columns, implicit=self.implicit, dialect=self.dialect).columns
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / piece.file.name
            with piece.file.open("rb") as source, part.open("wb") as target:
                target.write(source.read(self._head(piece.file)))
                source.seek(piece.start)
                for size in _chunks(piece.stop - piece.start):
                    target.write(source.read(size))
            return read_source(part, self.columns, implicit=self.implicit, dialect=self.dialect).columns

    def _read_parquet(self, piece: Piece) -> Columns:
        with or_sentence(f"{piece.file.name} is damaged and cannot be read as Parquet."):
            # Its pages were looked at when its rows were counted.
            rows = pl.scan_parquet(piece.file, glob=False).slice(piece.start, piece.stop - piece.start)
            found = of_frame(rows, self.columns, implicit=self.implicit)
            bounded(piece.file, (found.users, found.items))
        ids = [
            series.str.strip_chars() if series.dtype == pl.String else series
            for series in (found.users, found.items)
        ]
        return Columns(
            users=ids[0], items=ids[1], values=found.values, times=found.times, times_are=found.times_are
        )

    def _count_rows(self, file: Path) -> int:
        with or_sentence(f"{file.name} is damaged and cannot be read as Parquet."):
            rows = scanned(file, lambda names: choose(names, self.columns, implicit=self.implicit).values())
            return int(rows.select(pl.len()).collect().item())

    def _head(self, file: Path) -> int:
        """Return the number of bytes before the first rating; every piece is read with them."""
        layout = sniff(file, self.columns, implicit=self.implicit, dialect=self.dialect)
        with file.open("rb") as opened:
            return sum(len(opened.readline()) for _ in range(layout.skip))

    def _line_ends(self, file: Path, head: int, size: int) -> Iterator[int]:
        """Yield the ends of pieces: after a line, never inside quotes."""
        quote = ((self.dialect.quote if self.dialect else '"') or '"').encode()
        with file.open("rb") as opened:
            opened.seek(head)
            at, end, quotes = head, head + _BYTES, 0
            while end < size:
                while at < end:
                    part = opened.read(min(_CHUNK, end - at))
                    quotes += part.count(quote)
                    at += len(part)
                while line := opened.readline():
                    quotes += line.count(quote)
                    at += len(line)
                    if quotes % 2 == 0:
                        break
                yield at
                end = at + _BYTES


def as_texts(ids: Iterable[Any]) -> Vocabulary:
    """Return distinct ids as texts: files may hold the same users as numbers or as text."""
    return Vocabulary(pl.Series("id", sorted({str(one) for one in ids}), dtype=pl.String))


def _chunks(size: int) -> Iterator[int]:
    while size > 0:
        yield min(size, _CHUNK)
        size -= _CHUNK


_USUAL_STEPS = (1.0, 0.5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Hold the properties of some pieces; surveys of several pieces add up."""

    items: pl.Series
    ratings: int
    text_users: bool
    least: float
    most: float
    steps: tuple[float, ...]
    has_values: bool
    has_times: bool

    @classmethod
    def of(cls, columns: Columns) -> Self:
        """Survey one piece."""
        values = to_values(columns.values, len(columns.items))
        return cls(
            items=as_series(columns.items, "item ids").unique(),
            ratings=len(columns.items),
            text_users=as_series(columns.users, "user ids").dtype == pl.String,
            least=float(values.min()) if values.size else np.inf,
            most=float(values.max()) if values.size else -np.inf,
            steps=tuple(step for step in _USUAL_STEPS if count_off_step(values, 0.0, step) == 0),
            has_values=columns.values is not None,
            has_times=columns.times is not None,
        )

    def __add__(self, other: Survey) -> Survey:
        """Return the survey of both."""
        if (self.has_values, self.has_times) != (other.has_values, other.has_times):
            raise DataError(
                "Some files have ratings or times and others have none; leave the column out with --columns."
            )
        return replace(
            self,
            items=pl.concat(_of_one_kind([self.items, other.items])).unique(),
            ratings=self.ratings + other.ratings,
            text_users=self.text_users or other.text_users,
            least=min(self.least, other.least),
            most=max(self.most, other.most),
            steps=tuple(step for step in self.steps if step in other.steps),
        )

    def settle(self, declared: Declarations) -> tuple[PublicFacts, Vocabulary]:
        """Return the facts and the catalog: as declared, and the rest as found in the files."""
        if not self.ratings:
            raise DataError("The files hold no ratings.")
        catalog, from_file = declared.get("catalog"), [] if declared.get("catalog") else [N_ITEMS]
        catalog = Vocabulary(self.items.sort()) if catalog is None else catalog
        low, high, step = declared.get("low"), declared.get("high"), declared.get("step")
        if not self.has_values and low is None and high is None:
            low = high = 1.0
        if low is None or high is None:
            from_file.append(SCALE)
            low = self.least if low is None else low
            high = self.most if high is None else high
            step = next((one for one in self.steps if (low / one).is_integer()), step)
        facts = PublicFacts(
            n_items=len(catalog),
            low=low,
            high=high,
            step=step,
            max_per_user=declared.get("max_per_user"),
            n_users=declared.get("n_users"),
            from_file=tuple(from_file),
        )
        return facts, catalog

    def to_json(self) -> dict[str, Any]:
        """Return everything but the items."""
        record = {name: getattr(self, name) for name in self.__slots__ if name != "items"}
        return {**record, "steps": list(self.steps)}

    @classmethod
    def from_json(cls, record: dict[str, Any], items: pl.Series) -> Self:
        """Read what `to_json` returned."""
        return cls(**{**record, "steps": tuple(record["steps"])}, items=items)


def _of_one_kind(parts: list[pl.Series]) -> list[pl.Series]:
    return parts if len({part.dtype for part in parts}) == 1 else [part.cast(pl.String) for part in parts]
