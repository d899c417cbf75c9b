"""Write synthetic data with the label of the release that they come from, and read that label again.

A Parquet file carries the label in its metadata. A file beside it holds the same label, with a digest of the
data: it shows which label belongs to which file, and it is all that a CSV file has.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.core.checks import DiscreetError, FileError
from discreet.core.exports import Later
from discreet.core.files import refuse_output, write_whole
from discreet.data.interactions import Interactions
from discreet.models.fitted import FittedModel
from discreet.privacy.guarantee import Guarantee, number_above
from discreet.synthesis.making import Synthetic

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

FORMAT, VERSION = "discreet-synthetic", 1
#: The name of such a file in messages.
KIND = "file of synthetic data"
_KEY = "discreet"
_MOST_LABEL = 1 << 20
#: What synthetic data cannot say, whatever the promise.
NOT_FOR = (
    "rare items: what few users did is hidden by the noise, so it is not in the data",
    "single users: no synthetic user stands for a real one",
    "small groups: fairness towards them cannot be measured here",
    "exact counts: popularity, lengths and ratings are those of noisy releases",
)
_DRAWN = "drawn from released numbers only"
# What reading a foreign or damaged file can raise.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DiscreetError)


def label_path(data: Path) -> Path:
    """Return the path of the label beside a file of synthetic data."""
    return data.with_name(data.name + ".label.json")


def synthetic_label(model: FittedModel, made: Synthetic) -> dict[str, Any]:
    """Return the label: the model's promise, and how the data were drawn."""
    promise = model.guarantee
    notes = (*promise.notes, summary(promise), *made.sentences)
    columns = ["user", "item", *_columns(made.data)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": f"synthetic data from {model.name}",
        "sentence": summary(promise),
        "guarantee": replace(promise, notes=notes).to_json(),
        "parameters": made.settings,
        "provenance": {name: _DRAWN if name != "item" else "ids of the model's catalog" for name in columns},
        "not_for": list(NOT_FOR),
    }


def summary(promise: Guarantee) -> str:
    """Say in one line what the data are, and what covers them."""
    if math.isinf(promise.epsilon):
        return "synthetic, from a release that is NOT PRIVATE: it may reveal anything about anybody"
    level = f"epsilon {number_above(promise.epsilon)}, delta {number_above(promise.delta)}"
    noise = ", with SIMULATED noise that protects nobody" if promise.simulated else ""
    return f"synthetic, from a release with {level}, {promise.basis.value}{noise}"


def refuse_target(out: Path, *, force: bool, inputs: tuple[Path, ...]) -> None:
    """Refuse, before anything is drawn, a path that cannot be written."""
    if out.suffix not in (".parquet", ".csv"):
        raise FileError(f"{out} must end in .parquet or .csv.")
    refuse_output(out, force=force, kind=KIND, is_ours=is_synthetic, inputs=inputs)
    refuse_output(label_path(out), force=force, kind="label", is_ours=_is_label_file, inputs=inputs)


def write_synthetic(model: FittedModel, made: Synthetic, out: Path, *, force: bool = False) -> dict[str, Any]:
    """Write the data and the label beside them; return the label."""
    refuse_target(out, force=force, inputs=())
    label = synthetic_label(model, made)
    buffer = io.BytesIO()
    if out.suffix == ".parquet":
        _frame(made.data).write_parquet(buffer, metadata={_KEY: json.dumps(label)})
    else:
        _frame(made.data).write_csv(buffer)
    content = buffer.getvalue()
    write_whole(out, content)
    beside = {**label, "sha256": hashlib.sha256(content).hexdigest()}
    write_whole(label_path(out), json.dumps(beside, indent=1).encode())
    return label


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
        text = pl.read_parquet_metadata(path)[_KEY]
    except pl.exceptions.PolarsError as error:
        raise ValueError("the file is damaged") from error
    return _parsed(text)


def _beside(path: Path) -> dict[str, Any]:
    beside = label_path(path)
    if beside.stat().st_size > _MOST_LABEL:
        raise ValueError("the label is too long")
    label = _parsed(beside.read_text(encoding="utf-8"))
    with path.open("rb") as file:
        found = hashlib.file_digest(file, _sha256()).hexdigest()
    if label.pop("sha256") != found:
        raise ValueError("the label belongs to another file")
    return label


def _sha256() -> Callable[[], Any]:
    return hashlib.sha256


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


def _is_label_file(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return bool(_parsed(file.read(_MOST_LABEL).decode())["format"] == FORMAT)
    except _DAMAGED:
        return False


def _columns(data: Interactions) -> list[str]:
    """Return the names of the columns beside user and item."""
    return [
        *(["rating"] if data.facts.low < data.facts.high else []),
        *(["time"] if data.times is not None else []),
    ]


def _frame(data: Interactions) -> pl.DataFrame:
    """Return one row per interaction: each user's in the order of time, where there is one."""
    rows = data.rows()
    order = np.arange(rows.size) if data.times is None else np.lexsort((data.times, rows))
    columns: dict[str, Any] = {
        "user": data.users.series.gather(rows[order]),
        "item": data.catalog.series.gather(data.items[order]),
    }
    for name in _columns(data):
        values = data.values if name == "rating" else data.times
        columns[name] = None if values is None else values[order]
    return pl.DataFrame(columns)
