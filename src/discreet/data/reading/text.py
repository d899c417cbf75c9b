"""Read tables of text, each line by itself: what is read from a line follows from it and the schema."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core.exports import Later, pl
from discreet.data.block_sizes import block_sizes
from discreet.data.errors import NoColumn, OtherHeader
from discreet.data.reading.blocks import (
    MARK,
    Span,
    as_array,
    blocks,
    head,
    in_whole_lines,
    packing,
    to_utf8,
    unpacked_text,
)
from discreet.data.reading.columns import Columns, Marks, converted, plain_texts
from discreet.data.reading.listed_values import watch
from discreet.data.reading.tally import FIELDS, FITS, LETTERS, OTHER, Tally, shown_name
from discreet.data.reading.times import units_of
from discreet.data.roles import ITEM, RATING, TIME, USER, WEIGHT
from discreet.data.schema import NOT_PACKED, UTF_8, Schema, condition_key

if TYPE_CHECKING:
    from discreet.data.reading import line_splitting
else:
    # Compiling, or loading what was compiled, takes longer than most other commands.
    line_splitting = Later("discreet.data.reading.line_splitting")

Bytes = npt.NDArray[np.uint8]
#: Replaces line breaks inside quotes when an unknown file is looked at.
BREAK: Final = "\x01"
_HEAD: Final = 1 << 16


def read_text(file: Path, schema: Schema, span: Span | None = None) -> tuple[Columns, Tally]:
    """Return the rows of a file, or of a part that begins and ends with a line, and the count of the others.

    The header is not part of any span.
    """
    size = file.stat().st_size if span is None else span.stop - span.start
    rows = _Rows(schema, shown_name(file), size)
    has_header = schema.header and span is None
    packed = packing(file, schema.packed)
    for data in _pieces(blocks(file, schema.encoding, packed, span), schema, has_title=span is None):
        if has_header:
            has_header = not rows.skip_header(data)
        rows.add(data)
    return rows.columns(), rows.tally()


def _pieces(found: Iterator[bytes], schema: Schema, *, has_title: bool) -> Iterator[Bytes]:
    """Yield blocks of whole lines; breaks inside quotes don't end a line if the schema declares this.

    The rows above the header are blank.
    """
    skip = schema.skip_rows if has_title else 0
    if not schema.multiline:
        for block in found:
            data = as_array(block)
            skip -= blank_out(data, skip)
            yield data
        return
    whole = as_array(b"".join(found))
    blank_out(whole, skip)
    line_splitting.join_lines(whole, *_grammar(schema)[:3], ord(" "))
    yield from map(as_array, in_whole_lines(BytesIO(whole.tobytes()), UTF_8))


def blank_out(data: Bytes, lines: int) -> int:
    """Write blanks over the first lines of a block, and return how many of them it has."""
    if not lines:
        return 0
    ends = np.flatnonzero(data == 10)[:lines]
    above = data[: ends[-1] if ends.size == lines else data.size]
    above[above != 10] = 32
    return int(ends.size)


def lines_before(file: Path, schema: Schema) -> int:
    """Return the number of bytes before the first row: those of the header and of lines before it."""
    rows = _Rows(schema, file.name)
    feed = "\n".encode(schema.encoding)
    with unpacked_text(file, NOT_PACKED) as source:
        for _ in range(schema.skip_rows):
            _line(source, feed)
        if not schema.header:
            return source.tell()
        while line := _line(source, feed):
            if rows.skip_header(as_array(to_utf8(line, schema.encoding))):
                return source.tell()
    return 0


def has_header_of(file: Path, schema: Schema) -> bool:
    """Return whether a file begins with the header of a schema, which belongs to no user."""
    top = as_array(head(file, schema.encoding, packing(file, schema.packed), _HEAD))
    blank_out(top, schema.skip_rows)
    try:
        return _Rows(schema, file.name).skip_header(top)
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
    if not schema.quote or schema.quote.encode() not in text:
        return _split_unquoted(text, schema)
    if schema.multiline:
        joined = as_array(text)
        line_splitting.join_lines(joined, *_grammar(schema)[:3], ord(BREAK))
        text = joined.tobytes()
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
    """Return the same for a text without quotes, as in the history of one user: kernels load for a second."""
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


def read_lines(file: Path, schema: Schema, tally: Tally, read: Callable[[pl.Series], Marks]) -> None:
    """Hand the lines of a file to `read`, block by block; it returns a mark for each, which is counted.

    Blank lines are skipped, and lines that aren't text are counted as such. The last block is empty, so that
    a file without rows has columns as well.
    """
    # A letter that no text contains, so that a line is one field.
    nowhere, none = as_array(b"\x01"), as_array(b"")
    before, room = 0, _Split(np.zeros(1, np.int64))
    for block in chain(blocks(file, schema.encoding, packing(file, schema.packed)), [b""]):
        split = room.split(as_array(block), (nowhere, -1, -1, none))
        split.marks[split.marks == FIELDS] = LETTERS
        chosen = np.flatnonzero(split.marks == FITS)
        lines = pl.Series([], dtype=pl.String)
        if chosen.size:
            lines = _series(split.data, split.starts[0], split.ends[0], chosen)
        split.marks[chosen] = read(lines)
        tally.add(split.marks, split.places[0] + before)
        before += block.count(b"\n")


def _grammar(schema: Schema) -> tuple[Bytes, int, int, Bytes]:
    def code(letter: str) -> int:
        return letter.encode()[0] if letter else -1

    # Between "::" nothing is quoted.
    quote = code(schema.quote) if len(schema.delimiter) == 1 else -1
    escape = code(schema.escape)
    return as_array(schema.delimiter.encode()), quote, escape, as_array(schema.comment.encode())


@final
class _Split:
    """Where the needed fields of a block's lines are; the room is used again for the next block."""

    def __init__(self, slots: npt.NDArray[np.int64]) -> None:
        self._slots, self._room = slots, -1

    def split(self, data: Bytes, grammar: tuple[Bytes, int, int, Bytes]) -> Self:
        """Find the fields of a block."""
        if data.size > self._room:
            # A line that isn't empty has two bytes. What isn't written takes no memory.
            self._room, lines, slots = data.size, data.size // 2 + 2, int(self._slots.max(initial=-1)) + 1
            self._edges = np.empty((2, slots, lines), np.int64)
            self._marks, self._places = np.empty(lines, np.uint8), np.empty((2, lines), np.int64)
            self._special = np.empty(data.size + 1, np.int32)
        starts, ends = self._edges
        found = (starts, ends, self._marks, self._places, self._special)
        delimiter, quote, escape, comment = grammar
        rows = line_splitting.split_rows(data, delimiter, quote, escape, comment, self._slots, *found)
        self.data, self.marks, self.places = data, self._marks[:rows], self._places[:, :rows]
        self.starts, self.ends = self._edges[:, :, :rows]
        return self


