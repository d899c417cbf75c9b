"""Tables for readers: comparisons, the decisions of a fit, the cost of a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.cli import lib
from discreet.cli.output.printing import Output, table_of


def comparison_table(found: Sequence[lib.Evaluation], title: str | None = None) -> lib.Table:
    """Return the table that `discreet compare` prints. Simple baselines are last."""
    names = tuple(dict.fromkeys(name for one in found for name in one.metrics))
    rows = (
        (row["model"], row["epsilon"], row["protects"], *row["scores"])
        for row in lib.report_rows(found, names)
    )
    table = table_of(("model", "epsilon", "protects", *names), rows, title=title, right=3)
    table.columns[0].overflow = "fold"
    for row in lib.reference_rows(found, names):
        called = f"{row['name'].removeprefix(lib.BASELINE_PREFIX)}, baseline"
        table.add_row(called, "-", "NOT PRIVATE", *row["scores"], style="dim")
    return table


#: The text shown for each decision. A name that is not here is shown as it is.
WORDS: dict[str, str] = {
    "users per noise": "Users per unit of noise (more users or a larger epsilon raise it)",
    "votes need": "Share of the budget that item popularity needs (released before pairs of items)",
    "ratings per user, about": "Typical number of ratings per user",
    "route": "What the fit looked for",
    "variance explained by pilot": "Rating variance that latent factors explain (pilot release, rough)",
    "factors found": "Were latent factors of ratings found above the noise?",
    "co-occurrence factors kept": "Latent factors found in co-occurrences of items, for lists",
    "factors kept": "Features of items that predict ratings (2: quality and popularity alone)",
    "enough users for factors": "Are there enough users to look for latent factors?",
    "order informs": "Does the order of interactions matter? (no: times are ignored)",
    "directions kept": "Latent factors found above the noise",
    "items paired": "Items with item-to-item weights, for lists",
    "blend of pairs": "Share of a score that comes from these weights",
    "weight of similar words": "Weight of shared public words in a score",
    "rounds": "Rounds that the budget covers",
    "factors": "Latent factors",
    "regularization": "Regularization of vectors",
    "biases": "Regularization of averages",
    "alpha": "Weight of an interaction against no interaction",
    "shrinkage": "Shrinkage of similarities with few co-occurrences",
}
_VALUES: dict[object, str] = {
    "factors": "quality and popularity of items, and latent factors",
    "votes": "popularity of items; everything else would not exceed the noise",
    "all": "all: no pairs were released",
    "effects": "quality and popularity of items; latent factors would not exceed the noise",
    "cannot tell": "the noise hides the answer, so order counts",
    "not asked": "not asked: the data have no times, or times are not used",
    True: "yes",
    False: "no",
}


def decisions_table(decisions: Mapping[str, Any]) -> lib.Table:
    """Return the decisions as a table. All depend only on public constants and released numbers."""
    said = {what: _VALUES.get(value) for what, value in decisions.items() if isinstance(value, str | bool)}
    rows = [(WORDS.get(what, what), said.get(what) or str(value)) for what, value in decisions.items()]
    title = "What the fit decided, from public and released numbers only"
    return table_of(("question", "answer"), rows, title=title)


def reading_table(how_read: Mapping[str, str]) -> lib.Table:
    """Return how the data were read. It comes from the file, so it is for the data owner."""
    rows = [(part.replace("for_holder_only", "found"), found) for part, found in how_read.items()]
    title = "How the data were read (for the data owner, not released)"
    return table_of(("part", "read as"), rows, title=title)


def reading_of(source: lib.DataSource) -> dict[str, str]:
    """Return how data were read and their size, for the data owner."""
    found = dict(getattr(source, "how_read", {}))
    found["for_holder_only"] = (
        f"{source.n_users:,} users, {source.n_items:,} items, {source.n_ratings:,} rows"
    )
    times = getattr(source, "times", None)
    if times is not None and len(times):
        found["for_holder_only"] += (
            f", from {lib.month_of(float(times.min()))} to {lib.month_of(float(times.max()))}"
        )
    return found


_UNDECIDED = (
    "A fit makes its decisions from released numbers, so they aren't known before the budget is spent."
)


def price(
    estimator: lib.Estimator,
    data: lib.DataSource,
    book: lib.Ledger | None,
    *more: Callable[[], str],
    chosen: lib.PrivateFacts | None = None,
    how_read: Mapping[str, str] | None = None,
    release: lib.PaidRelease | None = None,
    recorded: tuple[lib.Guarantee, str] | None = None,
) -> Output:
    """Return the guarantee of a fit and the budget left after it. Nothing is learned or spent.

    It includes the cost of facts that are `chosen` with noise. `how_read` is shown on request.

    Parameters:
        release: The release of an earlier process with the same command, which may be continued.
        recorded: The guarantee and the name that the ledger gets, if not those of the fit.
    """
    chosen = chosen or lib.PrivateFacts()
    promise = lib.whole_promise(estimator, data, chosen)
    paid = None
    if release is not None and book is not None:
        spending, what = recorded or (promise.assuming(*book.assumptions(data.name)), estimator.name)
        paid = release.continued(book, data.name, spending, what)
    after = None
    if book is not None:
        events = () if paid else lib.whole_events(estimator, data, chosen)
        after = book.balance(data.name) if paid else book.price(data.name, promise, events)
    said = (
        f"No ledger was given, so no budget of {data.name!r} was checked."
        if book is None
        else f"{data.name!r} has no budget, so its spending has no limit."
    )
    if after is not None:
        said = (
            f"After this release, {100 * after.share:.3g}% of the budget of {data.name!r} would be spent. "
            f"{_one_more(after)}"
        )
    if paid is not None:
        said = (
            f"This command would continue spending {paid.id} of {data.name!r}, open since "
            f"{paid.time:%Y-%m-%d %H:%M} UTC, and would spend nothing more. {said}"
        )
    content = _priced(estimator.name, data.name, promise, after, paid)
    return Output(
        {**content, **({} if how_read is None else {"reading": dict(how_read)})},
        lambda: reading_table(how_read) if how_read else None,
        *([] if how_read is None else [_UNDECIDED]),
        f"Nothing was learned, and no budget was spent. The fit would be {promise.short()}",
        said,
        *more,
    )


def _one_more(after: lib.Balance) -> str:
    """Return the largest release that would still fit."""
    largest = (
        f"epsilon = {lib.number_below(after.left.epsilon)} at delta = {lib.number_below(after.left.delta)}"
    )
    if after.left.epsilon == 0:
        return "Then no release is possible."
    if after.fits_usual:
        return f"One more release could have {largest}."
    return f"Then no release with the usual delta = {lib.FIT_DELTA:g} is possible: left is {largest}."


def already_made(ledger: Path | None, release: lib.PaidRelease | None, out: Path | None) -> Output | None:
    """Return the output of a dry run if the command would only record that `out` is made; or else None."""
    if release is None or not release.has_begun or ledger is None:
        return None
    book = lib.Ledger.open(ledger, read_only=True)
    paid = release.waiting(book)
    if paid is None:
        return None
    return Output(
        _priced(paid.what, paid.dataset, paid.guarantee, book.balance(paid.dataset), paid),
        f"An earlier run of this command drew {out} and was killed before it ended. This command would only "
        f"finish spending {paid.id} of {paid.dataset!r}. It would spend nothing more.",
    )


def _priced(
    model: str, name: str, promise: lib.Guarantee, after: lib.Balance | None, paid: lib.Entry | None
) -> dict[str, Any]:
    left = None if after is None else {**after.left._asdict(), "share_spent": after.share}
    return {
        "model": model,
        "name": name,
        "guarantee": promise.to_json(),
        "left": left,
        "continues": None if paid is None else paid.id,
    }


def traces_table(traces: Mapping[str, Mapping[int, float]]) -> lib.Table:
    """Return what is left of an erased rating, by the number of later releases. Each trace is a column."""
    rows = [
        [f"{more:,}", *(f"{100 * abs(one[more]):.0f}%" if more in one else "-" for one in traces.values())]
        for more in next(iter(traces.values()))
    ]
    return table_of(("further releases", *traces), rows, right=0)
