"""`discreet errors`: explain what an error code means, or list all of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection
from string import Formatter
from typing import Any

import discreet
from discreet.cli.messages import TEMPLATES, CommandLine
from discreet.cli.output.printing import Output, table_of, write
from discreet.core import one_of
from discreet.core.errors import DiscreetError


def errors(code: str | None = None) -> Output:
    """Explain an error code, or list all codes.

    Options:
        code: Code of one error, such as out-of-range.
    """
    known = error_classes()
    if code is not None:
        one_of("code", code, list(known))
        known = {code: known[code]}
    rows = [described(kind) for kind in known.values()]
    if code is not None:
        return Output(rows, lambda: _show_one(rows[0]))
    return Output(
        rows, lambda: table_of(("code", "message"), [(row["code"], row["message"]) for row in rows])
    )


def _show_one(row: dict[str, Any]) -> None:
    write(f"{row['code']}: {row['message']}")
    for reason in row["reasons"]:
        write(f"Possible reason: {reason}")
    write(f"Python: except discreet.{row['parent']}")
    if row["fields"]:
        write("Fields: " + ", ".join(f"{name} ({kind})" for name, kind in row["fields"].items()))


def error_classes() -> dict[str, type[DiscreetError]]:
    """Return every class of error that has a message of its own, by code."""
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if module.name.endswith(".errors"):
            importlib.import_module(module.name)
    found: dict[str, type[DiscreetError]] = {}
    waiting: list[type[DiscreetError]] = [DiscreetError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.text and kind.__module__.startswith("discreet."):
            found[kind.code] = kind
    return dict(sorted(found.items()))


def described(kind: type[DiscreetError]) -> dict[str, Any]:
    """Return the code, message, fields and closest public parent of a class of errors."""
    parents = [
        one for one in kind.__mro__ if issubclass(one, DiscreetError) and hasattr(discreet, one.__name__)
    ]
    types: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        types |= vars(one).get("__annotations__", {})
    return {
        "code": kind.code,
        "message": readable(TEMPLATES.get(kind.code, kind.text), kind.fields),
        "reasons": [f"{readable(one, kind.fields)}." for one in getattr(kind, "reasons", {}).values()],
        "fields": {name: str(types[name]) for name in kind.fields},
        "parent": parents[0].__name__,
    }


def readable(template: str, fields: Collection[str]) -> str:
    """Return a template with the names of fields in place of values, and with options as they are typed.

    A sentence that only some errors have is skipped.
    """
    parts = []
    for text, name, form, _ in Formatter().parse(template):
        parts.append(text)
        if name == "arg":
            option, _, value = readable(str(form), fields).partition("=")
            parts.append(CommandLine().argument(option, value))
        elif name in fields:
            plural = f" {str(form).partition('|')[2]}" if "|" in str(form) else ""
            parts.append(f"<{name}>{plural}")
        elif name is not None and (text.endswith(" ") or not "".join(parts)):
            parts.append(f"<{name}>")
    return "".join(parts)
