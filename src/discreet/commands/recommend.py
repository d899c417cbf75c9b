"""`discreet recommend`: one person, from that person's own history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.checks import DataError, integer
from discreet.commands.options.declared import AsJson, Columns
from discreet.commands.options.parsing import parse_columns
from discreet.commands.output.printing import emit, show

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel


def recommend(
    file: Annotated[Path, typer.Argument(help="A model that `discreet fit` wrote.")],
    history: Annotated[
        Path,
        typer.Option("--history", help="What the person rated, [user,]item,rating; or chose: [user,]item."),
    ],
    user: Annotated[
        str | None, typer.Option("--user", help="Whose row of the history; needed if there are several.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="How many items.")] = 10,
    columns: Columns = None,
    include_seen: Annotated[bool, typer.Option("--include-seen", help="Also items of the history.")] = False,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Leave out items that the model does not know.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend to one person from that person's own history."""
    from discreet.data.reading.history import read_history
    from discreet.models.storage import load

    integer("-k", k, least=1)
    fitted = load(file)
    person = read_history(
        history, user=user, columns=parse_columns(columns), implicit=not fitted.scorer.needs_ratings
    )
    person = _fitting(person, fitted, ignore_unknown=ignore_unknown)
    best = fitted.recommend(person, k, exclude_seen=not include_seen)
    if as_json:
        emit({"recommendations": [{"item": item, "score": score} for item, score in best]})
        return
    from rich.table import Table

    table = Table("#", "item", "score")
    table.columns[1].overflow = "fold"
    for rank, (item, score) in enumerate(best, start=1):
        table.add_row(str(rank), str(item), f"{score:.3f}")
    show(table)


def _fitting(
    history: dict[str | int, float], fitted: FittedModel, *, ignore_unknown: bool
) -> dict[str | int, float]:
    """Return the part of a history that the model can use; the rest is refused unless told otherwise."""
    import numpy as np

    from discreet.data.declaring import check_scale

    known = {item: value for item, value in history.items() if item in fitted.catalog}
    if len(known) < len(history) and not ignore_unknown:
        raise DataError(
            f"{len(history) - len(known)} of the history's {len(history)} items are not in the model's "
            "catalog; pass --ignore-unknown to leave them out."
        )
    if fitted.scorer.needs_ratings:
        facts = fitted.facts
        try:
            check_scale(np.asarray(list(known.values()), dtype=np.float32), facts)
        except DataError as error:
            steps = "" if facts.step is None else f" in steps of {facts.step:g}"
            raise DataError(
                "The history has ratings that are not on the scale of the model, "
                f"{facts.low:g} to {facts.high:g}{steps}; give them on that scale."
            ) from error
    return known
