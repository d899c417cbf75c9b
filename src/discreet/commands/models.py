"""`discreet models`: what there is to fit."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from discreet.commands.options.declared import AsJson
from discreet.commands.output.printing import emit, show


def models(as_json: AsJson = False) -> None:
    """List the models with what they protect, from whom, and where they come from."""
    from discreet.recipes import describe_models

    rows = describe_models()
    if as_json:
        emit({"models": [{**row, "last_audit": _last_audit(row["name"])} for row in rows]})
        return
    table = Table("model", "protects", "against", "learns from", show_lines=True)
    table.columns[3].no_wrap = True
    for row in rows:
        what = Text.assemble((row["name"], "bold"), "\n", row["summary"])
        table.add_row(what, row["unit"], row["trust"], row["feedback"].replace(" or ", "\nor "))
    show(table)


def _last_audit(name: str) -> dict[str, Any] | None:
    from discreet.audit.last import last_audit

    found = last_audit(name)
    return None if found is None else found.to_json()
