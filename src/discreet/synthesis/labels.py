"""Read the label of synthetic data: from the metadata of a Parquet file, or from the file beside the data."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.core.checks import DiscreetError, FileError
from discreet.core.exports import Later
from discreet.privacy.guarantee import Guarantee, number_above

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

FORMAT, VERSION = "discreet-synthetic", 1
#: The name of such a file in messages.
KIND = "file of synthetic data"
#: The key of the label in the metadata of a Parquet file.
KEY = "discreet"
_MOST_LABEL = 1 << 20
#: What synthetic data cannot say, whatever the promise.
NOT_FOR = (
    "rare items: what few users did is hidden by the noise, so it is not in the data",
    "single users: no synthetic user stands for a real one",
    "small groups: fairness towards them cannot be measured here",
    "exact counts: popularity, lengths and ratings are those of noisy releases",
)
# What reading a foreign or damaged file can raise.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DiscreetError)


def label_path(data: Path) -> Path:
    """Return the path of the label beside a file of synthetic data."""
    return data.with_name(data.name + ".label.json")


def summary(promise: Guarantee) -> str:
    """Say in one line what the data are, and what covers them."""
    if math.isinf(promise.epsilon):
        return "synthetic, from a release that is NOT PRIVATE: it may reveal anything about anybody"
    level = f"epsilon {number_above(promise.epsilon)}, delta {number_above(promise.delta)}"
    noise = ", with SIMULATED noise that protects nobody" if promise.simulated else ""
    return f"synthetic, from a release with {level}, {promise.basis.value}{noise}"


def is_synthetic(path: Path) -> bool:
    """Return whether a file is synthetic data that we wrote."""
    try:
        read_synthetic_label(path)
    except FileError:
        return False
    return True


def read_synthetic_label(path: Path) -> dict[str, Any]:
    """Return the label of a file of synthetic data.

    Raises:
        FileError: The file is none, or its label cannot be read or belongs to another file.
    """
    try:
        label = _of_parquet(path) if _is_parquet(path) else _beside(path)
        _check(label)
    except _DAMAGED as error:
        raise FileError(f"{path} holds no synthetic data of discreet, or its label is damaged.") from error
    return label


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _of_parquet(path: Path) -> dict[str, Any]:
    try:
        text = pl.read_parquet_metadata(path)[KEY]
    except pl.exceptions.PolarsError as error:
        raise ValueError("the file is damaged") from error
    return _parsed(text)


def _beside(path: Path) -> dict[str, Any]:
    beside = label_path(path)
    if beside.stat().st_size > _MOST_LABEL:
        raise ValueError("the label is too long")
    label = _parsed(beside.read_text(encoding="utf-8"))
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if label.pop("sha256") != found:
        raise ValueError("the label belongs to another file")
    return label


def _parsed(text: str) -> dict[str, Any]:
    if len(text) > _MOST_LABEL:
        raise ValueError("the label is too long")
    label = json.loads(text)
    if not isinstance(label, dict):
        raise TypeError("a label is an object")
    return label


def _check(label: dict[str, Any]) -> None:
    """Refuse a label without the parts that its readers show."""
    if label["format"] != FORMAT or label["version"] != VERSION or not isinstance(label["name"], str):
        raise ValueError("this is another format")
    Guarantee.from_json(label["guarantee"])
    parts = (label["provenance"], label["parameters"])
    if not all(isinstance(part, dict) for part in parts):
        raise TypeError("a part of the label is missing")
    if not all(isinstance(text, str) for text in (*label["provenance"].values(), *label["not_for"])):
        raise TypeError("a part of the label is no text")


def is_label_file(path: Path) -> bool:
    """Return whether a file is a label that was written beside synthetic data."""
    try:
        with path.open("rb") as file:
            return bool(_parsed(file.read(_MOST_LABEL).decode())["format"] == FORMAT)
    except _DAMAGED:
        return False
