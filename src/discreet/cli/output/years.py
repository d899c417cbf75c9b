"""Output of a continual release: a release, its status, and its page."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from discreet.follow import Status
    from discreet.follow.replay import Replay
    from discreet.follow.stream import Added


# The chance that noise alone exceeds three standard deviations.
_BEYOND_THREE = 0.00135
# With fewer releases, or fewer items than twice the number by chance, there is little to report.
_SOME = 3


def added_json(added: Added) -> dict[str, Any]:
    """Return the facts of a release as JSON."""
    counts = {"entered": added.entered, "known": added.known_pairs, "of_erased": added.of_erased}
    return {
        "release": added.release,
        "repeated": added.repeated,
        "not_public": counts,
        "guarantee": added.model.guarantee.to_json(),
    }


def what_entered(added: Added, what: str, *, given: bool, empty: int) -> str:
    """Return what a release did with a batch, and which releases were used up without new data."""
    if added.repeated:
        return f"Release {added.release} exists already. Nothing was drawn again."
    for_nothing = (
        f" Nothing new was added, but a release was used all the same: were these {what} added under a "
        "different name?"
    ) * (given and added.entered == 0)
    skipped = f" {empty:,} missed before it {'was' if empty == 1 else 'were'} made without new {what}." * (
        empty > 0
    )
    return (
        f"Release {added.release}.{skipped} For you alone: {added.entered:,} {what} were added, "
        f"{added.known_pairs:,} had been added before, {added.of_erased:,} were of erased users.{for_nothing}"
    )


def what_it_cost(out: Path, joined: Path | None, before: str | None) -> str:
    """Return where the model is, its cost, and whether it lost the embeddings of the previous release."""
    if joined is not None:
        return (
            f"The model is in {out}. The year cost no more budget. Its label adds the guarantee of {joined}."
        )
    lost = f" The previous release had embeddings (--with {before}). This release has none." if before else ""
    return f"The model is in {out}. It cost no more budget.{lost}"


def only_noise(status: Status) -> str:
    """Return a warning if hardly more items exceed the noise than noise alone would produce."""
    if status.stands_out is None or status.stands_out > _SOME + 2 * _by_chance(status):
        return ""
    return (
        f"Hardly any item exceeds the noise yet ({status.stands_out:,} of {status.items:,}; chance "
        f"alone gives about {_by_chance(status):.0f}): lists of this release are mostly noise. Don't show "
        "them."
    )


def _by_chance(status: Status) -> float:
    """Return how many items exceed three standard deviations by noise alone."""
    return _BEYOND_THREE * status.items


def too_early(status: Status) -> str:
    """Return a warning if releases are made much faster than the year allows."""
    made, settings = len(status.times), status.settings
    if made < _SOME or made == settings.releases:
        return ""
    first, latest = (datetime.fromisoformat(text) for text in (status.times[0], status.times[-1]))
    days = (latest - first).total_seconds() / 86_400
    if days * settings.releases >= settings.days * (made - 1) / 2:
        return ""
    return (
        f"{made:,} of {settings.releases:,} releases were made in {days:,.1f} days, but they must "
        f"last {settings.days:g}: {_left(status)}."
    )


_PAID = {
    True: "A ledger recorded the cost of all of them.",
    False: "No ledger recorded the year's cost, but releases about the same users add up.",
    None: "They cost no more budget. This file doesn't state whether a ledger recorded the year's cost.",
}


def sentences(status: Status) -> list[str]:
    """Return the public facts about a year so far, in sentences."""
    lines = [
        f"Began on {status.began}, ends on {status.ends}: {_made(status)}, {_left(status)}. "
        f"{_PAID[status.recorded]}"
    ]
    if status.times:
        lines.append(f"The latest release was made at {status.times[-1]}.")
    if status.noise is not None:
        lines.append(
            f"The noise on an item's current count has a standard deviation of {status.noise:.3g}. "
            f"{status.stands_out:,} of {status.items:,} items exceed three times that (chance "
            f"alone gives about {_by_chance(status):.0f})."
        )
    lines += [line for line in (only_noise(status), too_early(status)) if line]
    declared = status.settings.half_life
    if status.times and declared is not None and status.noise is not None:
        lines.append(_counted_with(declared, status.half_life))
    return lines


def _made(status: Status) -> str:
    made, planned = len(status.times), status.settings.releases
    return f"{made:,} of {releases_of(planned)} {'was' if made == 1 else 'were'} made"


def _left(status: Status) -> str:
    return f"{status.left:,} {'is' if status.left == 1 else 'are'} left"


def releases_of(count: int) -> str:
    """Return a number of releases in words."""
    return "1 release" if count == 1 else f"{count:,} releases"


def _counted_with(declared: float, used: float | None) -> str:
    """Return which half-life lists use now, and why if it isn't the declared half-life."""
    if used is not None and used <= declared * (1 + 1e-9):
        return f"Lists use the declared half-life of {declared:g} days."
    instead = "nothing fades" if used is None else f"the half-life is {used:.4g} days"
    return (
        f"With the declared half-life of {declared:g} days, noise would hide the lists. Until they "
        f"exceed the noise, {instead}."
    )


def year_page(status: Status, title: str) -> list[str]:
    """Return the parts of a page about a year."""
    from discreet.report.pages import element, facts_table, meter, table

    made, all_of_them = len(status.times), status.settings.releases
    rows = [(str(place), time) for place, time in enumerate(status.times, start=1)]
    releases = table(("release", "when (UTC)"), rows, "Releases") if rows else element("p", "None yet.")
    return [
        element("h1", title),
        meter(made / all_of_them, _made(status)),
        *(element("p", line) for line in sentences(status)),
        element("h2", "The guarantee for the whole year"),
        facts_table(status.guarantee.rows(), "The guarantee"),
        element("h2", "Releases"),
        releases,
    ]


def replay_shown(found: Replay) -> list[RenderableType]:
    """Return a table of the replayed ways to spend the budget, and advice for the next command."""
    from rich.table import Table

    table = Table("way", "epsilon of each fit", found.metric, title=f"A year from {found.begins}, replayed")
    for way in found.ways:
        each = "once" if way.epsilon_each is None else _epsilon(way.epsilon_each)
        table.add_row(way.name, each, f"{way.score:.4f}")
    for column in table.columns[1:]:
        column.justify = "right"
    lower, (follow, *others) = found.lower_is_better, found.ways
    private = [way for way in others if way.epsilon_each not in (None, math.inf)]
    best = (min if lower else max)(private, key=lambda way: way.score)
    empty = f" After {found.empty:,} releases there were no new data: check --from." * (
        3 * found.empty > found.releases
    )
    better, what = ("lower", "ratings") if lower else ("higher", "interactions")
    ahead = follow.score < best.score if lower else follow.score > best.score
    said = (
        f"Following was best ({follow.score:.4f}), then {best.name} ({best.score:.4f})."
        if ahead
        else f"Best was {best.name} ({best.score:.4f}); following had {follow.score:.4f}."
    )
    return [
        table,
        f"{found.metric} ({better} is better) of {found.asked:,} {what} between two of "
        f"{found.releases:,} releases. All ways but the last have the same budget for the year. {said} Small "
        f"differences may be luck: --seed draws different noise.{empty}",
        "Nothing was released, and no budget was spent. Scores have no noise: don't publish them.",
    ]


def _epsilon(each: float) -> str:
    return "∞ (not private)" if each == math.inf else f"{each:.3g}"
