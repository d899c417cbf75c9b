"""`discreet explain`: which of somebody's own ratings speak for an item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.commands.options.declared import AsJson, Columns, ModelFile, Titles
from discreet.commands.options.parsing import parse_columns
from discreet.commands.output.lists import items_json, items_table, public_columns
from discreet.commands.output.printing import emit, show


def explain(
    file: ModelFile,
    item: Annotated[str, typer.Argument(help="An item of the model's catalog.")],
    history: Annotated[
        Path, typer.Option("--history", help="What the person rated or chose, as for recommend.")
    ],
    user: Annotated[str | None, typer.Option("--user", help="Whose row of the history.")] = None,
    columns: Columns = None,
    titles: Titles = None,
    as_json: AsJson = False,
) -> None:
    """Say which of a person's own ratings speak for an item, and how much; nobody else's are looked at."""
    from discreet.data.reading.history import read_history
    from discreet.models.storage import load

    fitted = load(file)
    implicit = not fitted.scorer.needs_ratings
    person = read_history(history, user=user, columns=parse_columns(columns), implicit=implicit)
    reasons = fitted.explain(person, item, ignore_unknown=True)
    beside = public_columns(titles, fitted, [own for own, _ in reasons])
    if as_json:
        emit({"item": item, "reasons": items_json(reasons, beside)})
    else:
        show(items_table(reasons, beside, "speaks for it by"))
