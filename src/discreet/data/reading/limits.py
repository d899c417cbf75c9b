"""Reject files that take far more memory than they are long, and read Parquet within limits.

A page of a few bytes may unpack to two gigabytes, and libraries allocate what its header states. Headers and
the footer are written in Thrift's compact form. Only numbers are looked at here; texts are skipped.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, final

from discreet.core.checks import DiscreetError
from discreet.core.exports import pl
from discreet.data.errors import DamagedFile, TooManyRows, UnpacksToTooMuch

# Ratings as text shrink to a tenth or so. Packed, or as Parquet, a rating seldom takes less than a byte.
_MOST_GROWTH, _ALWAYS_ALLOWED = 100, 1 << 26
_ROWS_ALWAYS_ALLOWED = 1 << 20
# IDs in order take less than ratings do.
_VALUES_PER_BYTE = 2


@final
class Allowance:
    """What a file of this size may become in memory: rows and bytes, counted over all of its blocks."""

    def __init__(self, file: Path) -> None:
        self._file, size = file, file.stat().st_size
        self._rows, self._bytes = _ROWS_ALWAYS_ALLOWED + size, max(_ALWAYS_ALLOWED, _MOST_GROWTH * size)

    def take_rows(self, count: int) -> None:
        """Raise an error if the file has more rows than its size allows."""
        self._rows -= count
        if self._rows < 0:
            raise TooManyRows(path=str(self._file))

    def take_bytes(self, count: int) -> None:
        """Raise an error if the file unpacks to more bytes than its size allows."""
        self._bytes -= count
        if self._bytes < 0:
            raise UnpacksToTooMuch(path=str(self._file), times=_MOST_GROWTH)

    def take_texts(self, columns: Iterable[pl.Series]) -> None:
        """Count texts as if each row had its own: a dictionary stores a text once for all of its rows."""
        self.take_bytes(sum(map(_text_bytes, columns)))


@contextmanager
def or_damaged(file: Path, what: str = "Parquet") -> Iterator[None]:
    """Raise a `DamagedFile` if polars can't read a file, foreseen or not."""
    try:
        yield
    except DiscreetError:
        raise
    # Polars raises a panic, which is not an `Exception`, for what it did not foresee.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        # The error of polars may quote a value, which is a user's record.
        raise DamagedFile(path=file.name, what=what) from None


def scanned(file: Path) -> pl.LazyFrame:
    """Return a Parquet file to be read; raise an error if it states more than it can contain."""
    found, size = unpacked(file), file.stat().st_size
    if found.values > _ROWS_ALWAYS_ALLOWED + _VALUES_PER_BYTE * size:
        raise TooManyRows(path=str(file))
    Allowance(file).take_bytes(found.size)
    return pl.scan_parquet(file, glob=False)


def collected(file: Path, name: str | None = None) -> pl.DataFrame:
    """Return all of a small Parquet file, or one of its columns."""
    table = scanned(file)
    found = (table if name is None else table.select(pl.col(name))).collect()
    Allowance(file).take_texts(found)
    return found


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


_MAGIC, _TAIL = b"PAR1", 8
_DEEPEST = 16
# Thrift's types: two truths, a byte, three integers; then a double, text, list, set, struct and UUID.
_TRUE, _FALSE, _BYTE, _INTEGERS, _DOUBLE, _TEXT, _LISTS, _STRUCT, _UUID = (
    1, 2, 3, (4, 5, 6), 7, 8, (9, 10), 12, 13,
)  # fmt: skip
# The numbers of the fields that matter, as in parquet.thrift.
_ROW_GROUPS, _COLUMNS, _META, _FILE = 4, 1, 3, 1
_PACKED, _DATA_AT, _DICTIONARY_AT = 7, 9, 11
_PAGE_UNPACKED, _PAGE_PACKED, _PAGE_KINDS, _PAGE_VALUES = 2, 3, (5, 8), 1


class Unpacked(NamedTuple):
    """What a file unpacks to: bytes of all pages, and values of the column that has most."""

    size: int
    values: int


def unpacked(file: Path) -> Unpacked:
    """Return what the pages of a file say that they unpack to."""
    now = file.stat()
    return _unpacked(file, (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))


@lru_cache(maxsize=256)
def _unpacked(file: Path, _state: tuple[int, ...]) -> Unpacked:
    """Walk over all pages, once for each state of a file: large files are read in many pieces."""
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            return _added(raw)
    except (ValueError, IndexError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedFile(path=file.name, what="Parquet") from error


def _added(raw: mmap.mmap) -> Unpacked:
    if raw[-4:] != _MAGIC:
        raise ValueError("no footer")
    length = int.from_bytes(raw[-_TAIL:-4], "little")
    footer = _Thrift(raw, len(raw) - _TAIL - length).struct()
    size, values = 0, [0]
    for group in footer.get(_ROW_GROUPS, []):
        columns = group[_COLUMNS]
        values += [0] * (len(columns) - len(values))
        for place, column in enumerate(columns):
            found = _chunk(raw, column)
            size, values[place] = size + found.size, values[place] + found.values
    return Unpacked(size, max(values))


def _chunk(raw: mmap.mmap, column: dict[int, Any]) -> Unpacked:
    """Walk over the pages of one column of one row group."""
    meta = column[_META]
    at = meta.get(_DICTIONARY_AT) or meta[_DATA_AT]
    at, end = min(at, meta[_DATA_AT]), min(at, meta[_DATA_AT]) + meta[_PACKED]
    if _FILE in column or not 0 <= at <= end <= len(raw):
        raise ValueError("a column outside the file")
    size = values = 0
    while at < end:
        page = _Thrift(raw, at)
        header = page.struct()
        if header[_PAGE_PACKED] < 0 or header[_PAGE_UNPACKED] < 0:
            raise ValueError("a negative size")
        at = page.at + header[_PAGE_PACKED]
        size += header[_PAGE_UNPACKED]
        values += sum(header[kind][_PAGE_VALUES] for kind in _PAGE_KINDS if kind in header)
    return Unpacked(size, values)


@final
class _Thrift:
    """Thrift's compact form from a place on; structs become numbers of fields and their values."""

    def __init__(self, raw: mmap.mmap, at: int) -> None:
        if at < 0:
            raise ValueError("a place before the file")
        self._raw, self.at = raw, at

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Read a struct; an end of the file inside it is an `IndexError`."""
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind in (_DOUBLE, _TEXT, _UUID):
            length = self._varint() if kind == _TEXT else 8 if kind == _DOUBLE else 16
            self.at += length
            return None
        if kind in _LISTS:
            return self._list(depth)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError("a type that Parquet does not use")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._raw) - self.at:
            raise ValueError("a list longer than the file")
        return [self._value(head & 15, depth + 1) for _ in range(count)]

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while shift < 70:
            part = self._byte()
            number |= (part & 127) << shift
            if part < 128:
                return number
            shift += 7
        raise ValueError("a number without end")

    def _byte(self) -> int:
        self.at += 1
        return self._raw[self.at - 1]
