"""`discreet models`: what there is to fit."""

from __future__ import annotations

from rich.table import Table

from discreet.commands.options.declared import AsJson
from discreet.commands.output.printing import emit, show


def models(as_json: AsJson = False) -> None:
    """List the models with what they protect, from whom, and where they come from."""
    from discreet.recipes import describe_models

    rows = describe_models()
    if as_json:
        emit({"models": rows})
        return
    table = Table("model", "protects", "against", "learns from", "what it does")
    table.columns[0].no_wrap = True
    for row in rows:
        table.add_row(row["name"], row["unit"], row["trust"], row["feedback"], row["summary"])
    show(table)
