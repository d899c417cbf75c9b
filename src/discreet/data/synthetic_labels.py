"""Find the label of synthetic data: in the metadata of a Parquet file, or in the file next to the data.

Readers need it to say where data come from. Nothing here proves it: anybody can write a label.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from discreet.core.exports import pl

FORMAT = "discreet-synthetic"
#: Version 2 has assumptions as objects instead of sentences.
VERSION, READABLE = 2, (1, 2)
#: The key of the label in the metadata of a Parquet file.
KEY = "discreet"
_MOST_LABEL = 1 << 20
# How the sentence of a label begins; it is shown on other labels, so no other text is taken from a file.
_SENTENCE = re.compile(r"synthetic, from a release [ -~]{1,200}")
_UNKNOWN = "synthetic, from a release that its label does not name"
# What reading a foreign or damaged label can raise.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, RecursionError)


def label_path(data: Path) -> Path:
    """Return the path of the label next to a file of synthetic data."""
    return data.with_name(data.name + ".label.json")


def origin_of(file: Path) -> str | None:
    """Return where the data come from by the label of a file, or None if it has no label of ours.

    A label that does not belong to the file any more counts, too: changed synthetic data are still not
    real data.
    """
    for find in (_of_parquet, _beside):
        try:
            label = find(file)
            if label["format"] == FORMAT:
                said = str(label["sentence"])
                return said if _SENTENCE.fullmatch(said) else _UNKNOWN
        except _DAMAGED:
            continue
    return None


def find_label(file: Path) -> dict[str, Any]:
    """Return the label of a file, not yet checked; the one next to it must be of the same content.

    Raises:
        ValueError, KeyError, TypeError, OSError: There is none, or it is damaged or of another file.
    """
    parquet = _is_parquet(file)
    if parquet and not label_path(file).is_file():
        return _of_parquet(file)
    label = _beside(file)
    with file.open("rb") as raw:
        found = hashlib.file_digest(raw, "sha256").hexdigest()
    if label.pop("sha256") != found:
        raise ValueError("the label belongs to another file")
    return _of_parquet(file) if parquet else label


def parsed_label(text: str) -> dict[str, Any]:
    """Return the label in a text."""
    if len(text) > _MOST_LABEL:
        raise ValueError("the label is too long")
    label = json.loads(text)
    if not isinstance(label, dict):
        raise TypeError("a label is an object")
    return label


def is_label_file(path: Path) -> bool:
    """Return whether a file is a label that was written next to synthetic data."""
    try:
        with path.open("rb") as file:
            return bool(parsed_label(file.read(_MOST_LABEL).decode())["format"] == FORMAT)
    except _DAMAGED:
        return False


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _of_parquet(path: Path) -> dict[str, Any]:
    if not _is_parquet(path):
        raise ValueError("the file is not Parquet")
    try:
        text = pl.read_parquet_metadata(path)[KEY]
    except pl.exceptions.PolarsError as error:
        raise ValueError("the file is damaged") from error
    return parsed_label(text)


def _beside(path: Path) -> dict[str, Any]:
    beside = label_path(path)
    if not beside.is_file() or beside.stat().st_size > _MOST_LABEL:
        raise ValueError("the label is missing or too long")
    return parsed_label(beside.read_text(encoding="utf-8"))
