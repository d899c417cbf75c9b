"""What a fit decided on the way, in words that need no knowledge of the method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

#: What each decision is about. A name that is not here is shown as it is.
WORDS: dict[str, str] = {
    "people per noise": "People for each unit of noise (more people or a larger epsilon raise it)",
    "ratings a person, about": "How many ratings a person usually has, about",
    "route": "What is learned",
    "part explained at a glance": "How much of ratings' differences taste explains, at a first look",
    "factors pay": "Is it worth spending the rest of the budget on taste in ratings?",
    "choices kept": "Directions of taste found in what people choose",
    "factors kept": "Directions used for predicting ratings (0: only how good items are)",
    "a second moment can show taste": "Can taste be told from the noise at all?",
    "directions kept": "Directions of taste that were kept",
    "rounds": "Rounds of learning that the budget paid for",
    "factors": "Directions of taste",
    "regularization": "How strongly vectors are pulled to zero",
    "biases": "How strongly averages are pulled to zero",
    "alpha": "How much more a choice counts than no choice",
    "shrinkage": "How much few common choices are distrusted",
}
_VALUES: dict[object, str] = {
    "taste": "how good items are, and what people like",
    "effects": "how good and how well known items are: taste would drown in the noise",
    True: "yes",
    False: "no",
}


def decisions_table(decisions: Mapping[str, Any]) -> Table:
    """Return the decisions as a table; each was made from public constants and released numbers only."""
    from rich.table import Table

    table = Table("question", "answer", title="What the fit decided, from public and released numbers only")
    for what, value in decisions.items():
        said = _VALUES.get(value) if isinstance(value, str | bool) else None
        table.add_row(WORDS.get(what, what), said or str(value))
    return table
