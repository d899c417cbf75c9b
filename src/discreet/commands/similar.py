"""`discreet similar`: which items are similar to one, or to each of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.checks import integer
from discreet.commands.options.declared import AsJson, HowMany, ModelFile, Titles
from discreet.commands.output.lists import Beside, items_json, items_table, public_columns
from discreet.commands.output.printing import emit, show

if TYPE_CHECKING:
    from discreet.models.answers import SimilarItem


def similar(
    file: ModelFile,
    items: Annotated[list[str], typer.Argument(help="One or several items of the model's catalog.")],
    k: HowMany = 10,
    titles: Titles = None,
    as_json: AsJson = False,
) -> None:
    """List the items most similar to this one that stand out of the noise; it costs nothing more."""
    from discreet.models.storage import load

    integer("-k", k, least=1)
    fitted = load(file)
    found = fitted.similar_items(items, k)
    beside = public_columns(titles, fitted, {other for near in found.values() for other, _ in near})
    if as_json:
        rows = {str(item): _json(near, beside) for item, near in found.items()}
        emit({"similar": rows if len(items) > 1 else rows[items[0]]})
        return
    for item, near in found.items():
        _show(str(item) if len(items) > 1 else None, near, k, beside)


def _json(near: Sequence[SimilarItem], beside: Beside) -> list[dict[str, Any]]:
    return items_json(near, beside, ("confidence", [one.confidence for one in near]))


def _show(item: str | None, near: Sequence[SimilarItem], k: int, beside: Beside) -> None:
    if item is not None:
        show(f"Similar to {item}:")
    if not near:
        show("No other item stands out as similar to this one.")
        return
    show(items_table(near, beside, "similarity", ("confidence", [one.confidence for one in near])))
    if len(near) < k and near[0].confidence is not None:
        show(f"{len(near)} of {k}: no other item stands out of the noise.")
