"""`discreet similar`: which items are like one."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.checks import integer
from discreet.commands.options.declared import AsJson, HowMany, ModelFile, Titles
from discreet.commands.output.lists import items_json, items_table, public_columns
from discreet.commands.output.printing import emit, show


def similar(
    file: ModelFile,
    item: Annotated[str, typer.Argument(help="An item of the model's catalog.")],
    k: HowMany = 10,
    titles: Titles = None,
    as_json: AsJson = False,
) -> None:
    """List the items most like this one, from what the model released: it costs nothing more."""
    from discreet.models.storage import load

    integer("-k", k, least=1)
    fitted = load(file)
    alike = fitted.similar_items(item, k)
    beside = public_columns(titles, fitted, [other for other, _ in alike])
    if as_json:
        emit({"similar": items_json(alike, beside)})
    else:
        show(items_table(alike, beside, "likeness"))
