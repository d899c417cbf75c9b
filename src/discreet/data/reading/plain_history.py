"""Read a short and plainly written history of one person without loading polars for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from discreet.checks import DataError, DiscreetError
from discreet.data.accepting import PersonHistory
from discreet.data.reading.columns import ITEM, RATING, TIME, USER
from discreet.data.reading.layouts import Layout, sniff

_MOST_BYTES = 1 << 16
_SEPARATORS = (",", ";", "\t")
# Written so, a number is the same float32 whoever reads it; a zero may be worth a remark.
_RATING = re.compile(r"-?[0-9]{1,5}(\.[0-9]{1,4})?")
_SECONDS = re.compile(r"0|-?[1-9][0-9]{0,17}")


def read_plain_history(
    path: Path, columns: Mapping[str, str] | None, *, implicit: bool
) -> PersonHistory | None:
    """Return what the reader of tables would, or None for a file that needs it: long, quoted, or odd."""
    try:
        if not path.is_file() or path.stat().st_size >= _MOST_BYTES:
            return None
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
        layout = _layout(path, columns, implicit=implicit)
    except (OSError, UnicodeDecodeError, DiscreetError):
        return None
    rows = [line.removesuffix("\r").split(layout.separator) for line in lines[layout.skip :] if line.strip()]
    if layout.is_dense or layout.is_careful or layout.separator not in _SEPARATORS:
        return None
    return _by_item(rows, layout) if _is_plain(rows, layout) else None


def _layout(path: Path, columns: Mapping[str, str] | None, *, implicit: bool) -> Layout:
    try:
        return sniff(path, columns, implicit=implicit)
    except DataError:
        return sniff(path, {**(columns or {}), USER: None}, implicit=implicit)


def _is_plain(rows: list[list[str]], layout: Layout) -> bool:
    """Tell whether every line has all fields, none of them quoted or with blanks around it."""
    return bool(rows) and all(
        len(row) == len(layout.names)
        and all(field and field == field.strip() and '"' not in field and "\r" not in field for field in row)
        for row in rows
    )


def _by_item(rows: list[list[str]], layout: Layout) -> PersonHistory | None:
    place = {role: layout.names.index(name) for role, name in layout.roles.items()}
    if USER in place and len({row[place[USER]] for row in rows}) > 1:
        return None
    ratings = [row[place[RATING]] for row in rows] if RATING in place else ["1"] * len(rows)
    times = [row[place[TIME]] for row in rows] if TIME in place else None
    if not all(_RATING.fullmatch(text) and float(text) for text in ratings):
        return None
    if times is not None and not all(_SECONDS.fullmatch(text) for text in times):
        return None
    whole = layout.roles[ITEM] in layout.whole
    return PersonHistory.of(
        [int(row[place[ITEM]]) if whole else row[place[ITEM]] for row in rows],
        [float(np.float32(text)) for text in ratings],
        None if times is None else [int(text) for text in times],
    )
