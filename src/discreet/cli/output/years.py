"""What a continual release did: a release, its status, and the page of it."""

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
# Fewer releases, or fewer items beyond twice what chance gives, say little.
_SOME = 3


def added_json(added: Added) -> dict[str, Any]:
    """Return what a release did as JSON."""
    counts = {"entered": added.entered, "known": added.known_pairs, "of_erased": added.of_erased}
    return {
        "release": added.release,
        "repeated": added.repeated,
        "not_public": counts,
        "guarantee": added.model.guarantee.to_json(),
    }


def what_entered(added: Added, what: str, *, given: bool, empty: int) -> str:
    """Say what a release did with a batch, and which were used up without anything new."""
    if added.repeated:
        return f"Release {added.release} was made already; nothing was drawn again."
    for_nothing = (
        f" Nothing new entered, but a release was used all the same: were these {what} added under another "
        "name?"
    ) * (given and added.entered == 0)
    skipped = f" {empty:,} missed before it {'was' if empty == 1 else 'were'} made without new {what}." * (
        empty > 0
    )
    return (
        f"Release {added.release}.{skipped} For you alone: {added.entered:,} {what} entered, "
        f"{added.known_pairs:,} had entered before, {added.of_erased:,} were of erased users.{for_nothing}"
    )


def what_it_cost(out: Path, joined: Path | None, before: str | None) -> str:
    """Say where the model is and what it cost; and if it lost the embeddings of the release before."""
    if joined is not None:
        return f"The model is in {out}. The year cost nothing more; its label adds what {joined} promises."
    lost = f" The release before had embeddings (--with {before}); this one has none." if before else ""
    return f"The model is in {out}; this cost nothing more.{lost}"


def only_noise(status: Status) -> str:
    """Say that a list would be noise, if hardly more items stand out than noise alone would let."""
    if status.stands_out is None or status.stands_out > _SOME + 2 * _by_chance(status):
        return ""
    return (
        f"Hardly any item stands out of the noise yet ({status.stands_out:,} of {status.items:,}; chance "
        f"alone gives about {_by_chance(status):.0f}): lists of this release are mostly noise. Do not show "
        "them."
    )


def _by_chance(status: Status) -> float:
    """Return how many items exceed three standard deviations if there is nothing but noise."""
    return _BEYOND_THREE * status.items


def too_early(status: Status) -> str:
    """Say that releases are made much faster than the year allows."""
    made, settings = len(status.times), status.settings
    if made < _SOME or made == settings.releases:
        return ""
    first, latest = (datetime.fromisoformat(text) for text in (status.times[0], status.times[-1]))
    days = (latest - first).total_seconds() / 86_400
    if days * settings.releases >= settings.days * (made - 1) / 2:
        return ""
    return (
        f"{made:,} of {settings.releases:,} releases were made in {days:,.1f} days, although they are to "
        f"last {settings.days:g}: {_left(status)}."
    )


_PAID = {
    True: "All of them are paid for.",
    False: "The year is recorded in no ledger, but releases about the same people add up.",
    None: "They cost nothing more; in which ledger the year was paid, if in any, is not written here.",
}


def sentences(status: Status) -> list[str]:
    """Return what is public about a year so far, in sentences."""
    lines = [
        f"Began on {status.began}, ends on {status.ends}: {_made(status)}, {_left(status)}. "
        f"{_PAID[status.recorded]}"
    ]
    if status.times:
        lines.append(f"The latest release was made at {status.times[-1]}.")
    if status.noise is not None:
        lines.append(
            f"The noise on an item's current count has a standard deviation of {status.noise:.3g}; "
            f"{status.stands_out:,} of {status.items:,} items stand out of it by three times that (chance "
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
    """Say with which half-life lists count now, and why if it is not the declared one."""
    if used is not None and used <= declared * (1 + 1e-9):
        return f"Lists count with the declared half-life of {declared:g} days."
    instead = "nothing fades" if used is None else f"a choice counts half after {used:.4g} days"
    return (
        f"With the declared half-life of {declared:g} days lists would be hidden in the noise; until they "
        f"stand out, {instead}."
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
        element("h2", "The promise for the whole year"),
        facts_table(status.guarantee.rows(), "The promise"),
        element("h2", "Releases"),
        releases,
    ]


def replay_shown(found: Replay) -> list[RenderableType]:
    """Return a table of the ways that were replayed, and what it implies for the next command."""
    from rich.table import Table

    table = Table("way", "epsilon of each fit", found.metric, title=f"A year from {found.begins}, replayed")
    for way in found.ways:
        each = "paid once" if way.epsilon_each is None else _epsilon(way.epsilon_each)
        table.add_row(way.name, each, f"{way.score:.4f}")
    for column in table.columns[1:]:
        column.justify = "right"
    lower, (follow, *others) = found.lower_is_better, found.ways
    private = [way for way in others if way.epsilon_each not in (None, math.inf)]
    best = (min if lower else max)(private, key=lambda way: way.score)
    empty = f" After {found.empty:,} releases nothing came: check --from." * (
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
        f"{found.metric} ({better} is better) of {found.asked:,} {what} that came between two of "
        f"{found.releases:,} releases. All but the last way have the same budget for the year. {said} Small "
        f"differences may be luck: another --seed draws other noise.{empty}",
        "Nothing was released or paid. Scores have no noise: do not publish them.",
    ]


def _epsilon(each: float) -> str:
    return "∞ (not private)" if each == math.inf else f"{each:.3g}"
