"""Read tables of text, each line by itself: what is read from a line follows from it and the schema."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

from discreet.core.exports import Later
from discreet.data.errors import OtherHeader
from discreet.data.reading.blocks import MARK, Span, as_array, blocks, head, to_utf8, unpacked_text
from discreet.data.reading.columns import Columns, number_of
from discreet.data.reading.tally import (
    FIELDS,
    FITS,
    ITEM_MISSING,
    ITEM_TYPE,
    LETTERS,
    RATING_MISSING,
    RATING_TEXT,
    TIME_TEXT,
    USER_MISSING,
    USER_TYPE,
    Tally,
)
from discreet.data.reading.times import moments_of_texts, units_of
from discreet.data.roles import ITEM, TIME, USER
from discreet.data.schema import Schema

if TYPE_CHECKING:
    import polars as pl

    from discreet.data.reading import kernels
else:
    pl = Later("polars")
    # Compiling, or loading what was compiled, takes longer than most other commands.
    kernels = Later("discreet.data.reading.kernels")

Bytes = npt.NDArray[np.uint8]
#: Replaces line breaks inside quotes when an unknown file is looked at.
BREAK: Final = "\x01"
_FEWEST_TEXTS: Final = 1 << 10
_HEAD: Final = 1 << 16


def read_text(file: Path, schema: Schema, span: Span | None = None) -> tuple[Columns, Tally]:
    """Return the rows of a file, or of a part that begins and ends with a line, and the count of the others.

    The header is not part of any span.
    """
    rows = _Rows(schema, file.name)
    found = blocks(file, schema.encoding, span)
    if schema.multiline:
        found = iter([b"".join(found)])
    has_header = schema.header and span is None
    for block in found:
        data = as_array(block)
        if has_header:
            has_header = not rows.skip_header(data)
        rows.add(data)
    return rows.columns(), rows.tally


def lines_before(file: Path, schema: Schema) -> int:
    """Return the number of bytes before the first row: those of the header and of lines before it."""
    if not schema.header:
        return 0
    rows = _Rows(schema, file.name)
    feed = "\n".encode(schema.encoding)
    with unpacked_text(file) as source:
        while line := _line(source, feed):
            if rows.skip_header(as_array(to_utf8(line, schema.encoding))):
                return source.tell()
    return 0


def has_header_of(file: Path, schema: Schema) -> bool:
    """Return whether a file begins with the header of a schema, which belongs to no user."""
    try:
        return _Rows(schema, file.name).skip_header(as_array(head(file, schema.encoding, _HEAD)))
    except OtherHeader:
        return False


def _line(source: Any, feed: bytes) -> bytes:
    line = b""
    while part := source.read(len(feed)):
        line += part
        if part == feed:
            break
    return line


def split_fields(text: bytes, schema: Schema) -> list[list[str] | None]:
    """Return all fields of each line that is neither blank nor a comment; None for a line that isn't split.

    Lines may have any number of fields here: this is how a header, or an unknown file, is looked at.
    """
    if schema.multiline:
        joined = as_array(text)
        kernels.join_lines(joined, *_grammar(schema)[:3], ord(BREAK))
        text = joined.tobytes()
    if not schema.quote or schema.quote.encode() not in text:
        return _split_unquoted(text, schema)
    counted = _split(as_array(text), schema, np.zeros(1, np.int64))
    is_split = (counted.marks == FITS) | (counted.marks == FIELDS)
    found: list[list[str] | None] = [None] * counted.marks.size
    for width in np.unique(counted.places[1, is_split]).tolist():
        split = _split(as_array(text), schema, np.arange(width))
        raw = split.data.tobytes()
        for row in np.flatnonzero(split.marks == FITS).tolist():
            edges = zip(split.starts[:, row].tolist(), split.ends[:, row].tolist(), strict=True)
            found[row] = [raw[start:end].decode() for start, end in edges]
    return found


def _split_unquoted(text: bytes, schema: Schema) -> list[list[str] | None]:
    """Return the same for a text without quotes; a short one need not wait for what is compiled."""
    blanks = " \t\r\x0b\x0c"
    lines = (line.removeprefix(MARK) for line in text.split(b"\n"))
    kept = [line for line in lines if line.strip(blanks.encode())]
    if schema.comment:
        kept = [line for line in kept if not line.startswith(schema.comment.encode())]
    found: list[list[str] | None] = []
    for line in kept:
        try:
            found.append([field.strip(blanks) for field in line.decode().split(schema.delimiter)])
        except UnicodeDecodeError:
            found.append(None)
    return found


def lines_of(data: Bytes) -> tuple[Any, npt.NDArray[np.int64], pl.Series]:
    """Return marks of the lines that are not blank, their numbers, and those that are text."""
    # A letter that no text contains, so that a line is one field.
    nowhere, none = as_array(b"\x01"), as_array(b"")
    split = _Split(data, 1, _most_rows(data))
    fields = (np.zeros(1, np.int64), split.starts, split.ends, split.marks, split.places)
    split.cut(kernels.split_rows(data, nowhere, -1, -1, none, *fields))
    split.marks[split.marks == FIELDS] = LETTERS
    chosen = np.flatnonzero(split.marks == FITS)
    lines = (
        _series(data, split.starts[0], split.ends[0], chosen)
        if chosen.size
        else pl.Series([], dtype=pl.String)
    )
    return split.marks, split.places[0], lines


def _grammar(schema: Schema) -> tuple[Bytes, int, int, Bytes]:
    def code(letter: str) -> int:
        return letter.encode()[0] if letter else -1

    # Between "::" nothing is quoted.
    quote = code(schema.quote) if len(schema.delimiter) == 1 else -1
    return as_array(schema.delimiter.encode()), quote, code(schema.escape), as_array(schema.comment.encode())


@final
class _Split:
    """Where the needed fields of a block's lines are."""

    def __init__(self, data: Bytes, slots: int, lines: int) -> None:
        self.data = data
        self.starts, self.ends = np.empty((slots, lines), np.int64), np.empty((slots, lines), np.int64)
        self.marks, self.places = np.empty(lines, np.uint8), np.empty((2, lines), np.int64)

    def cut(self, rows: int) -> None:
        """Forget room that no line took."""
        self.starts, self.ends = self.starts[:, :rows], self.ends[:, :rows]
        self.marks, self.places = self.marks[:rows], self.places[:, :rows]


