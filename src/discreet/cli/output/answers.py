"""Show similar items, the reasons for a place in a list, and the limits of both."""

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

REFERENCE = "the average item of the lower half of this user's ranking"
# With this few factors, whole kinds of items point in the same direction.
_FEW_FACTORS = 3
# For a screen; --json has all of them.
_MOST_REASONS = 10
# A part below this share of the lead isn't mentioned.
_SLIGHT = 0.05
# From this share on, a list is mostly the list of a user without a history.
MOSTLY = 0.7
# A part below this share of the largest part isn't in the table.
_NOTHING = 1e-4
_BAR = 24
# This share of the catalog is near the top of a list.
_NEAR_TOP = 0.1
_WORDS = {
    "popularity": "many users choose it",
    "history": "it is similar to the items this user chose or liked",
    "sequence": "it often follows the latest items of the history",
    "expected stars": "this user would rate it highly",
    "odds of liking": "this user would like it",
}


def show_similar(
    model: FittedModel, item: str | int, near: Sequence[SimilarItem], k: int, titles: Beside
) -> None:
    """Print the neighbors of an item, how they are compared, and what isn't known."""
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
            f"{found}Noise shrinks these numbers: compare them only with each other. Sure is the chance that "
            "the noise alone didn't make an item a neighbor. Noise may also hide differences between "
            "items. Items that aren't listed may be similar, too: the release doesn't show it."
        )


def _percent(confidence: float | None) -> str:
    if confidence is None:
        return "-"
    return "> 99 %" if confidence > 0.99 else f"{100 * confidence:.0f} %"


def _compared(model: FittedModel) -> str:
    """Return a sentence about what a similarity compares, and what its numbers mean."""
    try:
        factors = model.scorer.item_vectors().shape[1]
    except DiscreetError:
        return "Items are compared by how often the same users choose both. Higher is more similar."
    few = " With this few latent factors, expect the same broad kind rather than close matches."
    return (
        "Items are compared by everything the model released about them: 1 is the same direction, 0 is "
        f"nothing in common, and -1 is the opposite.{few if factors <= _FEW_FACTORS else ''}"
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

    `items` is the size of the catalog. `noised` states that noise was added, `vague` that the model can't
    determine which items are similar, and `alike` why all users get the same list, if that is intended.
    """
    lead = found.score - found.reference
    owned = "already in the history, so it isn't recommended"
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
        hidden = " Noise hides the rest: more users or a larger epsilon would show it." if noised else ""
        show(f"{mostly_popular(found.usual)}{hidden}")


def mostly_popular(usual: float) -> str:
    """Return the sentence about a list that hardly differs from the list of a user without a history."""
    return (
        f"This list is mostly popularity: {usual:.0%} of its first {FIRST} items are the same as for a user "
        "without a history."
    )


def alike_by_design(model: FittedModel) -> str:
    """Return why lists don't depend on a user's history. Empty for a model whose lists do."""
    plain, followed = model.scorer.same_for_all, _is_followed(model)
    if not plain and not followed:
        return ""
    subject = "A list of a continual release is current" if followed else "A list of this model is"
    if plain:
        return f"{subject} popularity, the same for all users, without the items they had."
    return (
        f"{subject} popularity and item ratings, nearly the same for all users, without the items they had."
    )


def _is_followed(model: FittedModel) -> bool:
    # Loaded only for a possible continual release: most models don't need it.
    if "release" not in model.parameters:
        return False
    from discreet.follow.model import followed_alone

    return followed_alone(model)


def _show_reasons(found: Explanation, lead: float, titles: Beside, vague: bool) -> None:
    if not found.reasons:
        return
    if not _history_matters(found, lead):
        show("No single item of the user's history changes its score much.")
        return
    # The strongest of both kinds, starting with the largest lift.
    strong = sorted(found.reasons, key=lambda reason: -abs(reason[1]))[:_MOST_REASONS]
    shown = sorted(strong, key=lambda reason: -reason[1])
    show(items_table(shown, titles, "lifts it by", digits=2))
    show(
        "Without that item of the history, the lead would be smaller by this much. Below 0, it would be "
        "larger."
    )
    if vague:
        show(
            "Don't read much into single items: this model can't determine which items are similar, so a "
            "lift may come from the noise."
        )


def tells_similar(model: FittedModel) -> bool:
    """Return whether `discreet model similar` works with this model."""
    try:
        model.scorer.similarities(noised=True)
    except DiscreetError:
        return False
    return True


def _because(found: Explanation, lead: float, items: int, vague: bool) -> str:
    """Return the strongest reasons for the item in words. If the item is behind, return those against it."""
    if lead < 0:
        parts = reversed(_shown_parts(found, lead))
        against = [name for name, value in parts if value < -max(_SLIGHT * abs(lead), 1e-9)]
        return f"; the strongest reasons against it: {' and '.join(against[:2])}" if against else ""
    known = (
        _WORDS if _history_matters(found, lead) else {**_WORDS, "history": "it fits the history as a whole"}
    )
    known = {**known, "history": "the history lifts it, perhaps by noise"} if vague else known
    strong = [name for name, value in _shown_parts(found, lead) if value > max(_SLIGHT * abs(lead), 1e-9)]
    if found.rank is not None and found.rank > max(FIRST, _NEAR_TOP * items):
        # Far from the top, an item is merely ahead of others.
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
    """Return the parts that deserve a row, largest first. Sentences name only these parts."""
    # For example, the order of the history is zero if the model or the history has no order.
    least = _NOTHING * _largest(found, lead)
    parts = sorted(found.parts.items(), key=lambda part: -part[1])
    return [(name, value) for name, value in parts if abs(value) > least]


def _largest(found: Explanation, lead: float) -> float:
    return max([abs(value) for value in found.parts.values()] + [abs(lead), 1e-12])


def _bar(value: float, largest: float) -> str:
    return ("█" if value >= 0 else "░") * round(_BAR * abs(value) / largest)


def title_of(item: str | int, titles: Beside) -> str:
    """Return an item's title with its ID, or the ID alone."""
    title = next(iter(titles.get(item, {}).values()), "")
    return f"{title} ({item})" if title else str(item)
