"""Tables for people: comparisons, what a fit decided, what a release costs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from discreet.cli.output.printing import emit, show
from discreet.evaluation.references import PREFIX
from discreet.evaluation.report import reference_rows, report_rows

if TYPE_CHECKING:
    from rich.table import Table

    from discreet.evaluation.results import Evaluation
    from discreet.models.estimator import Estimator
    from discreet.models.private_facts import PrivateFacts
    from discreet.privacy.ledger.book import Ledger
    from discreet.statistics.data_source import DataSource


def comparison_table(found: Sequence[Evaluation]) -> Table:
    """Return the table that `discreet compare` prints; the simple floors come last."""
    names = tuple(dict.fromkeys(name for one in found for name in one.metrics))
    table = Table("model", "epsilon", "protects", *names)
    table.columns[0].overflow = "fold"
    for column in table.columns[3:]:
        column.justify = "right"
    for row in report_rows(found, names):
        table.add_row(row["model"], row["epsilon"], row["protects"], *row["scores"])
    for row in reference_rows(found, names):
        table.add_row(row["name"].removeprefix(PREFIX), "-", "reference", *row["scores"], style="dim")
    return table


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


def show_price(
    estimator: Estimator,
    data: DataSource,
    book: Ledger | None,
    *,
    chosen: PrivateFacts | None = None,
    as_json: bool,
) -> None:
    """Print the promise of a fit and what would be left of the budget; nothing is learned or paid.

    The price of facts that are `chosen` with noise is part of it.
    """
    from discreet.models.private_facts import PrivateFacts

    chosen = chosen or PrivateFacts()
    promise = estimator.whole_promise(data, chosen)
    after = None if book is None else book.price(data.name, promise, estimator.whole_events(data, chosen))
    if as_json:
        left = None if after is None else {**after.left._asdict(), "share_spent": after.share}
        emit({"model": estimator.name, "name": data.name, "guarantee": promise.to_json(), "left": left})
        return
    show(f"Nothing was learned and nothing was paid. {promise.sentence()}")
    if after is None:
        show(f"{data.name!r} has no budget, so nothing limits it.")
    else:
        show(
            f"After it {100 * after.share:.3g} % of the budget of {data.name!r} would be spent; one more "
            f"release could have epsilon = {after.left.epsilon:.4g} at delta = {after.left.delta:g}."
        )


@contextmanager
def saying_what_was_paid(book: Ledger | None, where: Path | None) -> Iterator[None]:
    """Let a Ctrl-C say what was paid inside this block, and that no model was written."""
    before = set() if book is None else {entry.id for entry in book.entries()}
    try:
        yield
    except KeyboardInterrupt as stop:
        if book is None:
            raise KeyboardInterrupt("No model was written, and no ledger was named.") from stop
        paid = [one for one in book.entries() if one.id not in before and one.process == os.getpid()]
        said = " and ".join(
            f"epsilon={entry.guarantee.epsilon:g}, delta={entry.guarantee.delta:g} for {entry.dataset!r}"
            for entry in paid
        )
        what = f"{said} is paid in {where}" if paid else f"Nothing was paid in {where}"
        raise KeyboardInterrupt(f"{what}; no model was written.") from stop