def _most_rows(data: Bytes) -> int:
    """Return a bound on the lines that are not empty; empty ones get no room, however many there are."""
    feeds = data == 10
    return int(np.count_nonzero(feeds[1:] & ~feeds[:-1])) + 2


def _split(data: Bytes, schema: Schema, slots: npt.NDArray[np.int64]) -> _Split:
    split = _Split(data, int(slots.max(initial=-1)) + 1, _most_rows(data))
    delimiter, quote, escape, comment = _grammar(schema)
    rows = kernels.split_rows(
        data, delimiter, quote, escape, comment, slots, split.starts, split.ends, split.marks, split.places
    )
    split.cut(rows)
    return split


@final
class _Rows:
    """The rows of a file, block after block."""

    def __init__(self, schema: Schema, name: str) -> None:
        self._schema, self._name = schema, name
        self._roles = list(schema.roles)
        self._slots = np.full(len(schema.columns), -1, np.int64)
        for slot, role in enumerate(self._roles):
            self._slots[schema.columns.index(schema.roles[role])] = slot
        self._texts = {role: Texts() for role in (USER, ITEM) if self._type_of(role) == "text"}
        self._parts: dict[str, list[npt.NDArray[Any]]] = {role: [] for role in self._roles}
        self._line = 0
        self._forms: dict[str, None] = {}
        self.tally = Tally(name, schema.roles, len(schema.columns))

    def _type_of(self, role: str) -> str:
        return self._schema.user_type if role == USER else self._schema.item_type

    def skip_header(self, data: Bytes) -> bool:
        """Blank out the first line that is neither blank nor a comment, if there is one; check its names."""
        whole, at = data.tobytes(), 0
        while at < len(whole):
            end = whole.find(b"\n", at)
            end = len(whole) if end < 0 else end
            names = split_fields(whole[at:end], self._schema)
            if names:
                self._check(names[0])
                data[at:end] = 32
                return True
            at = end + 1
        return False

    def _check(self, names: list[str] | None) -> None:
        declared = list(self._schema.columns)
        if names is None or [names[0].lstrip("# "), *names[1:]] != declared != names:
            raise OtherHeader(path=self._name, columns=tuple(declared))

    def add(self, data: Bytes) -> None:
        """Read the lines of a block."""
        if self._schema.multiline:
            kernels.join_lines(data, *_grammar(self._schema)[:3], ord(" "))
        split = _split(data, self._schema, self._slots)
        found = {role: self._read(role, slot, split) for slot, role in enumerate(self._roles)}
        fits = split.marks == FITS
        self.tally.add(split.marks, split.places[0] + self._line, split.places[1])
        self._line += int(np.count_nonzero(data == 10))
        for role, values in found.items():
            self._parts[role].append(values if fits.all() else values[fits])

    def _read(self, role: str, slot: int, split: _Split) -> npt.NDArray[Any]:
        fields = (split.data, split.starts[slot], split.ends[slot], split.marks)
        if role in self._texts:
            missing = USER_MISSING if role == USER else ITEM_MISSING
            return self._texts[role].number(*fields, missing)
        if role in (USER, ITEM):
            missing, odd = (USER_MISSING, USER_TYPE) if role == USER else (ITEM_MISSING, ITEM_TYPE)
            numbers = np.empty(split.marks.size, np.int64)
            kernels.read_integers(*fields, missing, odd, numbers)
            return numbers
        return self._moments(*fields) if role == TIME else self._ratings(*fields)

    def _moments(self, data: Bytes, starts: Any, ends: Any, marks: Any) -> npt.NDArray[np.int64]:
        found, rest = np.empty(marks.size, np.int64), np.zeros(marks.size, np.uint8)
        if self._schema.date_pattern:
            rest = (marks == FITS).astype(np.uint8)
        else:
            kernels.read_moments(data, starts, ends, marks, found, rest)
            plain = (marks == FITS) & (rest == 0)
            self._forms |= dict.fromkeys(units_of(found if plain.all() else found[plain]))
        chosen = np.flatnonzero(rest)
        if chosen.size:
            moments, forms = moments_of_texts(_series(data, starts, ends, chosen), self._schema)
            self._forms |= dict.fromkeys(forms)
            found[chosen] = moments.fill_null(0).to_numpy()
            marks[chosen[moments.is_null().to_numpy()]] = TIME_TEXT
        return found

    def _ratings(self, data: Bytes, starts: Any, ends: Any, marks: Any) -> npt.NDArray[np.float32]:
        found, rest = np.empty(marks.size, np.float32), np.zeros(marks.size, np.uint8)
        point = ord("," if self._schema.decimal == "comma" else ".")
        kernels.read_singles(data, starts, ends, marks, point, found, rest)
        chosen = np.flatnonzero(rest)
        if chosen.size:
            texts = pl.DataFrame({"text": _series(data, starts, ends, chosen)})
            numbers = texts.select(number_of(pl.col("text"), self._schema.decimal)).to_series()
            found[chosen] = numbers.fill_null(0).to_numpy()
            marks[chosen[~numbers.fill_null(0).is_finite().to_numpy()]] = RATING_MISSING
            marks[chosen[numbers.is_null().to_numpy()]] = RATING_TEXT
        return found

    def columns(self) -> Columns:
        """Return all rows."""
        if not self.tally.rows:
            # Columns of no rows have types as well.
            self.add(as_array(b""))
        found = {role: self._series_of(role, _joined(parts)) for role, parts in self._parts.items()}
        return Columns.by_role(found, self._schema.roles, tuple(self._forms))

    def _series_of(self, role: str, values: npt.NDArray[Any]) -> pl.Series:
        return self._texts[role].series(values) if role in self._texts else pl.Series(values)


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the parts in one array; each is freed as it is copied."""
    if not parts:
        return np.empty(0, np.int64)
    if len(parts) == 1:
        return parts.pop()
    whole, at = np.empty(sum(part.size for part in parts), parts[0].dtype), 0
    for number, part in enumerate(parts):
        whole[at : at + part.size] = part
        at += part.size
        parts[number] = whole[:0]
    return whole


def _series(data: Bytes, starts: Any, ends: Any, chosen: npt.NDArray[np.int64]) -> pl.Series:
    """Return the fields of some rows as text."""
    joined = np.empty(int((ends[chosen] - starts[chosen]).sum()) + chosen.size, np.uint8)
    length = kernels.gather(data, starts, ends, chosen, joined)
    return _lines_of(joined[:length].tobytes())


def _lines_of(text: bytes) -> pl.Series:
    """Return lines as a series; each ends with a line feed."""
    return pl.Series([text[:-1].decode()]).str.split("\n").explode()


@final
class Texts:
    """IDs that are text, each stored once and numbered in the order in which they first occur."""

    def __init__(self) -> None:
        self._count = 0
        self._table = np.zeros(_FEWEST_TEXTS, np.int32)
        self._hashes = np.zeros(_FEWEST_TEXTS, np.uint64)
        # No user can write IDs beforehand whose hashes are equal.
        self._hashes[0] = int.from_bytes(os.urandom(8), "little")
        self._edges = np.zeros(_FEWEST_TEXTS, np.int64)
        self._letters = np.zeros(_FEWEST_TEXTS, np.uint8)

    def number(self, data: Bytes, starts: Any, ends: Any, marks: Any, missing: int) -> npt.NDArray[np.int32]:
        """Return the number of each text; rows without one get the mark `missing`."""
        self._make_room(marks.size, data.size)
        codes = np.empty(marks.size, np.int32)
        self._count = kernels.number_texts(
            data,
            starts,
            ends,
            marks,
            missing,
            self._table,
            self._hashes,
            self._edges,
            self._letters,
            self._count,
            codes,
        )
        return codes

    def _make_room(self, rows: int, letters: int) -> None:
        most = self._count + rows + 2
        self._hashes = kernels.room(self._hashes, most)
        self._edges = kernels.room(self._edges, most)
        self._letters = kernels.room(self._letters, int(self._edges[self._count]) + letters + rows + 1)
        if self._table.size < 2 * most:
            self._table = np.zeros(1 << (2 * most - 1).bit_length(), np.int32)
            kernels.fill_table(self._table, self._hashes, self._count)

    def series(self, codes: npt.NDArray[np.int32]) -> pl.Series:
        """Return the texts with these numbers, encoded by a dictionary, without blanks around them."""
        if not self._count:
            return pl.Series([], dtype=pl.String)
        texts = _lines_of(self._letters[: self._edges[self._count]].tobytes()).str.strip_chars()
        if texts.n_unique() < len(texts):
            places = {text: place for place, text in enumerate(texts.unique(maintain_order=True))}
            codes = np.array([places[text] for text in texts], dtype=np.int32)[codes]
            texts = texts.unique(maintain_order=True)
        return texts.cast(pl.Enum(texts)).gather(pl.Series(codes))


def spans(file: Path, schema: Schema, size: int) -> Iterator[Span]:
    """Yield parts of a file of about `size` bytes, each of whole lines; a row is in one of them."""
    start, end = lines_before(file, schema), file.stat().st_size
    feed = "\n".encode(schema.encoding)
    with file.open("rb") as source:
        while start < end:
            stop = min(start + max(size, len(feed)) // len(feed) * len(feed), end)
            source.seek(stop)
            if stop < end and not _is_line_end(source, stop, feed):
                _line(source, feed)
                stop = source.tell()
            yield Span(start, stop)
            start = stop


def _is_line_end(source: Any, at: int, feed: bytes) -> bool:
    source.seek(at - len(feed))
    return bool(source.read(len(feed)) == feed)
