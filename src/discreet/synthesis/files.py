"""Write synthetic data with the label of the release that they come from.

A Parquet file carries the label in its metadata. A file next to it has the same label, with a digest of the
data: it shows which label belongs to which file, and it is all that a CSV file has.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.core.errors import BadEnding
from discreet.core.exports import Later
from discreet.core.files import refuse_output, write_whole
from discreet.data.interactions import Interactions
from discreet.data.synthetic_labels import FORMAT, KEY, VERSION, is_label_file, label_path
from discreet.models.fitted import FittedModel
from discreet.synthesis.labels import KIND, NOT_FOR, is_synthetic, summary
from discreet.synthesis.making import Synthetic

if TYPE_CHECKING:
    import polars as pl
else:
    pl = Later("polars")

_DRAWN = "drawn from released numbers only"


def synthetic_label(model: FittedModel, made: Synthetic) -> dict[str, Any]:
    """Return the label: the model's guarantee, and how the data were drawn."""
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
