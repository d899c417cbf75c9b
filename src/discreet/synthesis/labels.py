"""Write synthetic data with a label, and check the label of such a file."""

from __future__ import annotations

import hashlib
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.core import BadEnding, refuse_output, write_whole
from discreet.core.checks import DiscreetError, FileError
from discreet.core.exports import pl
from discreet.data import FORMAT, KEY, VERSION, Interactions, find_label, is_label_file, label_path
from discreet.data.synthetic_labels import READABLE
from discreet.models import FittedModel
from discreet.privacy import Guarantee
from discreet.report import condition_text, number_above
from discreet.synthesis.errors import NotSynthetic

if TYPE_CHECKING:
    from discreet.synthesis.making import Synthetic

#: The name of such a file in messages.
KIND = "file of synthetic data"
#: The name of such data, before the model's.
DRAWN_FROM = "synthetic data from "
#: What a label states about itself unless the file is signed.
UNSIGNED = "the label of these data is not signed: anybody can write one, over any data"
#: What synthetic data can't show, whatever the guarantee.
NOT_FOR = (
    "rare items: what few users did is hidden by the noise, so it is not in the data",
    "single users: no synthetic user represents a real one",
    "small groups: fairness towards them cannot be measured here",
    "exact counts: popularity, lengths and ratings are those of noisy releases",
)
# What reading a foreign or damaged file can raise.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, DiscreetError)


def summary(promise: Guarantee) -> str:
    """Return one line: what the data are, and which guarantee covers them."""
    if math.isinf(promise.epsilon):
        return "synthetic, from a release that is NOT PRIVATE: it may reveal anything about anybody"
    level = f"epsilon {number_above(promise.epsilon)}, delta {number_above(promise.delta)}"
    noise = ", with SIMULATED noise that protects no users" if promise.simulated else ""
    condition = condition_text(promise.conditions)
    only = f", if {condition}" if condition else ""
    return f"synthetic, from a release with {level}, {promise.basis.value}{noise}{only}"


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
        label = find_label(path)
        _check(label)
    except _DAMAGED as error:
        raise NotSynthetic(path=path) from error
    return label


def _check(label: dict[str, Any]) -> None:
    """Raise for a label without the parts that its readers show."""
    if label["format"] != FORMAT or label["version"] not in READABLE or not isinstance(label["name"], str):
        raise ValueError("this is another format")
    Guarantee.from_json(label["guarantee"])
    parts = (label["provenance"], label["parameters"])
    if not all(isinstance(part, dict) for part in parts):
        raise TypeError("a part of the label is missing")
    if not all(isinstance(text, str) for text in (*label["provenance"].values(), *label["not_for"])):
        raise TypeError("a part of the label isn't text")


_DRAWN = "drawn from released numbers only"


def synthetic_label(model: FittedModel, made: Synthetic) -> dict[str, Any]:
    """Return the label: the model's guarantee, and how the data were drawn."""
    promise = model.guarantee
    notes = (*promise.notes, summary(promise), *made.sentences)
    columns = ["user", "item", *_columns(made.data)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": f"{DRAWN_FROM}{model.name}",
        "sentence": summary(promise),
        "guarantee": replace(promise, notes=notes).to_json(),
        "parameters": made.settings,
        "provenance": {name: _DRAWN if name != "item" else "ids of the model's catalog" for name in columns},
        "not_for": list(NOT_FOR),
        **({} if model.certificate is None else {"certificate": model.certificate}),
    }


def refuse_target(out: Path, *, force: bool, inputs: tuple[Path, ...]) -> None:
    """Raise, before anything is drawn, for a path that cannot be written."""
    if out.suffix not in (".parquet", ".csv"):
        raise BadEnding(path=out, endings=(".parquet", ".csv"))
    refuse_output(out, force=force, kind=KIND, is_ours=_is_ours, inputs=inputs)
    beside = label_path(out)
    # A label without data is what is left of a process that died between the two.
    alone = not out.exists() and is_label_file(beside)
    refuse_output(beside, force=force or alone, kind="label", is_ours=is_label_file, inputs=inputs)


def _is_ours(path: Path) -> bool:
    """Return whether we wrote a file: its label states it, or states that the file is being replaced."""
    if is_synthetic(path):
        return True
    try:
        label = json.loads(label_path(path).read_bytes())
        return is_label_file(label_path(path)) and label.get("replaces") == _digest(path.read_bytes())
    except (OSError, ValueError):
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_synthetic(model: FittedModel, made: Synthetic, out: Path, *, force: bool = False) -> dict[str, Any]:
    """Write the data and the label next to them; return the label."""
    refuse_target(out, force=force, inputs=())
    label = synthetic_label(model, made)
    buffer = io.BytesIO()
    if out.suffix == ".parquet":
        _frame(made.data).write_parquet(buffer, metadata={KEY: json.dumps(label)})
    else:
        _frame(made.data).write_csv(buffer)
    content = buffer.getvalue()
    beside = {**label, "sha256": _digest(content)}
    # The label comes first and names what it replaces. A process that dies between the two leaves a label
    # that fits no data, and the same command puts both right.
    before = {"replaces": _digest(out.read_bytes())} if out.exists() else {}
    write_whole(label_path(out), json.dumps({**beside, **before}, indent=1).encode())
    write_whole(out, content)
    if before:
        write_whole(label_path(out), json.dumps(beside, indent=1).encode())
    return label


def _columns(data: Interactions) -> list[str]:
    """Return the names of the columns other than user and item."""
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
