"""Cut files of ratings into pieces that fit into memory, and survey them once.

Facts that are taken from the ratings are marked so, as when a file is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, final

import numpy as np
import polars as pl

from discreet.core.errors import without_password
from discreet.data.block_sizes import block_sizes
from discreet.data.bounding import hash_ids
from discreet.data.encoding import to_values
from discreet.data.facts import N_ITEMS, SCALE, Declarations, PublicFacts, count_off_step
from discreet.data.guessing import NOTHING, Wishes
from discreet.data.guessing_types import schema_of
from discreet.data.reading.blocks import Span, packing
from discreet.data.reading.cells import Address, address_of
from discreet.data.reading.columns import Columns
from discreet.data.reading.limits import or_damaged, scanned
from discreet.data.reading.named import files_of_layout, has_own_form
from discreet.data.reading.readers import on_scale, without_zeros
from discreet.data.reading.tables import read_rows, tables_at
from discreet.data.reading.text import spans
from discreet.data.schema import NOT_PACKED, Schema
from discreet.data.vocabulary import UNKNOWN, Vocabulary, as_series
from discreet.sources.errors import MixedColumns, NoRatings

_ROWS = 1 << 22


class Piece(NamedTuple):
    """A part of a file (rows of Parquet, or bytes of text below its header), and the schema of the file.

    For a spreadsheet or a database, `file` is its address.
    """

    file: str | Path
    start: int
    stop: int
    schema: Schema
    #: Whether the file is read at once: packed files, cells, and layouts that are not tables are.
    whole: bool = False

    @property
    def address(self) -> Address | None:
        """Return the address of cells; None for a file."""
        return address_of(self.file) if self.schema.format == "cells" else None

    def identity(self) -> list[str | int]:
        """Return what shows on another run whether this is the same piece of the same file.

        A server doesn't state when its rows changed. Passwords are replaced.
        """
        address, changed = self.address, [0, 0]
        place = self.file if address is None else address.place
        name = without_password(place)
        if address is None or address.kind != "PostgreSQL":
            state = Path(place).stat()
            name, changed = str(Path(place).resolve()), [state.st_size, state.st_mtime_ns]
        return [name, address.table if address else "", *changed, self.start, self.stop]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PieceReader:
    """A reader of files piece by piece, with the given settings.

    All pieces of a file are read with one schema: that of the settings, or one that describes the whole file.
    """

    wishes: Wishes = NOTHING
    schema: Schema | None = None
    zeros: str | None = None
    #: The declared scale, for schemas that drop or clip ratings off it.
    scale: Mapping[str, Any] = field(default_factory=dict)
    #: Users to skip, as texts, and the only items to keep.
    without: Vocabulary | None = None
    known: Vocabulary | None = None

    def pieces(self, path: str | Path) -> list[Piece]:
        """Return the pieces of a file in order; some files are one piece."""
        schema = schema_of(path, self.wishes)[0] if self.schema is None else self.schema
        if has_own_form(schema.format):
            files = files_of_layout(Path(path), schema.format)
            return [Piece(file, 0, file.stat().st_size, schema, True) for file in files]
        if schema.format == "cells":
            return [Piece(path, 0, 0, schema, True)]
        return [piece for file in tables_at(path) for piece in self._of_file(file, schema)]

    def _of_file(self, file: Path, schema: Schema) -> list[Piece]:
        if schema.format in ("parquet", "frame"):
            rows = _count_rows(file)
            return [Piece(file, at, min(at + _ROWS, rows), schema) for at in range(0, rows, _ROWS)]
        if schema.format != "text" or schema.multiline or packing(file, schema.packed) != NOT_PACKED:
            return [Piece(file, 0, file.stat().st_size, schema, True)]
        return [
            Piece(file, start, stop, schema)
            for start, stop in spans(file, schema.in_files(), block_sizes().piece)
        ]

    def read(self, piece: Piece) -> Columns:
        """Return the columns of a piece."""
        span = None if piece.whole else Span(piece.start, piece.stop)
        columns = read_rows(piece.file, piece.schema, span).columns
        columns = on_scale(columns, piece.schema.off_scale, self.scale)
        if (self.zeros or piece.schema.zeros) == "missing":
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


def _count_rows(file: Path) -> int:
    with or_damaged(file):
        return int(scanned(file).select(pl.len()).collect().item())


def as_texts(ids: Iterable[Any]) -> Vocabulary:
    """Return distinct ids as texts: files may hold the same users as numbers or as text."""
    return Vocabulary(pl.Series("id", sorted({str(one) for one in ids}), dtype=pl.String))


_USUAL_STEPS = (1.0, 0.5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The properties of some pieces; surveys of several pieces add up."""

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
            raise MixedColumns()
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
            raise NoRatings()
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
