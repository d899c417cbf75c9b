"""Answer from a model: lists that also are tables, similar items, why an item is ranked, vectors to search.

In an explanation each score is compared with a reference: the average item of the lower half of the user's
own ranking. An item of the upper half is above it in all, so that at least one part supports it.

A vector store finds what `recommend` lists: the inner product of a user's and an item's vector is the score
that lists are sorted by. An item's vector ends in its bias and a filler that makes all vectors equally long.
A user's vector ends in 1 and 0. The nearest items by distance or by angle are then the items with the largest
inner product: graph indexes find neighbors well and largest products badly. All numbers of items are already
released, so writing them costs nothing. Weights between items aren't vectors. They stay in the model, and
`reranked` adds them to what a search found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar, final

import numpy as np

from discreet.core import Floats, FrameKind, Indices, Singles, integer, renamed, to_frame
from discreet.data import History, Interactions, ItemId
from discreet.models.errors import NoFactorsFound, NotSearchable
from discreet.models.histories import Moment, person_row, variants
from discreet.models.lists import item_places, listable, titles_in_order
from discreet.models.scorers.scorer import without_history
from discreet.models.scorers.similarity import NearestItems
from discreet.privacy import Guarantee, gaussian_multiplier
from discreet.report import TableView

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel


class _Pair(tuple[ItemId, float]):
    """An item and a number, with more by name."""

    title: str | None

    @property
    def item(self) -> ItemId:
        """Return the item's id."""
        return self[0]

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return (*self, *vars(self).values())

    def __repr__(self) -> str:
        """Show all that is known."""
        known = "".join(f", {name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"({self[0]!r}, {self[1]!r}{known})"


@final
class ListedItem(_Pair):
    """An item and the ranking score that its list is sorted by: `item, score = listed`, or `listed.item`.

    `expected_stars` is the rating that the user is expected to give, if the model predicts one, and `title`
    the first public text that the model has for the item.
    """

    expected_stars: float | None

    def __new__(
        cls, item: ItemId, score: float, expected_stars: float | None = None, title: str | None = None
    ) -> Self:
        """An item and its score, with stars and title."""
        made = super().__new__(cls, (item, score))
        made.expected_stars, made.title = expected_stars, title
        return made

    @property
    def score(self) -> float:
        """Return the ranking score."""
        return self[1]

    @property
    def stars(self) -> float | None:
        """Return `expected_stars`, by its earlier name."""
        return self.expected_stars


# The largest chance that is stated.
_SUREST = 0.999


@final
class SimilarItem(_Pair):
    """A neighbor and its similarity: `item, similarity = neighbor`, or `neighbor.item`; perhaps a `title`.

    `above_noise` is the chance that noise alone didn't bring the item this near; at most 0.999, because the
    noise is estimated. It covers the noise only: an item can be above the noise and still not be a neighbor
    in the data, because of what the model didn't learn. It is None where no noise was added.
    """

    above_noise: float | None

    def __new__(
        cls, item: ItemId, similarity: float, above_noise: float | None = None, title: str | None = None
    ) -> Self:
        """An item and its similarity, with the chance that it is above the noise, and a title."""
        made = super().__new__(cls, (item, similarity))
        made.above_noise, made.title = None if above_noise is None else min(above_noise, _SUREST), title
        return made

    @property
    def confidence(self) -> float | None:
        """Return `above_noise`, under its name in 0.2."""
        renamed("SimilarItem.confidence", "above_noise")
        return self.above_noise

    @property
    def similarity(self) -> float:
        """Return the similarity."""
        return self[1]


Entry = TypeVar("Entry", bound=ListedItem | SimilarItem)


def any_known(column: Sequence[object]) -> bool:
    """Return whether a column has a value anywhere."""
    return any(value is not None for value in column)


# Columns of numbers, also in an empty list, and those that are omitted if nothing is known.
_NUMBERS = ("score", "similarity", "above_noise", "expected_stars")
_OPTIONAL = ("title", "above_noise", "expected_stars")


@final
class Listing(TableView, list[Entry]):
    """A list of items, best first, that also is a table: `to_frame` and a view for notebooks.

    It is what `recommend` and `similar_items` return: unpack its entries, or show all of them at once.
    `frame_kind` is the kind of frame that the history came in, and `why_empty` states why nothing is listed.

    Guarantee
        A list reveals no more than the model and the history that it was made from.

    Example:
        >>> listed = Listing([ListedItem("a", 2.5), ListedItem("b", 1.0, title="Bee")])
        >>> [item for item, score in listed], listed.to_frame().columns
        (['a', 'b'], ['rank', 'item', 'title', 'score'])
        >>> listed.to_json()[1]
        {'rank': 2, 'item': 'b', 'title': 'Bee', 'score': 1.0}

    Stability
        Stable.
    """

    def __init__(
        self, entries: Iterable[Entry] = (), *, frame_kind: FrameKind = "polars", why_empty: str = ""
    ) -> None:
        super().__init__(entries)
        self.frame_kind, self.why_empty = frame_kind, "" if self else why_empty

    def to_frame(self, kind: FrameKind | None = None) -> Any:
        """Return rank, item, score (or similarity), and where known title, expected_stars (or above_noise).

        The frame is of the kind that the history came in, else of polars; `kind` names a different one.
        """
        return to_frame(_known(self.columns()), kind or self.frame_kind, numbers=_NUMBERS)

    def columns(self) -> dict[str, list[Any]]:
        """Return all columns, also those in which nothing is known."""
        similar = isinstance(self[0], SimilarItem) if self else bool(self.why_empty)
        score, extra = ("similarity", "above_noise") if similar else ("score", "expected_stars")
        return {
            "rank": list(range(1, len(self) + 1)),
            "item": [one[0] for one in self],
            "title": [one.title for one in self],
            score: [one[1] for one in self],
            extra: [getattr(one, extra) for one in self],
        }

    def __repr__(self) -> str:
        """Show the entries; of an empty list, why it is empty."""
        return f"[] ({self.why_empty})" if self.why_empty else super().__repr__()

    def to_json(self) -> list[dict[str, Any]]:
        """Return an object for each item, with what is known of it."""
        return _objects(self.columns())

    def _table(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        return _view(self.columns(), self.why_empty)


@final
class SimilarItems(TableView, dict[ItemId, "Listing[SimilarItem]"]):
    """The neighbors of several items, by item, that also are one table with the item in `similar_to`."""

    def to_frame(self, kind: FrameKind = "polars") -> Any:
        """Return similar_to, rank, item, similarity, and where known title and above_noise."""
        return to_frame(_known(self._columns()), kind, numbers=_NUMBERS)

    def _columns(self) -> dict[str, list[Any]]:
        rows = [(asked, rank, one) for asked, near in self.items() for rank, one in enumerate(near, 1)]
        return {
            "similar_to": [asked for asked, _, _ in rows],
            "rank": [rank for _, rank, _ in rows],
            "item": [one.item for *_, one in rows],
            "title": [one.title for *_, one in rows],
            "similarity": [one.similarity for *_, one in rows],
            "above_noise": [one.above_noise for *_, one in rows],
        }

    def to_json(self) -> list[dict[str, Any]]:
        """Return an object for each neighbor, with the item it is similar to."""
        return _objects(self._columns())

    def _table(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        return _view(self._columns(), " ".join(near.why_empty for near in self.values() if near.why_empty))


def _known(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: column for name, column in columns.items() if name not in _OPTIONAL or any_known(column)}


def _objects(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    rows = zip(*columns.values(), strict=True)
    named = (zip(columns, row, strict=True) for row in rows)
    return [{name: value for name, value in row if value is not None} for row in named]


def _view(
    columns: dict[str, list[Any]], remark: str
) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
    shown = _known(columns)
    return list(shown), zip(*shown.values(), strict=True), remark


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(TableView):
    """Why an item has its ranking score: `reference` plus all `parts` is `score`.

    The reference is the average item of the lower half of the user's own ranking, and each part shows by how
    much the item is above or below it. `reasons` are the user's own ratings, each with what the score,
    against the reference, would lose without it; they overlap, so they do not add up.

    Guarantee
        It is as private as the history that it was made from; no other user's ratings are read.

    Example:
        >>> from discreet import Biases, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Biases(epsilon=5.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> film, other = (films.catalog.id_at(place) for place in (0, 1))
        >>> found = model.explain({film: 5}, other)
        >>> list(found.parts), len(found)
        (['popularity', 'expected stars'], 1)

    Stability
        Stable.
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

    def to_json(self) -> dict[str, Any]:
        """Return the place, the score, the reference and all that supports the item."""
        return {**asdict(self), "parts": dict(self.parts), "reasons": [list(one) for one in self.reasons]}

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        return ("kind", "of", "adds"), self._rows(), f"What supports {self.item}"


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
        neighbors = model.scorer.similarities(noise=_least_noise(model.guarantee))
    except NoFactorsFound as error:
        return [Listing((), why_empty=str(error)) for _ in places]
    ids = model.catalog.id_at(np.asarray(places, dtype=np.int64)).tolist()
    found = (_named(model, place, neighbors(place, k), k) for place in places)
    return [Listing(near, why_empty=nothing_similar(item)) for item, near in zip(ids, found, strict=True)]


def _least_noise(promise: Guarantee) -> float:
    """Return the noise multiplier of one release that spends the whole guarantee; 0 without a guarantee."""
    return gaussian_multiplier(promise.epsilon, promise.delta) if promise.delta else 1 / promise.epsilon


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


def item_matrix(model: FittedModel) -> Singles:
    """Return a vector for each item of the catalog: factors, bias, filling.

    Raises:
        ParameterError: The order of this model's lists isn't an inner product.
    """
    factors, bias = _search_parts(model)
    vectors = np.column_stack([factors, bias])
    squares = (vectors**2).sum(axis=1)
    return np.column_stack([vectors, np.sqrt(squares.max() - squares)]).astype(np.float32)


def _search_parts(model: FittedModel) -> tuple[Floats, Floats]:
    linear = model.scorer.search_parts()
    if linear is None:
        raise NotSearchable(model=model.name)
    return linear


def search_vectors(model: FittedModel, people: Interactions) -> Singles:
    """Return the vector of each user to search with; it is as private as the user's history."""
    _search_parts(model)
    own = model.scorer.fold_in(people)
    return np.column_stack([own, np.ones(len(own)), np.zeros(len(own))]).astype(np.float32)


def reranked(
    model: FittedModel, person: Interactions, found: Iterable[ItemId], k: int, *, exclude_seen: bool
) -> Listing[ListedItem]:
    """Return one user's `k` best items, of those that a search found and those that weights bring in."""
    integer("k", k, least=1)
    _search_parts(model)
    items, scores = model.scorer.rescored(person, np.unique(item_places(model, found, "found")))
    if exclude_seen:
        kept = ~np.isin(items, person.items)
        items, scores = items[kept], scores[kept]
    # Ties are broken as in `recommend`: by place in the catalog.
    best = np.lexsort((items, -scores))[:k]
    stars = model.scorer.expected_stars(person, np.zeros(best.size, dtype=np.int64), items[best])
    ids = model.catalog.id_at(items[best]).tolist()
    columns = (
        ids,
        scores[best].tolist(),
        [None] * best.size if stars is None else stars.tolist(),
        titles_in_order(model, ids),
    )
    return Listing(ListedItem(*one) for one in zip(*columns, strict=True))
