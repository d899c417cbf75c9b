"""Write the parts of a bundle to one file, in full precision or quantized.

The file is "DSCB", its version and the length of a header as u32, four zero bytes, the header as JSON, and
arrays, little-endian, each at a multiple of eight bytes from the end of the header, which states where. In
`int8` an item's vector is a row of whole numbers times one number of its row and one of each column; weights
between items are whole numbers times one number of their row. In `float16` both are half precision. In
`float32` they are single precision and everything else is double, as `recommend` computes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices
from discreet.export.bundle.parts import VECTORS, ScorePart
from discreet.models.errors import BundleTooLarge

PRECISIONS = ("int8", "float16", "float32")
MAGIC, VERSION = b"DSCB", 1
#: The largest file that is written; the reader on the device rejects larger ones, too.
MOST_BYTES = 1 << 26
_HEAD = struct.Struct("<4sIII")
_ALIGNED = 8
_LEVELS = 127
_TINY, _HALF = 1e-30, float(np.finfo(np.float16).max)
_VALUES = "values"

Numbers = npt.NDArray[Any]


def encode(parts: Sequence[ScorePart], facts: Mapping[str, Any], precision: str) -> bytes:
    """Return the file of these parts; `facts` join its header."""
    blocks: list[bytes] = []
    listed = [
        {
            "kind": part.kind,
            **{name: _plain(value) for name, value in part.numbers.items()},
            "arrays": {name: _stored(part, name, precision, blocks) for name in part.arrays},
        }
        for part in parts
    ]
    header = json.dumps({**facts, "precision": precision, "parts": listed}, allow_nan=False).encode()
    header += b" " * (-len(header) % _ALIGNED)
    content = _HEAD.pack(MAGIC, VERSION, len(header), 0) + header + b"".join(blocks)
    if len(content) > MOST_BYTES:
        raise BundleTooLarge(what="The model", megabytes=len(content) / 1e6, most=MOST_BYTES / 1e6)
    return content


def decoded(part: ScorePart, precision: str) -> ScorePart:
    """Return a part with the numbers that a device reads from the file."""
    return part._replace(arrays={name: _as_read(part, name, precision) for name in part.arrays})


def int8_vectors(vectors: Floats) -> tuple[npt.NDArray[np.int8], Floats, Floats]:
    """Return whole numbers, a scale for each row and one for each column, whose products are the vectors.

    Columns are divided by the root of their spread first, so no column alone has each row's largest number.
    """
    columns = np.sqrt(np.maximum(vectors.std(axis=0), _TINY)).astype(np.float32).astype(np.float64)
    scaled = vectors / columns
    rows = np.abs(scaled).max(axis=1, initial=_TINY) / _LEVELS
    rows = np.maximum(rows, _TINY).astype(np.float32).astype(np.float64)
    whole = np.clip(np.rint(scaled / rows[:, None]), -_LEVELS, _LEVELS).astype(np.int8)
    return whole, rows, columns


def int8_weights(values: Floats, starts: Numbers) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return the weights between items as whole numbers, and a scale for each item of a history."""
    lengths = lengths_of(starts)
    row = np.repeat(np.arange(lengths.size), lengths)
    largest = np.full(lengths.size, _TINY)
    np.maximum.at(largest, row, np.abs(values))
    scales = (largest / _LEVELS).astype(np.float32).astype(np.float64)
    scales = np.maximum(scales, _TINY)
    return np.clip(np.rint(values / scales[row]), -_LEVELS, _LEVELS).astype(np.int8), scales


def lengths_of(starts: Numbers) -> Indices:
    """Return how many entries each row has."""
    ends = starts.astype(np.int64)
    return ends[1:] - ends[:-1]


def _stored(part: ScorePart, name: str, precision: str, blocks: list[bytes]) -> dict[str, Any]:
    """Add an array to the blocks and return the header's entry for it."""
    array, kind = part.arrays[name], _kind(part, name, precision)
    entry: dict[str, Any] = {"shape": list(array.shape)}
    if array.dtype.kind == "u":
        # Fewer items need fewer bytes to be named.
        fits = array.max(initial=0) < 1 << 16 and name != "starts"
        kind, stored = ("uint16", array.astype("<u2")) if fits else ("uint32", array.astype("<u4"))
    elif kind == "int8" and name == VECTORS:
        stored, rows, columns = int8_vectors(array.astype(np.float64))
        entry |= {"rows": _add(rows.astype("<f4"), blocks), "columns": _add(columns.astype("<f4"), blocks)}
    elif kind == "int8":
        stored, rows = int8_weights(array.astype(np.float64), part.arrays["starts"])
        entry |= {"rows": _add(rows.astype("<f4"), blocks), "row_count": rows.size}
    else:
        stored = _floats(array, kind)
    return {**entry, "type": kind, "at": _add(stored, blocks)}


def _kind(part: ScorePart, name: str, precision: str) -> str:
    if name in (VECTORS, _VALUES):
        # What is half precision in the model loses nothing by it.
        return "float16" if precision != "int8" and part.arrays[name].dtype == np.float16 else precision
    return "float64" if precision == "float32" else "float32"


def _floats(array: Numbers, kind: str) -> Numbers:
    """Return numbers of a kind; a ridge that pins a bias may be larger than a short float represents."""
    most = {"float16": _HALF, "float32": float(np.finfo(np.float32).max)}.get(kind, np.inf)
    return np.clip(array.astype(np.float64), -most, most).astype(np.dtype(kind).newbyteorder("<"))


def _add(array: Numbers, blocks: list[bytes]) -> int:
    at = sum(len(block) for block in blocks)
    raw = array.tobytes()
    blocks.append(raw + b"\0" * (-len(raw) % _ALIGNED))
    return at


def _as_read(part: ScorePart, name: str, precision: str) -> Numbers:
    array, kind = part.arrays[name], _kind(part, name, precision)
    if array.dtype.kind == "u":
        return array
    if kind == "int8" and name == VECTORS:
        whole, rows, columns = int8_vectors(array.astype(np.float64))
        return whole * rows[:, None] * columns
    if kind == "int8":
        whole, rows = int8_weights(array.astype(np.float64), part.arrays["starts"])
        return whole * np.repeat(rows, lengths_of(part.arrays["starts"]))
    return _floats(array, kind).astype(np.float64)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else float(value)
