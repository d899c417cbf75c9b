"""What a release would cost, told without making it."""

from __future__ import annotations

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
