"""Look at a text file line by line: drop what is no record, and say which line does not fit, and why.

Whether a line fits is a matter of that line and the layout alone, so nobody's ratings are left out because of
somebody else's (proofs/reading.md).
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.checks import FileError
from discreet.core.exports import Later
from discreet.core.progress import logger
from discreet.data.reading.layouts import GZIP, Layout, magic

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

# Stands in no text file, so that a line is one field.
_NOWHERE = "\x1f"
_BLOCK = 1 << 24


def fitting_lines(file: Path, layout: Layout) -> io.BytesIO:
    """Return the lines below the header that fit the layout; others are refused, or counted and left out."""
    lines = _records(file, layout)
    fits = _fits(lines, layout)
    bad = int((~fits).sum())
    if bad and not layout.dialect.skip_bad_lines:
        raise FileError(_complaint(file, lines.filter(~fits), layout))
    if bad:
        logger.warning("%d of %d lines of %s do not fit and were left out.", bad, len(lines), file.name)
    kept = _unescaped(lines.filter(fits)["line"], layout)
    return io.BytesIO("\n".join(kept.to_list()).encode())


def why_unreadable(file: Path, layout: Layout) -> str:
    """Return a sentence that says which line cannot be read and why."""
    lines = _records(file, layout)
    bad = lines.filter(~_fits(lines, layout))
    if len(bad):
        return _complaint(file, bad, layout)
    return f"{file.name} cannot be read as a table: it is damaged, or a quote in it is not closed."


def first_is_in_line(file: Path, layout: Layout, row: int, rows: int) -> str:
    """Say in which line a row of a table of `rows` rows stands; lines that do not fit are named first."""
    lines = _records(file, layout)
    fits = _fits(lines, layout)
    if not fits.all() and not layout.dialect.skip_bad_lines:
        return _complaint(file, lines.filter(~fits), layout)
    kept = lines.filter(fits)
    # A quoted field may hold the end of a line; then lines are not rows.
    return f"The first is in line {int(kept['number'][row]):,}." if len(kept) == rows else ""


def _records(file: Path, layout: Layout) -> pl.DataFrame:
    """Return the lines with their numbers, without header, blank lines and comments."""
    types = {"line": pl.String}
    try:
        lines = pl.read_csv(
            io.BytesIO(_decoded(file, layout.dialect.encoding)),
            separator=_NOWHERE,
            quote_char=None,
            has_header=False,
            schema=types,
            raise_if_empty=False,
            row_index_name="number",
            row_index_offset=1,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise FileError(f"{file.name} is not a text table; its lines cannot be told apart.") from error
    text = pl.col("line")
    lines = lines.filter(text.is_not_null() & (text.str.strip_chars() != ""))
    if layout.comment is not None:
        lines = lines.filter(~text.str.starts_with(layout.comment))
    return lines.slice(1) if layout.header else lines


def _decoded(file: Path, encoding: str) -> bytes:
    """Return the file's text in UTF-8, unpacked; the first line that is in another encoding is named."""
    parts: list[bytes] = []
    before = 0
    try:
        with gzip.open(file, "rb") if magic(file).startswith(GZIP) else file.open("rb") as source:
            while block := source.read(_BLOCK) + source.readline():
                parts.append(_to_utf8(block, encoding, file.name, before))
                before += block.count(b"\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(f"{file.name} is damaged and cannot be unpacked; fetch it again.") from error
    return b"".join(parts)


def _to_utf8(block: bytes, encoding: str, name: str, before: int) -> bytes:
    try:
        return block.decode(encoding).encode()
    except UnicodeDecodeError as error:
        line = before + block.count(b"\n", 0, error.start) + 1
        known = encoding.upper()
        raise FileError(
            f"Line {line:,} of {name} is not {known} text; say which encoding it is, as in "
            'encoding="latin-1" (--encoding latin-1).'
        ) from error


def _bare(lines: pl.DataFrame, layout: Layout) -> pl.Series:
    """Return the lines with quoted fields emptied, so that what is left between fields can be counted."""
    text, quote = lines["line"], layout.dialect.quote
    if quote is None or len(layout.separator) > 1:
        return text
    text, mark = _unescaped(text, layout), re.escape(quote)
    field = rf"(^|{re.escape(layout.separator)}){mark}(?:[^{mark}]|{mark}{mark})*{mark}"
    return text.str.replace_all(field, "${1}")


def _unescaped(text: pl.Series, layout: Layout) -> pl.Series:
    """Return the lines with quotes inside quotes doubled, as tables have them."""
    quote, escape = layout.dialect.quote, layout.dialect.escape
    if escape is None or quote is None:
        return text
    return text.str.replace_all(escape + quote, quote * 2, literal=True)


def _fits(lines: pl.DataFrame, layout: Layout) -> pl.Series:
    """Tell which lines have as many fields as the layout, and close the quotes they open."""
    bare = _bare(lines, layout)
    found = bare.str.count_matches(layout.separator, literal=True) + 1
    return (found == len(layout.names)) & ~_is_open(bare, layout)


def _is_open(bare: pl.Series, layout: Layout) -> pl.Series:
    quote = layout.dialect.quote
    if quote is None or len(layout.separator) > 1:
        return pl.repeat(False, len(bare), eager=True)
    return bare.str.contains(rf"(^|{re.escape(layout.separator)}){re.escape(quote)}")


def _complaint(file: Path, bad: pl.DataFrame, layout: Layout) -> str:
    """Say which line is the first that does not fit, why, how many there are, and what can be done."""
    first = bad.head(1)
    line, bare = str(first["line"][0]), _bare(first, layout)
    if _is_open(bare, layout)[0]:
        why = "opens a quote that it does not close"
    else:
        found = int(bare.str.count_matches(layout.separator, literal=True)[0]) + 1
        why = f"has {found} field{'s' * (found > 1)} where {len(layout.names)} belong"
    quote = layout.dialect.quote
    do = "pass skip_bad_lines=True (--skip-bad-lines) to leave such lines out"
    if quote is not None and layout.dialect.escape is None and f"\\{quote}" in line:
        do = f"its quotes are escaped: pass escape='\\' (--escape '\\'), or {do[5:]}"
    alike = f" ({len(bad):,} lines do not fit)" if len(bad) > 1 else ""
    return f"Line {int(first['number'][0]):,} of {file.name} {why}{alike}; {do}."
