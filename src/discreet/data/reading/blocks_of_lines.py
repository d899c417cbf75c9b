"""Read text in blocks of whole lines, so that memory does not grow with the file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.core.checks import DataError, FileError
from discreet.core.exports import Later
from discreet.core.progress import logger
from discreet.data.reading.layouts import GZIP, magic

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

_BLOCK = 1 << 24
_LONGEST_LINE = 1 << 24


class LineBlock(NamedTuple):
    """Hold the lines of a part of a file that are not blank, stripped, and their numbers."""

    numbers: pl.Series
    lines: pl.Series

    def only(self, kept: pl.Series) -> LineBlock:
        """Return the lines that a mask marks."""
        return LineBlock(self.numbers.filter(kept), self.lines.filter(kept))


def blocks_of_lines(file: Path, encoding: str = "utf-8") -> Iterator[LineBlock]:
    """Yield a text file, packed or not, block by block."""
    before = 0
    try:
        with gzip.open(file, "rb") if magic(file).startswith(GZIP) else file.open("rb") as source:
            while raw := source.read(_BLOCK) + _rest_of_line(source, file):
                yield _lines(raw, file, encoding, before)
                before += raw.count(b"\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(f"{file.name} is damaged and cannot be unpacked; fetch it again.") from error


def _rest_of_line(source: Any, file: Path) -> bytes:
    rest: bytes = source.readline(_LONGEST_LINE)
    if len(rest) == _LONGEST_LINE and not rest.endswith(b"\n"):
        raise FileError(f"{file.name} has a line of more than {_LONGEST_LINE:,} letters; no ratings do.")
    return rest


def _lines(raw: bytes, file: Path, encoding: str, before: int) -> LineBlock:
    try:
        text = raw.decode("utf-8-sig" if encoding == "utf-8" and not before else encoding)
    except UnicodeDecodeError as error:
        line = before + raw.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"Line {line:,} of {file.name} is not {encoding.upper()} text; say which encoding it is, as in "
            'encoding="latin-1" (--encoding latin-1).'
        ) from error
    lines = pl.Series([text]).str.split("\n").explode().str.strip_chars()
    numbers = pl.int_range(before + 1, before + 1 + len(lines), eager=True)
    return LineBlock(numbers, lines).only(lines.str.len_bytes() > 0)


class Fitting:
    """Keep the lines of a file that fit its layout; refuse the others, or count and leave them out.

    A message names the first line that does not fit by its number and says what a line looks like.
    """

    def __init__(self, file: Path, shape: str, *, skip: bool) -> None:
        self._file, self._shape, self._skip = file, shape, skip
        self._left_out = self._seen = 0

    def keep(self, block: LineBlock, fits: pl.Series) -> LineBlock:
        """Return the lines that fit."""
        fits = fits.fill_null(False)
        bad = len(fits) - int(fits.sum())
        self._seen += len(fits)
        if bad and not self._skip:
            first = int(block.numbers.filter(~fits)[0])
            alike = f" (and {bad - 1:,} more)" if bad > 1 else ""
            raise DataError(
                f"Line {first:,} of {self._file.name}{alike} is not {self._shape}; pass skip_bad_lines=True "
                "(--skip-bad-lines) to leave such lines out, or name another layout."
            )
        self._left_out += bad
        return block.only(fits) if bad else block

    def close(self) -> None:
        """Say how many lines were left out, if any."""
        if self._left_out:
            name = self._file.name
            logger.warning(
                "%d of %d lines of %s do not fit and were left out.", self._left_out, self._seen, name
            )
