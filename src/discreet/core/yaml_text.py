"""Write mappings, lists, and scalars as YAML.

Every string is quoted as in JSON, so a reader can't mistake it for a number, a date, or markup. A library
that also reads YAML would be a dependency for one short function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def yaml_text(value: Any, indent: int = 0) -> str:
    """Return mappings, lists, and scalars as YAML.

    Example:
        >>> print(yaml_text({"name": "films", "tags": ["a", "b"], "delta": 1e-6}), end="")
        name: "films"
        tags:
          - "a"
          - "b"
        delta: 1.0e-06
    """
    pad = "  " * indent
    if isinstance(value, Mapping):
        parts = []
        for key, inner in value.items():
            nested = isinstance(inner, Mapping | list)
            parts.append(
                f"{pad}{key}:" + ("\n" + yaml_text(inner, indent + 1) if nested else f" {_scalar(inner)}\n")
            )
        return "".join(parts)
    lines = []
    for inner in value:
        if isinstance(inner, Mapping):
            first, *rest = yaml_text(inner, indent + 1).splitlines(keepends=True)
            lines.append(f"{pad}- {first.lstrip()}" + "".join(rest))
        else:
            lines.append(f"{pad}- {_scalar(inner)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    """Return a scalar as YAML, which reads 1e-06 as a string and 1.0e-06 as a number."""
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text
