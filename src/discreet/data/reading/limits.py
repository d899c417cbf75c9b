"""Refuse files that would cost far more memory than they are long, or that never end."""

from __future__ import annotations

import zlib
from pathlib import Path

from discreet.checks import FileError
from discreet.data.reading.parquet_pages import unpacked

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


def refuse_bomb(file: Path, magic: bytes) -> None:
    """Refuse a packed text that unpacks to more than ratings can; what is unpacked here is forgotten."""
    if magic == _ZSTANDARD:
        raise FileError(f"{file} is packed with Zstandard; unpack it, or pack it with gzip.")
    if not magic.startswith(b"\x1f\x8b"):
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
