"""Answer from a model: which items are similar, and why an item is ranked where it is.

Ranking scores are relative, so each is compared with a reference: the average item of
the lower half of the user's own ranking. An item of the upper half is above it in all, so that at least one
part supports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.core.frames import FrameKind, to_frame
from discreet.data.inputs import History
from discreet.data.interactions import Interactions
from discreet.models.errors import NoFactorsFound
from discreet.models.histories import Moment, person_row, variants
from discreet.models.listings import ItemId, Listing, SimilarItem
from discreet.models.lists import Wanted, best_items, listable
from discreet.models.scorers.scorer import without_history
from discreet.models.scorers.similarity import NearestItems
from discreet.report.pages import html_table

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an item has its ranking score: `reference` plus all `parts` is `score`.

    The reference is the average item of the lower half of the user's own ranking, and each part shows by how
    much the item is above or below it. `reasons` are the user's own ratings, each with what the score,
    against the reference, would lose without it; they overlap, so they do not add up.
    """

    item: ItemId
    score: float
    reference: float
    parts: Mapping[str, float]
    reasons: tuple[tuple[ItemId, float], ...]
    ranked_by: str
    #: The item's place among those that are new to the user, None if they have.
    rank: int | None
    #: Of the first `FIRST` items of the user's list, the share that a user without a history also gets.
    usual: float

    def __iter__(self) -> Iterator[tuple[ItemId, float]]:
        """Go through the reasons, strongest first."""
        return iter(self.reasons)

    def __len__(self) -> int:
        """Return how many reasons there are."""
        return len(self.reasons)

    def __getitem__(self, place: int) -> tuple[ItemId, float]:
        """Return a reason by its place."""
        return self.reasons[place]

    def __repr__(self) -> str:
        """Show the place and the parts in one line; `reasons` has the history's own."""
        place = "in the history" if self.rank is None else f"number {self.rank:,}"
        parts = ", ".join(f"{name} {value:+.2f}" for name, value in self.parts.items())
        return f"Explanation({self.item!r}, {place}: {parts}; {len(self.reasons)} reasons)"

    def to_frame(self, kind: FrameKind = "polars") -> Any:
        """Return one row for each part and for each of the user's own items, with what it adds."""
        return to_frame(dict(zip(("kind", "of", "adds"), zip(*self._rows(), strict=True), strict=True)), kind)

    def _rows(self) -> list[tuple[str, str, float]]:
        parts = [("part", name, value) for name, value in self.parts.items()]
        return parts + [("own item", str(item), value) for item, value in self.reasons]

    def _repr_html_(self) -> str:
        return html_table(self._rows(), header=("kind", "of", "adds"), caption=f"What supports {self.item}")


# So many scores are held at once.
_SCORES_AT_ONCE = 1 << 24
_ONE = np.zeros(1, dtype=np.int64)
#: So many items of two lists are compared.
FIRST = 10


def explain_item(model: FittedModel, person: Interactions, place: int) -> Explanation:
    """Return why the item at this place of the catalog has its score, for the one user in the row."""
    parts = {name: part[0] for name, part in model.scorer.score_parts(person, _ONE).items()}
    worth = model.worth(person, _ONE)[0].astype(np.float64)
    lower = lower_half(worth)
    speaks = np.zeros(0)
    if not model.scorer.knows(person.users.ids.tolist()[0]):
        speaks = worth[place] - worth[lower].mean() - _without_each(model, person, place, lower)
    order = np.argsort(-speaks, kind="stable")
    ids = model.catalog.id_at(person.items).tolist()
    return Explanation(
        item=model.catalog.id_at([place]).tolist()[0],
        score=float(worth[place]),
        reference=float(worth[lower].mean()),
        parts={name: float(part[place] - part[lower].mean()) for name, part in parts.items()},
        reasons=tuple((ids[one], float(speaks[one])) for one in order),
        ranked_by=model.scorer.ranked_by,
        rank=_rank(worth, person, place),
        usual=_usual(model, worth, person),
    )


