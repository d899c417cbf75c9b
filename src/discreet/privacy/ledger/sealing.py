"""Seal rows with a checksum, so that a damaged bit anywhere in a row is found.

The checksum is in the row's own JSON, where older versions ignore it. Their rows have no checksum. It
finds damage, not fraud: anyone who can write the file can compute it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_SEAL = "row"
# Columns that aren't the row's own statement.
_BESIDE = ("guarantee", "process")


def sealed(values: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row with the JSON of its guarantee, sealed."""
    return {**values, "guarantee": json.dumps({**record, _SEAL: _checksum(values, record)})}


def require_sealed(values: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a row that differs from the sealed row. A row without a seal passes."""
    if _SEAL in record and record[_SEAL] != _checksum(values, record):
        raise ValueError("a row lost a bit")


def _checksum(values: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    columns = {name: value for name, value in values.items() if name not in _BESIDE}
    promise = {name: value for name, value in record.items() if name != _SEAL}
    text = json.dumps([columns, promise], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
