"""Read text in blocks of whole lines, in UTF-8, so that memory does not grow with the file.

A letter's bytes are decoded by themselves, so it doesn't matter where blocks end. Bytes that aren't a letter
become bytes that aren't UTF-8, and the reader of lines marks that line alone.
"""

from __future__ import annotations

import codecs
import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np

from discreet.data import errors
from discreet.data.block_sizes import block_sizes
from discreet.data.reading.limits import Allowance
from discreet.data.reading.tally import LONGEST_LINE
from discreet.data.schema import NOT_PACKED, PACKED_GZIP, PACKED_ZIP, UTF_8, UTF_16

GZIP, ZIP, PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"
_ENDINGS = {".gz": PACKED_GZIP, ".zip": PACKED_ZIP}
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
#: What some editors write at the beginning of a file; no line's first field contains it.
MARK = b"\xef\xbb\xbf"
_LABEL_OF_MODELS = "label.json"
_NO_LETTER = "discreet-no-letter"


def _half_a_pair(error: UnicodeError) -> tuple[str, int]:
    """Return a letter that UTF-8 does not have for each byte that a code page does not have."""
    assert isinstance(error, UnicodeDecodeError)
    return "\udcff" * (error.end - error.start), error.end


codecs.register_error(_NO_LETTER, _half_a_pair)


class Span(NamedTuple):
    """A part of a file: bytes of text, or rows of Parquet."""

    start: int
    stop: int


def magic(path: Path) -> bytes:
    """Return the first four bytes of a file."""
    with _opened(path) as file:
        return file.read(4)


def _opened(path: Path) -> IO[bytes]:
    """Open a file; raise an error for a pipe or a device, which may never end."""
    if not path.is_file():
        raise errors.NotAFile(path=str(path))
    try:
        return path.open("rb")
    except OSError as error:
        raise errors.CannotRead(path=str(path), why=str(error.strerror)) from error


def packing(path: Path, declared: str = "") -> str:
    """Return what packs a file: as declared, else by the end of its name; no byte of a user decides this.

    A first row may look like the beginning of an archive, and a last one like its end.
    """
    return declared or _ENDINGS.get(path.suffix, NOT_PACKED)


def shown_packing(path: Path) -> str:
    """Return what packs a file by its first bytes, for guesses and public tables; reject other packing."""
    return packing_of(magic(path), path.name)


def packing_of(raw: bytes, name: str) -> str:
    """Return what packs a file that begins with these bytes; reject other packing."""
    if raw.startswith(_ZSTANDARD):
        raise errors.OtherPacking(path=name, kind="Zstandard")
    return PACKED_ZIP if raw.startswith(ZIP) else PACKED_GZIP if raw.startswith(GZIP) else NOT_PACKED


def plain_name(file: Path) -> str:
    """Return a file's name without that of what packs it."""
    return file.name.removesuffix(".gz").removesuffix(".zip")


@contextmanager
def unpacked_text(path: Path, packed: str) -> Iterator[IO[bytes]]:
    """Open a file, or what a gzip or zip file contains; raise a FileError if it is damaged."""
    try:
        with _opened(path) as file:
            if packed == PACKED_ZIP:
                with zipfile.ZipFile(file) as archive, archive.open(_only_table(path, archive)) as member:
                    yield member
            elif packed == PACKED_GZIP:
                with gzip.open(file) as source:
                    yield cast(IO[bytes], source)
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, NotImplementedError) as error:
        raise errors.DamagedFile(
            path=path.name, what="a zip archive" if packed == PACKED_ZIP else "gzip"
        ) from error


def _only_table(path: Path, archive: zipfile.ZipFile) -> str:
    members = [
        one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX")
    ]
    if any(one.filename == _LABEL_OF_MODELS for one in members):
        raise errors.IsAModel(path=path.name)
    if len(members) != 1:
        raise errors.SeveralInArchive(path=path.name, files=len(members))
    return members[0].filename


def blocks(file: Path, encoding: str, packed: str, span: Span | None = None) -> Iterator[bytes]:
    """Yield a text file, packed or not, in UTF-8; each block ends with a line, or with the file.

    Lines and bytes of a packed file are counted as they are unpacked.
    """
    budget = None if packed == NOT_PACKED else Allowance(file)
    with unpacked_text(file, packed) as source:
        left = None
        if span is not None and budget is None:
            source.seek(span.start)
            left = span.stop - span.start
        yield from in_whole_lines(source, encoding, left, budget)


def in_whole_lines(
    source: IO[bytes], encoding: str, left: int | None = None, budget: Allowance | None = None
) -> Iterator[bytes]:
    """Yield the rest of a file, or `left` bytes of it, in UTF-8, in blocks of whole lines."""
    rest = b""
    at_once = block_sizes().text
    while raw := source.read(at_once if left is None else min(at_once, left)):
        left = None if left is None else left - len(raw)
        if budget is not None:
            budget.take_bytes(len(raw))
        raw = rest + raw
        cut = after_last_line(raw, encoding)
        # A line that is cut here is still longer than any row, wherever blocks end.
        rest = raw[cut : cut + 2 * (LONGEST_LINE + 1)]
        if cut:
            block = to_utf8(raw[:cut], encoding)
            if budget is not None:
                budget.take_rows(block.count(b"\n"))
            yield block
    if rest:
        yield to_utf8(rest, encoding)


def after_last_line(raw: bytes, encoding: str) -> int:
    """Return the place behind the last line feed; 0 if there is none."""
    if encoding not in UTF_16:
        return raw.rfind("\n".encode(encoding)) + 1
    units = np.frombuffer(raw, dtype="<u2" if encoding.endswith("le") else ">u2", count=len(raw) // 2)
    feeds = np.flatnonzero(units == 10)
    return 2 * int(feeds[-1]) + 2 if feeds.size else 0


def to_utf8(raw: bytes, encoding: str) -> bytes:
    """Return text in UTF-8; what isn't a letter becomes bytes that UTF-8 does not have."""
    if encoding == UTF_8:
        return raw
    if encoding in UTF_16:
        # Half a letter at the end of a file.
        odd = b"\xff" if len(raw) % 2 else b""
        text = raw[: len(raw) - len(odd)].decode(encoding, "surrogatepass")
        return text.encode("utf-8", "surrogatepass") + odd
    return raw.decode(encoding, _NO_LETTER).encode("utf-8", "surrogatepass")


def head(file: Path, encoding: str, packed: str, size: int) -> bytes:
    """Return the beginning of a text in UTF-8, without a line that is cut."""
    return first_lines(beginning(file, packed, size + 1), encoding, size)


def beginning(file: Path, packed: str, size: int) -> bytes:
    """Return the first bytes of a text as they are."""
    with unpacked_text(file, packed) as source:
        return source.read(size)


def first_lines(raw: bytes, encoding: str, size: int) -> bytes:
    """Return the first `size` bytes in UTF-8; without a line that is cut there."""
    cut = 0 if len(raw) <= size else after_last_line(raw[:size], encoding)
    return to_utf8(raw[: cut or size], encoding).removeprefix(MARK)


def as_array(block: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the bytes of a block as an array that may be changed."""
    return np.frombuffer(bytearray(block), dtype=np.uint8)
