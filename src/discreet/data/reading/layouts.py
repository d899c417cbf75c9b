"""Recognize the layout of a text file: separator, header, encoding, types of the ids."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
import zipfile
import zlib
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, final

from discreet.core.checks import DataError, FileError, ParameterError, one_of, require
from discreet.data.reading.columns import (
    DECIMAL_COMMA,
    RATING,
    ROLES,
    WEIGHT,
    Choice,
    UnclearHeader,
    are_places,
    choose,
    date_order,
    how_to_name,
    looks_like_time,
    recognizes,
    unread_times,
)

_HEAD = 1 << 16
_SEPARATORS = ("::", "\t", ",", ";", "|", " ")
GZIP, _ZIP, PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"
_LABEL_OF_MODELS = "label.json"
# Where the first line begins with it, lines that do are remarks.
_COMMENT = "#"
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_JESTER_COLUMNS = 101
# Lines with more different lengths than this are lists, not rows of a table.
_FEW_LENGTHS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Say how to read a text file; `roles` names the columns, `whole` those that hold whole numbers."""

    separator: str
    header: bool
    names: tuple[str, ...]
    roles: dict[str, str]
    whole: frozenset[str]
    #: How many lines come before the first rating, and what begins those that are remarks.
    skip: int
    comment: str | None
    dialect: Dialect
    #: A column that looks like times and that no role takes.
    unread_times: str | None = None
    #: Whether the day or the month comes first in dates whose year is last, if the caller says it.
    date_order: str | None = None

    @property
    def is_dense(self) -> bool:
        """Tell whether each row is a person and each column an item, as in Jester."""
        return not self.roles

    @property
    def is_careful(self) -> bool:
        """Tell whether lines must be looked at one by one before they are read as a table.

        Versions of polars differ in whether blank lines at the beginning count as lines to skip.
        """
        return self.dialect.is_careful or self.comment is not None or self.skip > self.header