def lower_half(worth: Floats) -> Indices:
    """Return the items of the lower half of a ranking; of one item alone, that item."""
    return np.argsort(-worth, kind="stable")[worth.size // 2 :]


def _without_each(model: FittedModel, person: Interactions, place: int, lower: Indices) -> Floats:
    """Return how far the item is above the reference without each of the user's ratings in turn."""
    rows = variants(person)
    block = max(1, _SCORES_AT_ONCE // max(len(model.catalog), 1))
    found = [np.zeros(0)]
    for start in range(1, rows.n_users, block):
        some = rows.select_users(np.arange(start, min(start + block, rows.n_users)))
        worth = model.worth(some, np.arange(some.n_users))
        found.append(worth[:, place].astype(np.float64) - worth[:, lower].mean(axis=1, dtype=np.float64))
    return np.concatenate(found)


def _rank(worth: Floats, person: Interactions, place: int) -> int | None:
    candidates = worth[None, :].copy()
    listable(candidates, person, _ONE)
    own = candidates[0, place]
    if own == -np.inf:
        return None
    before = (candidates[0] > own) | ((candidates[0] == own) & (np.arange(worth.size) < place))
    return int(np.count_nonzero(before)) + 1


def usual_share(
    model: FittedModel, history: History, *, ignore_unknown: bool = False, now: Moment | None = None
) -> float:
    """Return the share of a user's first items that a user without a history also gets."""
    person = person_row(model, history, ignore_unknown=ignore_unknown, now=now)
    return _usual(model, model.worth(person, _ONE)[0].astype(np.float64), person)


def _usual(model: FittedModel, worth: Floats, person: Interactions) -> float:
    """Return the share of the user's first items that are also first without any history.

    For a user of the release itself it is 0: such a model need not answer for other users.
    """
    if model.scorer.knows(person.users.ids.tolist()[0]):
        return 0.0
    newcomer = model.worth(without_history(person), _ONE)[0].astype(np.float64)
    both = np.stack([worth, newcomer])
    for row in both:
        # The user's own items leave both lists.
        listable(row[None, :], person, _ONE)
    own, usual = (set(np.argsort(-row, kind="stable")[:FIRST].tolist()) for row in both)
    return len(own & usual) / max(len(own), 1)


def similar_to(model: FittedModel, places: Sequence[int], k: int) -> list[Listing[SimilarItem]]:
    """Return up to `k` neighbors of each of these items, nearest first, or why there are none.

    Effects that noise may have made are skipped: a simulated fit also has noise, an infinite epsilon none.
    """
    try:
        neighbors = model.scorer.similarities(noised=model.guarantee.epsilon < np.inf)
    except NoFactorsFound as error:
        return [Listing((), why_empty=str(error)) for _ in places]
    ids = model.catalog.id_at(np.asarray(places, dtype=np.int64)).tolist()
    found = (_named(model, place, neighbors(place, k), k) for place in places)
    return [Listing(near, why_empty=nothing_similar(item)) for item, near in zip(ids, found, strict=True)]


def nothing_similar(called: ItemId) -> str:
    """Return a sentence: why an item has no neighbors, and what would help."""
    return (
        f"No item is clearly similar to {called}: noise hides any similarity. "
        "More users, a larger epsilon or public item features would help."
    )


def _named(model: FittedModel, place: int, found: NearestItems, k: int) -> list[SimilarItem]:
    similarity = found.similarity.copy()
    similarity[place] = -np.inf
    if found.confidence is not None:
        similarity[~(found.confidence >= found.least)] = -np.inf
    best = np.argsort(-similarity, kind="stable")[:k]
    best = best[np.isfinite(similarity[best])]
    sure = [None] * best.size if found.confidence is None else found.confidence[best].tolist()
    ids = model.catalog.id_at(best).tolist()
    columns = ids, similarity[best].tolist(), sure, titles_in_order(model, ids)
    return [SimilarItem(*one) for one in zip(*columns, strict=True)]


def one_list(
    model: FittedModel, person: Interactions, k: int, **how: Any
) -> Iterator[tuple[ItemId, float, float | None, str | None]]:
    """Return item, score, expected rating, and title of each place in the list of the one user in the row."""
    best = best_items(model, person, Wanted(k=k, **how))
    ids = model.catalog.id_at(best.items).tolist()
    stars = [None] * len(ids) if best.stars is None else best.stars.tolist()
    return zip(ids, best.scores.tolist(), stars, titles_in_order(model, ids), strict=True)


def titles_in_order(model: FittedModel, items: Sequence[ItemId]) -> list[str | None]:
    """Return the titles that a model has for these items: the first of its public columns, or None."""
    known = model.titles(items)
    return [next(iter(known.get(item, {}).values()), "") or None for item in items]