def _split(data: Bytes, schema: Schema, slots: npt.NDArray[np.int64]) -> _Split:
    return _Split(slots).split(data, _grammar(schema))


@final
class _Rows:
    """The rows of a file, block after block."""

    def __init__(self, schema: Schema, name: str, size: int = 0) -> None:
        self._schema, self._name = schema, name
        self._conditions = schema.conditions
        self._size, self._seen = size, 0
        self._roles = list(schema.roles)
        for role, column in schema.roles.items():
            if column not in schema.columns:
                raise NoColumn(column=column, role=role, columns=schema.columns, spare=False)
        needed = list(dict.fromkeys(schema.needed.values()))
        slots = np.full(len(schema.columns), -1, np.int64)
        for slot, column in enumerate(needed):
            slots[schema.columns.index(column)] = slot
        self._slots = {key: needed.index(column) for key, column in schema.needed.items()}
        self._split, self._grammar = _Split(slots), _grammar(schema)
        self._texts = {role: Texts() for role in (USER, ITEM) if self._type_of(role) == "text"}
        self._found: dict[str, npt.NDArray[Any]] = {
            role: np.empty(0, self._kind_of(role)) for role in self._roles
        }
        self._line = self._count = self._whole_rows = 0
        self._forms: dict[str, None] = {}
        self._tally = Tally(name, schema.roles, len(schema.columns))

    def _type_of(self, role: str) -> str:
        return self._schema.user_type if role == USER else self._schema.item_type

    def _kind_of(self, role: str) -> type[np.generic]:
        return np.int32 if role in self._texts else np.float32 if role in (RATING, WEIGHT) else np.int64

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
        split, count = self._split.split(data, self._grammar), self._count
        rows = split.marks.size
        self._seen += data.size
        # Room for as many rows as the file has if they stay this long: copies cost more than empty room.
        most = int(1.01 * (count + rows) * max(1.0, self._size / max(1, self._seen)))
        self._mark_others(split)
        for role in self._roles:
            slot = self._slots[role]
            self._found[role] = _room(self._found[role], count + rows, most)
            fields = (split.data, split.starts[slot], split.ends[slot], split.marks)
            self._read(role, self._found[role][count : count + rows], *fields)
        fits = split.marks == FITS
        kept = int(np.count_nonzero(fits))
        if kept == rows:
            self._whole_rows += rows
        else:
            for found in self._found.values():
                found[count : count + kept] = found[count : count + rows][fits]
            self._tally.add(split.marks, split.places[0] + self._line, split.places[1])
        self._line += int(np.count_nonzero(data == 10))
        self._count += kept

    def _mark_others(self, split: _Split) -> None:
        """Mark the rows that a condition skips, before anything else of them is read."""
        for column, values in self._conditions.items():
            slot, chosen = self._slots[condition_key(column)], np.flatnonzero(split.marks == FITS)
            if chosen.size:
                own = _series(split.data, split.starts[slot], split.ends[slot], chosen)
                texts = plain_texts(own, column)
                watch(column, texts)
                split.marks[chosen[~texts.is_in(values).to_numpy()]] = OTHER

    def _read(self, role: str, found: Any, data: Bytes, starts: Any, ends: Any, marks: Any) -> None:
        """Read plain fields in compiled loops, and the rest as those of all other tables are read."""
        fields, rest = (data, starts, ends, marks), np.zeros(marks.size, np.uint8)
        if role in self._texts:
            self._texts[role].number(*fields, rest, found)
        elif role == WEIGHT and self._schema.weights:
            rest[marks == FITS] = 1
        elif role in (RATING, WEIGHT):
            point = ord("," if self._schema.decimal == "comma" else ".")
            line_splitting.read_singles(*fields, point, found, rest)
        elif role == TIME and self._schema.date_pattern:
            rest[marks == FITS] = 1
        else:
            line_splitting.read_whole_numbers(*fields, found, rest)
        if role == TIME:
            plain = (marks == FITS) & (rest == 0)
            self._forms |= dict.fromkeys(units_of(found if plain.all() else found[plain]))
        chosen = np.flatnonzero(rest)
        if chosen.size:
            own = np.zeros(chosen.size, np.uint8)
            values, forms = converted(_series(data, starts, ends, chosen), role, self._schema, own)
            self._forms |= dict.fromkeys(forms)
            marks[chosen] = own
            if role not in self._texts:
                found[chosen] = values.fill_null(0).to_numpy()

    def columns(self) -> Columns:
        """Return all rows."""
        found = {role: self._series_of(role, values[: self._count]) for role, values in self._found.items()}
        return Columns.by_role(found, self._schema.roles, tuple(self._forms))

    def tally(self) -> Tally:
        """Return the count of all rows."""
        self._tally.add(np.full(self._whole_rows, FITS, np.uint8))
        self._whole_rows = 0
        return self._tally

    def _series_of(self, role: str, values: npt.NDArray[Any]) -> pl.Series:
        return self._texts[role].series(values) if role in self._texts else pl.Series(values)


