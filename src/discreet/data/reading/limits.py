"""Refuse files that cost far more memory than they are long, and read Parquet within limits.

A page of a few bytes may unpack to two gigabytes, and libraries allocate what its header says. Headers and
the footer are written in Thrift's compact form. Only numbers are looked at here; texts are skipped.
"""

from __future__ import annotations

import io
import mmap
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

from discreet.core.checks import DiscreetError, FileError
from discreet.core.exports import Later
from discreet.data.reading.blocks import GZIP, ZIP, magic

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

# Ratings as text shrink to a tenth or so; as Parquet a rating seldom takes less than a byte.
_MOST_GROWTH, _ALWAYS_ALLOWED = 100, 1 << 26
_MOST_ROWS_PER_BYTE, _ROWS_ALWAYS_ALLOWED = 64, 1 << 20
_CHUNK = 1 << 20
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW = zlib.MAX_WBITS | 16


def refuse_irregular(file: Path) -> None:
    """Refuse what is no file: reading from a pipe or a device may wait, or go on, for ever."""
    if not file.is_file():
        raise FileError(f"{file} is not a file. Write its contents to one first.")


def refuse_bomb(file: Path) -> None:
    """Reject a packed text that unpacks to more than ratings can; what is unpacked here is forgotten."""
    kind = magic(file)
    if kind == _ZSTANDARD:
        raise FileError(f"{file} is packed with Zstandard; unpack it, or pack it with gzip.")
    if kind == ZIP:
        with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(file) as archive:
            refuse_growth(file, sum(member.file_size for member in archive.infolist()))
    if not kind.startswith(GZIP):
        return
    most = max(_ALWAYS_ALLOWED, _MOST_GROWTH * file.stat().st_size)
    refuse_growth(file, _unpacked_bytes(file, most))


def refuse_pages(file: Path) -> None:
    """Refuse a Parquet file whose pages hold more values, or unpack to more bytes, than ratings can."""
    found, size = unpacked(file), file.stat().st_size
    if found.values > _ROWS_ALWAYS_ALLOWED + _MOST_ROWS_PER_BYTE * size:
        raise FileError(f"{file} promises {found.values:,} rows, more than a file of its size can hold.")
    refuse_growth(file, found.size)


def refuse_growth(file: Path, size: int) -> None:
    """Refuse a file that becomes more bytes in memory than ratings, ids and titles can."""
    if size > max(_ALWAYS_ALLOWED, _MOST_GROWTH * file.stat().st_size):
        raise FileError(f"{file} unpacks to more than {_MOST_GROWTH} times its size; no ratings do.")


def _unpacked_bytes(file: Path, most: int) -> int:
    """Return how much a gzip file unpacks to, as far as `most`; what is damaged is found when it is read."""
    total, unpacker = 0, zlib.decompressobj(_GZIP_WINDOW)
    try:
        with file.open("rb") as packed:
            while total <= most and (raw := unpacker.unconsumed_tail or packed.read(_CHUNK)):
                total += len(unpacker.decompress(raw, _CHUNK))
                if unpacker.eof:
                    # Several packed files one after another are one text.
                    rest, unpacker = unpacker.unused_data, zlib.decompressobj(_GZIP_WINDOW)
                    total += len(unpacker.decompress(rest, _CHUNK)) if rest else 0
    except (OSError, zlib.error):
        return total
    return total


@contextmanager
def or_sentence(sentence: str) -> Iterator[None]:
    """Raise a `FileError` with this sentence where polars finds a file damaged, foreseen or not."""
    try:
        yield
    except DiscreetError:
        raise
    # What polars itself did not foresee is a panic, which is no `Exception`.
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        # The error of polars may quote a value, which is a user's record.
        raise FileError(sentence) from None


def scanned(file: Path, used: Callable[[list[str]], Iterable[str]] | None = None) -> pl.LazyFrame:
    """Return a Parquet file to be read; one that promises more than it can hold is refused.

    `used` tells which of its columns are needed; all are if it is left out.
    """
    refuse_pages(file)
    table = pl.scan_parquet(file, glob=False)
    schema = table.collect_schema()
    names = schema.names() if used is None else list(used(schema.names()))
    encoded = [name for name in names if schema[name] in (pl.Categorical, pl.Enum)]
    if encoded:
        bounded(file, _as_texts(file).select(encoded).collect())
    return table


def _as_texts(file: Path) -> pl.LazyFrame:
    """Return a Parquet file whose dictionaries are read as texts, which share memory.

    As categories polars would hash the text of every row, minutes for long ones. It learns of categories
    from an entry of the footer, which is given another name here.
    """
    raw = bytearray(file.read_bytes())
    footer = len(raw) - _TAIL - int.from_bytes(raw[-_TAIL:-4], "little")
    raw[footer:] = raw[footer:].replace(b"ARROW:schema", b"other:schema")
    return pl.scan_parquet(io.BytesIO(raw))


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
    """Say what a file unpacks to: bytes of all pages, and values of the column that has most."""

    size: int
    values: int


def unpacked(file: Path) -> Unpacked:
    """Return what the pages of a file say that they unpack to."""
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            return _added(raw)
    except (ValueError, IndexError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileError(f"{file.name} is damaged and cannot be read as Parquet; write it again.") from error


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
    """Read Thrift's compact form from a place on; structs become numbers of fields and their values."""

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
