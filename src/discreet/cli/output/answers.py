"""Show similar items and the reasons for a place in a list, in words and with what is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.cli.output.lists import Beside, items_table
from discreet.cli.output.printing import show
from discreet.core.checks import DiscreetError
from discreet.models.answers import FIRST, nothing_similar

if TYPE_CHECKING:
    from rich.table import Table

    from discreet.models.answers import Explanation
    from discreet.models.fitted import FittedModel
    from discreet.models.listings import SimilarItem

REFERENCE = "the average item of the lower half of this person's ranking"
# With so few factors whole kinds of items point the same way.
_FEW_FACTORS = 3
# On a screen; --json has all of them.
_MOST_REASONS = 10
# A part below this share of the lead is not worth a word.
_SLIGHT = 0.05
# From this share on, a list is mostly that of a user without a history.
MOSTLY = 0.7
# A part below this share of the largest is omitted from the table.
_NOTHING = 1e-4
_BAR = 24
# So much of the catalog is near the top of a list.
_NEAR_TOP = 0.1
_WORDS = {
    "popularity": "many people choose it",
    "history": "it suits what this person chose or liked",
    "sequence": "it follows well on the latest of the history",
    "expected stars": "this person would rate it highly",
    "odds of liking": "this person would like it",
}


def show_similar(
    model: FittedModel, item: str | int, near: Sequence[SimilarItem], k: int, titles: Beside
) -> None:
    """Print the neighbors of an item, what is compared, and what is not known."""
    called = title_of(item, titles)
    if not near:
        show(nothing_similar(called))
        return
    show(f"Similar to {called}:")
    noised = near[0].confidence is not None
    sure = [_percent(one.confidence) for one in near]
    show(items_table(near, titles, "similarity", ("sure", sure) if noised else None, digits=2))
    show(_compared(model))
    if noised:
        found = f"Only {len(near)} of {k} stand out. " if len(near) < k else ""
        show(
            f"{found}Noise shrinks these numbers: compare them with each other only. Sure is the chance that "
            "an item is a neighbor in what was found, and no work of the noise. Noise may hide what sets "
            "items apart. Items that are not listed may be similar, too; nothing is known about them."
        )


def _percent(confidence: float | None) -> str:
    if confidence is None:
        return "-"
    return "> 99 %" if confidence > 0.99 else f"{100 * confidence:.0f} %"


def _compared(model: FittedModel) -> str:
    """Say what a similarity compares, and what its numbers mean."""
    try:
        factors = model.scorer.item_vectors().shape[1]
    except DiscreetError:
        return "Items are compared by how often the same people choose both; more is more similar."
    few = " With so few latent factors, expect the same broad kind rather than close relatives."
    return (
        "Items are compared by all that the model released about them: 1 is the same direction, 0 nothing in "
        f"common, -1 the opposite.{few if factors <= _FEW_FACTORS else ''}"
    )


def show_explanation(
    found: Explanation,
    called: str,
    titles: Beside,
    *,
    items: int,
    noised: bool = False,
    vague: bool = False,
    alike: str = "",
) -> None:
    """Print why an item has its place: in a sentence, in parts, and by the user's own history.

    The catalog has so many `items`. `noised` states that noise was added, `vague` that the model cannot tell
    which items are similar, `alike` why lists are the same for all users, if they are meant to be.
    """
    lead = found.score - found.reference
    owned = "already in the history, and lists leave it out"
    place = owned if found.rank is None else f"number {found.rank:,} of the list"
    show(f"{called} is {place}{_because(found, lead, items, noised and vague)}.")
    show(_parts_table(found, lead))
    show(
        f"The lead is over {REFERENCE}: {found.score:.2f} against {found.reference:.2f}. Lists are sorted by "
        f"{found.ranked_by}."
    )
    _show_reasons(found, lead, titles, noised and vague)
    if alike:
        show(alike)
    elif found.usual >= MOSTLY:
        hidden = " Noise hides the rest: more people or a larger epsilon would show it." if noised else ""
        show(f"{mostly_popular(found.usual)}{hidden}")


def mostly_popular(usual: float) -> str:
    """Return the sentence about a list that differs little from that of a user without a history."""
    return (
        f"This list is mostly popularity: {usual:.0%} of its first {FIRST} items are those of somebody "
        "without a history."
    )


def alike_by_design(model: FittedModel) -> str:
    """Return why lists don't follow a user's history; empty for a model whose lists do."""
    plain, followed = model.scorer.same_for_all, _is_followed(model)
    if not plain and not followed:
        return ""
    subject = "A followed list is current" if followed else "A list of this model is"
    if plain:
        return f"{subject} popularity, the same for everybody, less what they had."
    return f"{subject} popularity and ratings of items, nearly the same for everybody, less what they had."


def _is_followed(model: FittedModel) -> bool:
    # Loaded only for what may be a release of a year: most models are answered with without it.
    if "release" not in model.parameters:
        return False
    from discreet.follow.model import followed_alone

    return followed_alone(model)


def _show_reasons(found: Explanation, lead: float, titles: Beside, vague: bool) -> None:
    if not found.reasons:
        return
    if not _history_matters(found, lead):
        show("No single item of the own history changes its score much.")
        return
    # The strongest of both kinds, what lifts it first.
    strong = sorted(found.reasons, key=lambda reason: -abs(reason[1]))[:_MOST_REASONS]
    shown = sorted(strong, key=lambda reason: -reason[1])
    show(items_table(shown, titles, "lifts it by", digits=2))
    show("Without that item of the history the lead would be smaller by so much; below 0, larger.")
    if vague:
        show(
            "Do not read much into single items: this model cannot tell which items are similar, so a lift "
            "may be the work of the noise."
        )


def tells_similar(model: FittedModel) -> bool:
    """Return whether `discreet model similar` answers with this model."""
    try:
        model.scorer.similarities(noised=True)
    except DiscreetError:
        return False
    return True


def _because(found: Explanation, lead: float, items: int, vague: bool) -> str:
    """Return the strongest parts that speak for the item, in words; of one that is behind, against it."""
    if lead < 0:
        parts = reversed(_shown_parts(found, lead))
        against = [name for name, value in parts if value < -max(_SLIGHT * abs(lead), 1e-9)]
        return f"; what speaks against it most: {' and '.join(against[:2])}" if against else ""
    known = (
        _WORDS if _history_matters(found, lead) else {**_WORDS, "history": "it suits the history as a whole"}
    )
    known = {**known, "history": "the history lifts it, perhaps by noise"} if vague else known
    strong = [name for name, value in _shown_parts(found, lead) if value > max(_SLIGHT * abs(lead), 1e-9)]
    if found.rank is not None and found.rank > max(FIRST, _NEAR_TOP * items):
        # Far from the top an item is merely ahead of others.
        return f"; ahead of the lower half by {' and '.join(strong[:2])}" if strong else ""
    words = [known.get(name, name) for name in strong]
    because = "; its score is high because" if found.rank is None else ", because"
    return f"{because} {' and '.join(words[:2])}" if words else ""


def _history_matters(found: Explanation, lead: float) -> bool:
    """Return whether any rating of the user's own changes the item's lead noticeably."""
    return max((abs(value) for _, value in found.reasons), default=0.0) >= _SLIGHT * abs(lead)


def _parts_table(found: Explanation, lead: float) -> Table:
    from rich.table import Table

    table = Table("part", "adds to its lead", "")
    table.columns[1].justify = "right"
    largest = _largest(found, lead)
    for name, value in _shown_parts(found, lead):
        table.add_row(name, f"{value:+.2f}", _bar(value, largest))
    table.add_section()
    table.add_row("its lead", f"{lead:+.2f}", _bar(lead, largest))
    return table


def _shown_parts(found: Explanation, lead: float) -> list[tuple[str, float]]:
    """Return the parts that are worth a row, largest first; no sentence names another."""
    # The order of the history, for example, is none where the model or the history has none.
    least = _NOTHING * _largest(found, lead)
    parts = sorted(found.parts.items(), key=lambda part: -part[1])
    return [(name, value) for name, value in parts if abs(value) > least]


def _largest(found: Explanation, lead: float) -> float:
    return max([abs(value) for value in found.parts.values()] + [abs(lead), 1e-12])


def _bar(value: float, largest: float) -> str:
    return ("█" if value >= 0 else "░") * round(_BAR * abs(value) / largest)


def title_of(item: str | int, titles: Beside) -> str:
    """Return an item's title with its id, or the id alone."""
    title = next(iter(titles.get(item, {}).values()), "")
    return f"{title} ({item})" if title else str(item)
