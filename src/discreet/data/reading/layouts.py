"""Recognize how a text file is laid out from its first lines: separator, header, types of the ids."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from discreet.checks import DataError, FileError
from discreet.data.reading.columns import RATING, ROLES, Choice, choose, recognizes

_HEAD = 1 << 16
_SEPARATORS = ("::", "\t", ",", ";", "|", " ")
_GZIP, _ZIP, PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"PAR1"
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_JESTER_COLUMNS = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Say how to read a text file; `roles` names the columns, `whole` those that hold whole numbers."""

    separator: str
    header: bool
    names: tuple[str, ...]
    roles: dict[str, str]
    whole: frozenset[str]

    @property
    def is_dense(self) -> bool:
        """Tell whether each row is a person and each column an item, as in Jester."""
        return not self.roles


def magic(path: Path) -> bytes:
    """Return the first four bytes."""
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error


def sniff(path: Path, choice: Choice | None, *, implicit: bool) -> Layout:
    """Return the layout of a text file; refuse an empty one and one that is no text."""
    lines = _first_lines(path)
    separator = next((mark for mark in _SEPARATORS if mark in lines[0]), None)
    if separator is None:
        raise DataError(f"{path.name} has one column only; a table needs the person and the item at least.")
    fields = _split(lines, separator)
    first = fields[0]
    unnamed = tuple(f"column_{k + 1}" for k in range(len(first)))
    if len(first) == _JESTER_COLUMNS and all(map(_is_number, first)) and not choice:
        return Layout(separator=separator, header=False, names=unnamed, roles={}, whole=frozenset())
    header = _has_header(fields, choice, path.name)
    names = tuple(first) if header else unnamed
    if header and len(lines) == 1:
        raise DataError(f"{path.name} has a header and no ratings.")
    roles = choose(names, choice if header else _by_position(names, choice), implicit=implicit)
    sample = fields[1:] if header else fields
    return Layout(
        separator=separator, header=header, names=names, roles=roles, whole=_whole(sample, names, roles)
    )


def _split(lines: list[str], separator: str) -> list[list[str]]:
    if len(separator) > 1:
        return [line.split(separator) for line in lines]
    return list(csv.reader(lines, delimiter=separator))


def _first_lines(path: Path) -> list[str]:
    start = magic(path)
    if start == _ZIP:
        raise FileError(f"{path.name} is a zip archive; unpack it and name the file inside.")
    try:
        with gzip.open(path, "rb") if start.startswith(_GZIP) else path.open("rb") as file:
            head = file.read(_HEAD)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(f"{path.name} is damaged and cannot be unpacked; fetch it again.") from error
    if b"\x00" in head:
        raise FileError(
            f"{path.name} is not a text table; CSV, TSV, Parquet and MovieLens files can be read."
        )
    # The last line may be cut, and so may be a letter of it.
    text = head.decode("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if len(head) == _HEAD and len(lines) > 1:
        lines.pop()
    if not lines:
        raise DataError(f"{path.name} is empty.")
    return lines


def _has_header(fields: list[list[str]], choice: Choice | None, name: str) -> bool:
    """Tell a header from a rating, and refuse to guess: an error that lists columns must not show a rating.

    Names that are known make a header; a number where the rating stands makes a rating; otherwise a column
    that turns to numbers below the first line shows that the first one is different.
    """
    first, others = fields[0], fields[1:]
    if recognizes(first, choice):
        return True
    if _is_number(first[2]) if len(first) > 2 else any(map(_is_number, first)):
        return False
    for place, field in enumerate(first):
        below = [row[place] for row in others if len(row) > place]
        if below and not _is_number(field) and all(map(_is_number, below)):
            return True
    raise DataError(
        f"{name} does not say which column is which; put a first line such as user,item,rating into it."
    )


def _by_position(names: tuple[str, ...], choice: Choice | None) -> Choice:
    """Give the first columns of a file without a header their usual meaning."""
    chosen = dict(choice or {})
    roles = [role for role in ROLES if chosen.get(role, "") is not None]
    usual = dict(zip(roles, names, strict=False)) if len(names) <= len(roles) else {}
    return {**usual, **chosen}


def _whole(sample: list[list[str]], names: tuple[str, ...], roles: dict[str, str]) -> frozenset[str]:
    """Return the columns whose sampled fields are whole numbers; ids such as 007 must stay text."""
    places = {role: names.index(name) for role, name in roles.items() if role != RATING}
    return frozenset(
        names[place]
        for place in places.values()
        if all(len(row) > place and _WHOLE.fullmatch(row[place].strip()) for row in sample)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
