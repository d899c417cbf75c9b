"""Read a short and plainly written history of one person without loading polars for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from discreet.checks import DataError, DiscreetError
from discreet.data.reading.columns import ITEM, RATING, USER
from discreet.data.reading.layouts import Layout, sniff

_MOST_BYTES = 1 << 16
_SEPARATORS = (",", ";", "\t")
# Written so, a number is the same float32 whoever reads it; a zero may be worth a remark.
_RATING = re.compile(r"-?[0-9]{1,5}(\.[0-9]{1,4})?")


def read_plain_history(
    path: Path, columns: Mapping[str, str] | None, *, implicit: bool
) -> dict[str | int, float] | None:
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


def _by_item(rows: list[list[str]], layout: Layout) -> dict[str | int, float] | None:
    place = {role: layout.names.index(name) for role, name in layout.roles.items()}
    if USER in place and len({row[place[USER]] for row in rows}) > 1:
        return None
    ratings = [row[place[RATING]] for row in rows] if RATING in place else ["1"] * len(rows)
    if not all(_RATING.fullmatch(text) and float(text) for text in ratings):
        return None
    items = [row[place[ITEM]] for row in rows]
    # Of an item that comes twice the last rating counts.
    found = {one: float(np.float32(text)) for one, text in zip(items, ratings, strict=True)}
    if layout.roles[ITEM] in layout.whole:
        return {int(one): found[one] for one in sorted(found, key=int)}
    return {one: found[one] for one in sorted(found)}
