"""What a release would cost, told without making it, and what one that was stopped has cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.commands.output.printing import emit, show

if TYPE_CHECKING:
    from discreet.contributions.crowd import Crowd
    from discreet.models.estimator import Estimator
    from discreet.models.private_facts.together import PrivateFacts
    from discreet.privacy.ledger.book import Ledger


def show_price(
    estimator: Estimator,
    data: Crowd,
    book: Ledger | None,
    *,
    chosen: PrivateFacts | None = None,
    as_json: bool,
) -> None:
    """Print the promise of a fit and what would be left of the budget; nothing is learned or paid.

    The price of facts that are `chosen` with noise is part of it.
    """
    from discreet.models.private_facts.together import PrivateFacts

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
