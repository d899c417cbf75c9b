"""`discreet errors`: explain what an error code means, or list all of them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Annotated, Any

import typer
from rich.table import Table

import discreet
from discreet.cli.messages import TEMPLATES
from discreet.cli.options.declared import AsJson
from discreet.cli.output.printing import emit, show, write
from discreet.core.checks import one_of
from discreet.core.errors import DiscreetError


def errors(
    code: Annotated[str | None, typer.Argument(help="Code of one error, such as out-of-range.")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain an error code, or list all codes."""
    known = error_classes()
    if code is not None:
        one_of("code", code, list(known))
        known = {code: known[code]}
    rows = [described(kind) for kind in known.values()]
    if as_json:
        emit(rows)
    elif code is not None:
        _show_one(rows[0])
    else:
        table = Table("code", "meaning")
        for row in rows:
            table.add_row(row["code"], row["meaning"])
        show(table)


def _show_one(row: dict[str, Any]) -> None:
    write(f"{row['code']}: {row['meaning']}")
    write(f"Message: {row['message']}")
    write(f"Python: except discreet.{row['parent']}")
    if row["fields"]:
        write("Fields: " + ", ".join(f"{name} ({kind})" for name, kind in row["fields"].items()))


def error_classes() -> dict[str, type[DiscreetError]]:
    """Return every class of error that has a message of its own, by code."""
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if module.name.endswith(".errors") or module.name in _OTHER_HOMES:
            importlib.import_module(module.name)
    found: dict[str, type[DiscreetError]] = {}
    waiting: list[type[DiscreetError]] = [DiscreetError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.text and kind.__module__.startswith("discreet."):
            found[kind.code] = kind
    return dict(sorted(found.items()))


# Modules that declare errors next to what raises them.
_OTHER_HOMES: frozenset[str] = frozenset()


def described(kind: type[DiscreetError]) -> dict[str, Any]:
    """Return the code, meaning, message, fields and closest public parent of a class of errors."""
    parents = [one for one in kind.__mro__ if issubclass(one, DiscreetError) and not one.text]
    types = {name: str(each) for one in reversed(kind.__mro__) for name, each in _own_types(one).items()}
    return {
        "code": kind.code,
        "meaning": inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].replace("\n", " "),
        "message": TEMPLATES.get(kind.code, kind.text),
        "fields": {name: types[name] for name in kind.fields},
        "parent": parents[0].__name__,
    }


def _own_types(kind: type) -> dict[str, Any]:
    return dict(vars(kind).get("__annotations__", {}))