def magic(path: Path) -> bytes:
    """Return the first four bytes."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error


def text_head(path: Path, dialect: Dialect) -> str:
    """Return the beginning of a text file."""
    return _as_text(_head(path), dialect)


def _as_text(head: bytes, dialect: Dialect) -> str:
    encoding = "utf-8-sig" if dialect.encoding == _UTF8 else dialect.encoding
    return head.decode(encoding, errors="replace")


# An id such as {3F2504E0-...} also begins with a brace, so a key must follow.
_JSON_OBJECT = re.compile(r'\s*\{\s*["}]')
_NO_TABLES = {
    re.compile(r"\s*\[\s*(\{|$|\n)"): "is one JSON value; write one object a line (JSON lines), or CSV",
    re.compile(r"\s*\{\s*'"): "holds Python dictionaries; write them as JSON, one object a line",
    re.compile(
        r"\s*<(\?xml|!doctype|html)", re.I
    ): "is a web page or XML, not a table; fetch the file itself",
    re.compile(
        r"\s*[0-9]+:\s*\n"
    ): 'is no table; a file of the Netflix Prize needs layout="netflix" (--layout)',
}


def is_json_lines(path: Path, dialect: Dialect) -> bool:
    """Tell whether a text is JSON lines; refuse what is known to be no table."""
    head = text_head(path, dialect)
    for form, what in _NO_TABLES.items():
        if form.match(head):
            raise FileError(f"{path.name} {what}.")
    return _JSON_OBJECT.match(head) is not None


def sniff(path: Path, choice: Choice | None, *, implicit: bool, dialect: Dialect | None = None) -> Layout:
    """Return the layout of a text file; refuse an empty one and one that is no text."""
    dialect = dialect or Dialect()
    if is_json_lines(path, dialect):
        raise DataError(f"{path.name} is JSON lines, not a table of fields.")
    top = _first_lines(path, dialect)
    separator = dialect.delimiter or _separator(top.lines[0], dialect)
    if separator is None:
        raise DataError(f"{path.name} has one column only; a table needs the person and the item at least.")
    fields = _split(top.lines, separator, dialect)
    first = fields[0]
    unnamed = tuple(f"column_{k + 1}" for k in range(len(first)))
    shape = partial(
        Layout, separator=separator, comment=top.comment, dialect=dialect, date_order=date_order(choice)
    )
    if len(first) == _JESTER_COLUMNS and all(map(is_number, first)) and not choice:
        return shape(header=False, names=unnamed, roles={}, whole=frozenset(), skip=top.skip)
    header = _has_header(fields, choice, path.name)
    if not (header or choice or dialect.skip_bad_lines) and separator == " ":
        _refuse_lists(fields, path.name)
    names = tuple(first) if header else unnamed
    if header and len(fields) == 1:
        raise DataError(f"{path.name} has a header and no ratings.")
    roles = choose(names, choice if header else _by_position(names, choice), implicit=implicit)
    whole = _whole(fields[1:] if header else fields, names, roles)
    rows = fields[1:] if header else fields
    sample = {name: [row[k].strip() for row in rows if len(row) > k] for k, name in enumerate(names)}
    unread = unread_times(sample, roles, choice)
    return shape(
        header=header, names=names, roles=roles, whole=whole, skip=top.skip + header, unread_times=unread
    )


def _separator(line: str, dialect: Dialect) -> str | None:
    """Return what stands between the fields of the first line: the mark that splits it into most.

    In `7;lamp;4,5` a comma splits as well, but into fewer. Blanks count only where nothing else does. Other
    lines have no say: they are people's.
    """
    marks = [mark for mark in _SEPARATORS if mark in line]
    marks = [mark for mark in marks if mark != " "] or marks
    return max(marks, key=lambda mark: len(_split([line], mark, dialect)[0]), default=None)


def _refuse_lists(fields: list[list[str]], name: str) -> None:
    """Refuse lines of numbers that differ in length: a user and all their items, as LightGCN writes them."""
    numbers = all(field.isdecimal() for row in fields for field in row)
    if numbers and len({len(row) for row in fields}) > _FEW_LENGTHS:
        raise DataError(
            f"{name} has lines of numbers of different lengths. If each is a user and all their items, pass "
            'layout="lightgcn" (--layout lightgcn).'
        )


def _split(lines: list[str], separator: str, dialect: Dialect) -> list[list[str]]:
    if len(separator) > 1:
        return [line.split(separator) for line in lines]
    if dialect.quote is None:
        return list(csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE))
    return list(csv.reader(lines, delimiter=separator, quotechar=dialect.quote, escapechar=dialect.escape))


class _Top(NamedTuple):
    """The first lines that are neither blank nor remarks, and how many of those come before them."""

    lines: list[str]
    skip: int
    comment: str | None


def _first_lines(path: Path, dialect: Dialect) -> _Top:
    head = _head(path)
    lines = _as_text(head, dialect).splitlines()
    # The last line may be cut, and so may be a letter of it.
    if len(head) == _HEAD and len(lines) > 1:
        lines.pop()
    filled = [place for place, line in enumerate(lines) if line.strip()]
    if not filled:
        raise DataError(f"{path.name} is empty.")
    first = lines[filled[0]]
    comment = dialect.comment
    if comment is None and first.startswith(_COMMENT) and not _is_marked_header(first):
        comment = _COMMENT
    if comment is not None:
        filled = [place for place in filled if not lines[place].startswith(comment)]
    if not filled:
        raise DataError(f"{path.name} has comments and no ratings.")
    kept = [lines[place] for place in filled]
    kept[0] = kept[0].removeprefix(_COMMENT).lstrip() if _is_marked_header(kept[0]) else kept[0]
    return _Top(kept, filled[0], comment)


def _is_marked_header(line: str) -> bool:
    """Tell whether a line is a header behind a comment sign, as in `# user,item,rating`."""
    names = re.split(r"[,;|\t ]+|::", line.removeprefix(_COMMENT).strip())
    return line.startswith(_COMMENT) and len(names) > 1 and recognizes(names[:2], None) and len(names) < 5


def _head(path: Path) -> bytes:
    start = magic(path)
    if start == _ZIP:
        raise FileError(f"{path.name} {_what_is_packed(path)}.")
    try:
        with gzip.open(path, "rb") if start.startswith(GZIP) else path.open("rb") as file:
            head: bytes = file.read(_HEAD)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{path.name} is damaged and cannot be unpacked; fetch it again.") from error
    if b"\x00" in head:
        raise FileError(
            f"{path.name} is not a text table; CSV, TSV, Parquet and MovieLens files can be read."
        )
    return head


def _what_is_packed(path: Path) -> str:
    """Say what a zip archive is: a model has a label among its members."""
    try:
        with zipfile.ZipFile(path) as archive:
            is_model = _LABEL_OF_MODELS in archive.namelist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        is_model = False
    if is_model:
        return (
            "is a model of discreet, not ratings; `discreet label` shows what it promises, and `discreet "
            "score` measures it"
        )
    return "is a zip archive; unpack it and name the file inside"


def _has_header(fields: list[list[str]], choice: Choice | None, name: str) -> bool:
    """Tell a header from a rating, and refuse to guess: an error that lists columns must not show a rating.

    Names that are known make a header, and columns that are named by their places make none; a number where
    the rating stands makes a rating; otherwise a column that turns to numbers or dates below the first line
    shows that the first one is different.
    """
    first, others = fields[0], fields[1:]
    if recognizes(first, choice):
        return True
    if are_places(choice):
        return False
    if is_number(first[2]) if len(first) > 2 else any(map(is_number, first)):
        return False
    for place, field in enumerate(first):
        below = [row[place] for row in others if len(row) > place]
        if below and not is_moment(field) and all(map(is_moment, below)):
            return True
    raise UnclearHeader(how_to_name(len(first), choice, name), first)


def _by_position(names: tuple[str, ...], choice: Choice | None) -> Choice:
    """Give the first columns of a file without a header their usual meaning."""
    chosen = dict(choice or {})
    roles = [role for role in ROLES if chosen.get(role, "") is not None]
    usual = dict(zip(roles, names, strict=False)) if len(names) <= len(roles) else {}
    return {**{role: name for role, name in usual.items() if name not in chosen.values()}, **chosen}


def _whole(sample: list[list[str]], names: tuple[str, ...], roles: dict[str, str]) -> frozenset[str]:
    """Return the columns whose sampled fields are whole numbers; ids such as 007 must stay text."""
    places = {role: names.index(name) for role, name in roles.items() if role not in (RATING, WEIGHT)}
    return frozenset(
        names[place]
        for place in places.values()
        if all(len(row) > place and _WHOLE.fullmatch(row[place].strip()) for row in sample)
    )


def is_number(text: str) -> bool:
    """Tell whether a field is written as a number, with a decimal point or comma."""
    try:
        float(text)
    except ValueError:
        return re.match(DECIMAL_COMMA, text.strip()) is not None
    return True


def is_moment(text: str) -> bool:
    """Tell whether a field is written as a number or a date."""
    return is_number(text) or looks_like_time(text.strip())


_UTF8 = "utf-8"


class TextOptions(TypedDict, total=False):
    """Say how a text file is written; what is absent (or None) is told from its first lines.

    Attributes:
        delimiter: What stands between fields.
        quote: What stands around fields that hold a delimiter; "none" if nothing is quoted.
        escape: What stands before a quote inside quotes; else it is doubled.
        encoding: The encoding of the text; UTF-8 by default.
        comment: What begins lines to leave out.
        skip_bad_lines: Leave out lines that do not fit, or whose id, rating or time cannot be read, each
            judged by itself, and say how many.
        layout: A well-known layout: movielens, netflix, lightgcn, recbole or sasrec.
    """

    delimiter: str | None
    quote: str | None
    escape: str | None
    encoding: str | None
    comment: str | None
    skip_bad_lines: bool
    layout: str | None


LAYOUTS = ("movielens", "netflix", "lightgcn", "recbole", "sasrec")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Hold the options of a text file, checked."""

    delimiter: str | None = None
    quote: str | None = '"'
    escape: str | None = None
    encoding: str = _UTF8
    comment: str | None = None
    skip_bad_lines: bool = False
    layout: str | None = None

    def __post_init__(self) -> None:
        if self.layout is not None:
            one_of("layout", self.layout, LAYOUTS)
        one_letter = "must be one letter"
        if self.delimiter is not None:
            known = len(self.delimiter) == 1 or self.delimiter == "::"
            require(known, "delimiter", self.delimiter, one_letter, "Or ::, as in MovieLens.")
        for name in ("quote", "escape"):
            value = getattr(self, name)
            require(value is None or len(value) == 1, name, value, one_letter, 'Say "none" for none.')
        require(self.comment != "", "comment", self.comment, "must not be empty")

    @property
    def is_careful(self) -> bool:
        """Tell whether lines must be looked at one by one before they are read as a table."""
        return self.skip_bad_lines or self.escape is not None or self.encoding != _UTF8


def take_dialect(options: dict[str, Any]) -> Dialect:
    """Take the text options out of `options`, which keeps the others, and return them."""
    said = {
        field.name: options.pop(field.name)
        for field in fields(Dialect)
        if options.get(field.name) is not None
    }
    for field in fields(Dialect):
        options.pop(field.name, None)
    for name in ("quote", "escape"):
        if said.get(name) == "none":
            said[name] = None
    if said.get("delimiter") in ("tab", "\\t"):
        said["delimiter"] = "\t"
    if "encoding" in said:
        said["encoding"] = _codec(said["encoding"])
    return Dialect(**said)


def _codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError as error:
        raise ParameterError(f"encoding={name!r} is not known; latin-1 and cp1252 are common.") from error