def _room(array: npt.NDArray[Any], size: int, likely: int = 0) -> npt.NDArray[Any]:
    """Return an array with room for `size` entries or more, with the same entries at its beginning."""
    if array.size >= size:
        return array
    larger = np.empty(max(size, likely, 2 * array.size), dtype=array.dtype)
    larger[: array.size] = array
    return larger


def _series(data: Bytes, starts: Any, ends: Any, chosen: npt.NDArray[np.int64]) -> pl.Series:
    """Return the fields of some rows as text."""
    joined = np.empty(int((ends[chosen] - starts[chosen]).sum()) + chosen.size, np.uint8)
    length = line_splitting.gather(data, starts, ends, chosen, joined)
    return _lines_of(joined[:length].tobytes())


def _lines_of(text: bytes) -> pl.Series:
    """Return lines as a series; each ends with a line feed."""
    return pl.Series([text[:-1].decode()]).str.split("\n").explode()


@final
class Texts:
    """IDs that are text, each stored once and numbered in the order in which they first occur."""

    def __init__(self) -> None:
        self._count, room = 0, block_sizes().ids
        self._table = np.zeros(room, np.int32)
        self._hashes = np.zeros(room, np.uint64)
        # No user can write IDs beforehand whose hashes are equal.
        self._hashes[0] = int.from_bytes(os.urandom(8), "little")
        self._edges = np.zeros(room, np.int64)
        self._letters = np.zeros(room, np.uint8)

    def number(
        self, data: Bytes, starts: Any, ends: Any, marks: Any, rest: Any, codes: npt.NDArray[np.int32]
    ) -> None:
        """Write the number of each text; `rest` marks empty fields."""
        self._make_room(marks.size, data.size)
        stored = (self._table, self._hashes, self._edges, self._letters, self._count)
        self._count = line_splitting.number_texts(data, starts, ends, marks, rest, *stored, codes)

    def _make_room(self, rows: int, letters: int) -> None:
        most = self._count + rows + 2
        self._hashes = _room(self._hashes, most)
        self._edges = _room(self._edges, most)
        self._letters = _room(self._letters, int(self._edges[self._count]) + letters + rows + 1)
        if self._table.size < 2 * most:
            self._table = np.zeros(1 << (2 * most - 1).bit_length(), np.int32)
            line_splitting.fill_table(self._table, self._hashes, self._count)

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
