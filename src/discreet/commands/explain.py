"""`discreet explain`: why an item stands where it does in somebody's list."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.commands.options.declared import AsJson, Columns, ModelFile, Titles
from discreet.commands.options.parsing import parse_columns
from discreet.commands.output.lists import items_json, items_table, public_columns
from discreet.commands.output.printing import emit, show

if TYPE_CHECKING:
    from rich.table import Table

    from discreet.models.answers import Explanation

_REFERENCE = "the average item of the lower half of this person's ranking"
# On a screen; --json has all of them.
_MOST_REASONS = 10


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
    """Say why an item stands where it does in a person's list: parts that add up to its score."""
    from discreet.data.reading.history import read_history
    from discreet.models.storage import load

    fitted = load(file)
    implicit = not fitted.scorer.needs_ratings
    person = read_history(history, user=user, columns=parse_columns(columns), implicit=implicit)
    found = fitted.explain(person, item, user=user, ignore_unknown=True)
    beside = public_columns(titles, fitted, [own for own, _ in found])
    if as_json:
        emit(
            {
                "item": item,
                "score": found.score,
                "rank": found.rank,
                "ranked_by": found.ranked_by,
                "reference": {"score": found.reference, "is": _REFERENCE},
                "parts": dict(found.parts),
                "reasons": items_json(found.reasons, beside),
            }
        )
        return
    title = list(public_columns(titles, fitted, [found.item]).get(found.item, {}).values())[:1]
    show(_parts_table(found, " ".join([item, *title])), f"The reference is {_REFERENCE}.")
    show(f"Sorted by score: {found.ranked_by}.")
    if found.reasons:
        show(items_table(found.reasons[:_MOST_REASONS], beside, "lifts it by"))
        show("A rating lifts the item by what its lead over the reference loses without it; ratings overlap.")


def _parts_table(found: Explanation, item: str) -> Table:
    from rich.table import Table

    place = "already in the history" if found.rank is None else f"number {found.rank} of the list"
    table = Table("part of the score", "adds", title=f"{item}: {place}")
    table.add_row("reference", f"{found.reference:+.3f}")
    for name, value in found.parts.items():
        table.add_row(name, f"{value:+.3f}")
    table.add_row("score", f"{found.score:+.3f}")
    return table
