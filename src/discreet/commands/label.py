"""`discreet label`: what a model file promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.commands.options.declared import AsJson
from discreet.commands.output.printing import emit, show


def label(file: Annotated[Path, typer.Argument(help="A model file.")], as_json: AsJson = False) -> None:
    """Print what a model promises, and every array it holds with why it may be published."""
    from discreet.models.storage import read_label
    from discreet.privacy.guarantee import Guarantee

    content = read_label(file)
    if as_json:
        emit(content)
        return
    from rich.table import Table

    from discreet.commands.output.label import label_table

    facts = label_table(Guarantee.from_json(content["guarantee"]), f"Privacy facts: {content['name']}")
    table = Table("array", "where it comes from", title="What is inside")
    for name, origin in content["provenance"].items():
        table.add_row(name, origin)
    show(facts, table)
