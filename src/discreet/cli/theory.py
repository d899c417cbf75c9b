"""`discreet papers theory`: print a paper's bounds for public sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options.declared import AsJson
from discreet.cli.output.printing import emit, show
from discreet.core.checks import one_of
from discreet.papers import PAPERS

if TYPE_CHECKING:
    from discreet.papers.bounds import Bound


def theory(
    paper: Annotated[
        str,
        typer.Argument(help=f"The paper: {', '.join(PAPERS)}.", autocompletion=lambda: list(PAPERS)),
    ],
    users: Annotated[int, typer.Option(help="Public number of users.")],
    items: Annotated[int, typer.Option(help="Public number of items.")],
    ratings: Annotated[int, typer.Option(help="Public number of ratings or interactions.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon of the mechanism.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a number of the theory, as name=value."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the bounds of a paper for your sizes. Reads no data, so all numbers must be public."""
    from discreet.papers.bounds import PublicSizes, theories

    known = theories()
    one_of("paper", paper, known)
    kind, bounds = known[paper]
    sizes = PublicSizes(users=users, items=items, ratings=ratings, epsilon=epsilon)
    chosen = kind.parse(settings or ())
    found = bounds(sizes, chosen)
    if as_json:
        emit({"paper": paper, "settings": chosen.to_json(), "bounds": [one.to_json() for one in found]})
        return
    show(f"Theory of {paper}\n", *(_lines(one) for one in found))
    empty = sum(one.vacuous for one in found)
    if empty:
        show(f"{empty} of {len(found)} bounds are vacuous: an answer without learning is as good.")


def _lines(bound: Bound) -> str:
    """Return a line with the value and its status, and an indented line with the note."""
    note = bound.note
    if bound.vacuous and bound.without is not None:
        note = f"VACUOUS: {bound.without:.3g} needs no learning. {note}"
    return f"{bound.name:<45}{bound.value:>11.4g}  {bound.standing}, {bound.where}\n    {note}"
