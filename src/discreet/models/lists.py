"""Rank items for one user or many, in blocks of bounded size; evaluation ranks the same candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Singles, integer, probability
from discreet.data import Interactions, Moment, cells_of_rows
from discreet.models.errors import NotAList, UnknownItems
from discreet.models.items import beside
from discreet.models.scorers.ranking import Ranking
from discreet.models.scorers.scorer import Scorer
from discreet.solvers import FEW

if TYPE_CHECKING:
    import polars as pl

    from discreet.models.fitted import FittedModel
    from discreet.models.histories import ItemId

# The number of scores held at once; a few copies of them are made.
_SCORES_AT_ONCE = 1 << 24


# Decimals of expected ratings.
_DIGITS = 6
#: The column of expected ratings, in tables, JSON and answers of the service.
STARS = "expected_stars"


#: Lists of some users: their rows, places and scores, and expected stars of (index into the rows, item).
Block = tuple[Indices, Indices, Floats, Callable[[Indices, Indices], "Floats | None"]]


class Best(NamedTuple):
    """Places in lists, one after the other: whose, which place, what, by which score, and the stars."""

    people: Indices
    ranks: Indices
    items: Indices
    scores: Floats
    stars: Floats | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """The settings of lists, as in `FittedModel.recommend`; `closed` items are in no list.

    `now` is when lists of histories that are not read yet are requested.
    """

    k: int = 10
    exclude_seen: bool = True
    closed: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rank_by: str | None = None
    diversify: float = 0.0
    now: Moment | None = None

    @classmethod
    def of(
        cls,
        model: FittedModel,
        *,
        among: Iterable[ItemId] | None = None,
        exclude: Iterable[ItemId] | None = None,
        **others: Any,
    ) -> Self:
        """Return the settings with all items closed that are outside `among`, and those in `exclude`."""
        if among is None and exclude is None:
            return cls(**others)
        closed = np.full(len(model.catalog), among is not None)
        if among is not None:
            closed[item_places(model, among, "among")] = False
        if exclude is not None:
            closed[item_places(model, exclude, "exclude")] = True
        return cls(closed=np.flatnonzero(closed), **others)


def recommend_rows(
    model: FittedModel, histories: Interactions, wanted: Wanted, *, titles: bool = False
) -> pl.DataFrame:
    """Return the best items of every user: columns user, rank, item and score, which sorts them.

    With `titles` the first of the model's public columns is next to the items, if there is one. A model
    that knows them has expected stars. A user who has seen everything has no row.
    """
    best = best_items(model, histories, wanted)
    import polars as pl

    columns: dict[str, Any] = {
        "user": histories.users.series_at(best.people),
        "rank": best.ranks,
        "item": model.catalog.series_at(best.items),
    }
    if titles and model.public:
        texts = pl.Series(next(iter(model.public.values())), dtype=pl.String)
        columns["title"] = texts.gather(pl.Series(best.items.astype(np.int64))).replace("", None)
    columns["score"] = best.scores
    return pl.DataFrame(columns if best.stars is None else {**columns, STARS: best.stars})


def one_list(
    model: FittedModel, person: Interactions, wanted: Wanted
) -> Iterator[tuple[ItemId, float, float | None, str | None]]:
    """Return item, score, expected rating, and title of each place in the list of the one user in the row."""
    best = best_items(model, person, wanted)
    ids = model.catalog.id_at(best.items).tolist()
    stars = [None] * len(ids) if best.stars is None else best.stars.tolist()
    return zip(ids, best.scores.tolist(), stars, titles_in_order(model, ids), strict=True)


def titles_in_order(model: FittedModel, items: Sequence[ItemId]) -> list[str | None]:
    """Return the titles that a model has for these items: the first of its public columns, or None."""
    known = beside(model.public, model.catalog, items)
    return [next(iter(known.get(item, {}).values()), "") or None for item in items]


def best_items(model: FittedModel, histories: Interactions, wanted: Wanted) -> Best:
    """Return who, rank, item, score and expected stars of each place in every user's list."""
    integer("k", wanted.k, least=1)
    few = wanted.diversify or histories.n_users <= FEW
    blocks = (_one_by_one if few else _many)(model, histories, wanted)
    parts = []
    for rows, best, found, stars_at in blocks:
        place, rank = np.nonzero(np.isfinite(found))
        items = best[place, rank]
        parts.append((rows[place], rank + 1, items, found[place, rank], stars_at(place, items)))
    *columns, stars_of = zip(*parts, strict=True)
    people, ranks, items, scores = (
        column[0] if len(column) == 1 else np.concatenate(column) for column in columns
    )
    known = [one for one in stars_of if one is not None]
    # Lists of one user and of many differ in the last bits of a sum, which no reader of ratings misses.
    stars = np.round(np.concatenate(known), _DIGITS) if known else None
    return Best(people, ranks, items, scores, stars)


def _many(model: FittedModel, histories: Interactions, wanted: Wanted) -> Iterator[Block]:
    """Return the lists of many users; loops are compiled for them."""
    from discreet.models.batch_lists import many_lists

    return many_lists(model.scorer, histories, wanted, scores_at_once=_SCORES_AT_ONCE)


def _one_by_one(model: FittedModel, histories: Interactions, wanted: Wanted) -> Iterator[Block]:
    """Yield lists from all scores, without compiled loops."""
    block, count = max(1, _SCORES_AT_ONCE // max(len(model.catalog), 1)), histories.n_users
    vectors = similarity_vectors(model.scorer, wanted.diversify)
    for start in range(0, count, block):
        rows = np.arange(start, min(start + block, count))
        ranking = None if wanted.diversify else model.scorer.ranking(histories, rows, wanted.rank_by)
        if ranking is not None:
            yield rows, *_ranked(ranking, histories, rows, wanted), ranking.expected_stars
            continue
        worth = model.worth(histories, rows, rank_by=wanted.rank_by).astype(np.float64)
        listable(worth, histories if wanted.exclude_seen else None, rows, wanted.closed)
        if wanted.diversify:
            best, found = diversified_rows(worth, vectors, wanted.k, wanted.diversify)
        else:
            best = best_places(worth, wanted.k)
            found = np.take_along_axis(worth, best, axis=1)

        def stars_at(place: Indices, items: Indices, rows: Indices = rows) -> Floats | None:
            return model.scorer.expected_stars(histories, rows[place], items)

        yield rows, best, found, stars_at


# So many items of the largest base are tried first for each place of a list.
_FIRST_TRIED, _TRIED_PER_PLACE = 16, 2


def _ranked(
    ranking: Ranking, histories: Interactions, rows: Indices, wanted: Wanted
) -> tuple[Indices, Floats]:
    """Return the lists of a few users: the base of all items, and the rest for those it leaves in question.

    No item is worth more than its base, so an item whose base is below the last of a list is not in the list.
    """
    bases, k = ranking.bases(rows.size), wanted.k
    listable(bases, histories if wanted.exclude_seen else None, rows, wanted.closed)
    if ranking.liking is None:
        bases = np.where(np.isnan(bases), -np.inf, bases).astype(np.float32).astype(np.float64)
        best = best_places(bases, k)
        return best, np.take_along_axis(bases, best, axis=1)
    k = min(k, bases.shape[1])
    tried = min(_FIRST_TRIED + _TRIED_PER_PLACE * k, bases.shape[1])
    places, values = np.empty((len(bases), k), dtype=np.int64), np.empty((len(bases), k))
    for row, base in enumerate(bases):
        items = np.argpartition(-base, tried - 1)[:tried]
        worth = ranking.worth(bases, row, items)
        reached = np.flatnonzero(base.astype(np.float32) >= np.partition(worth, -k)[-k])
        if reached.size > tried:
            items, worth = reached, ranking.worth(bases, row, reached)
        order = np.lexsort((items, -worth))[:k]
        places[row], values[row] = items[order], worth[order]
    return places, values


def listable(
    worth: Floats | Singles, seen: Interactions | None, rows: Indices, closed: Indices | None = None
) -> None:
    """Set to minus infinity, in place, items that may not be listed: seen by the user, or closed to all."""
    if closed is not None and closed.size:
        worth[:, closed] = -np.inf
    if seen is not None and rows.size == 1:
        worth[0, seen.items[slice(*seen.indptr[rows[0] : rows[0] + 2])]] = -np.inf
    elif seen is not None:
        place = np.repeat(np.arange(rows.size), np.diff(seen.indptr)[rows])
        worth[place, seen.items[cells_of_rows(seen.indptr, rows)]] = -np.inf


def best_places(worth: Floats, k: int) -> npt.NDArray[np.int64]:
    """Return the indices of the `k` largest of each row, largest first and ties in their order."""
    k = min(k, worth.shape[1])
    if k < worth.shape[1]:
        # Ties at the border are broken by index, as a stable sort of the whole row would do.
        border = -np.partition(-worth, k - 1, axis=1)[:, k - 1 : k]
        above, equal = worth > border, worth == border
        room = k - above.sum(axis=1, keepdims=True)
        chosen = np.flatnonzero(above | (equal & (equal.cumsum(axis=1) <= room)))
        places = (chosen % worth.shape[1]).reshape(worth.shape[0], k)
    else:
        places = np.broadcast_to(np.arange(k), worth.shape)
    order = np.argsort(-np.take_along_axis(worth, places, axis=1), axis=1, kind="stable")
    return np.take_along_axis(places, order, axis=1)


def item_places(model: FittedModel, items: Iterable[ItemId], name: str) -> Indices:
    """Return the places of these items in the catalog; `name` is the argument they came in."""
    if isinstance(items, str | bytes):
        raise NotAList(name=name)
    listed = list(items)
    places = model.catalog.index_of(listed).astype(np.int64)
    unknown = int(np.count_nonzero(places < 0))
    if unknown:
        raise UnknownItems(count=unknown, of=len(listed), where=name)
    return places


# A diversified list is chosen from this many of the best items per entry of the list, and at least so many.
_POOL_PER_PLACE, _LEAST_POOL = 10, 100


def similarity_vectors(scorer: Scorer, strength: float) -> Floats:
    """Return the item vectors for similarity; empty where nothing is diversified."""
    share = probability("diversify", strength)
    return scorer.item_vectors() if share else np.zeros((0, 0))


def diversified_rows(worth: Floats, vectors: Floats, k: int, strength: float) -> tuple[Indices, Floats]:
    """Return `k` items for each row of worth, and the values that order them.

    Rows with fewer items end with items of value minus infinity.
    """
    k = min(k, worth.shape[1])
    items, values = np.zeros((len(worth), k), dtype=np.int64), np.full((len(worth), k), -np.inf)
    for row, own in enumerate(worth):
        chosen, value = diversified(own, vectors, k, strength)
        items[row] = np.concatenate([chosen, np.flatnonzero(own == -np.inf)[: k - chosen.size]])
        values[row, : value.size] = value
    return items, values


def diversified(worth: Floats, vectors: Floats, k: int, strength: float) -> tuple[Indices, Floats]:
    """Return `k` items for one list, best first, and the value that each had when it was its turn.

    `strength` 0 is by worth alone, 1 by difference alone. The values fall: what is left only loses.

    Worth is rescaled to [0, 1] over the candidates. Similarity is the cosine between item vectors of the
    released model. Items of worth minus infinity are never listed. The first item is the best one.
    """
    open_items = int(np.count_nonzero(worth > -np.inf))
    size = min(max(_POOL_PER_PLACE * k, _LEAST_POOL), open_items)
    pool = np.argsort(-worth, kind="stable")[:size]
    if not size or strength == 0:
        return pool[:k], worth[pool[:k]]
    best, last = worth[pool[0]], worth[pool[-1]]
    good = (worth[pool] - last) / max(best - last, np.finfo(np.float64).tiny)
    lengths = np.linalg.norm(vectors[pool], axis=1, keepdims=True)
    unit = vectors[pool] / np.maximum(lengths, np.finfo(np.float64).tiny)
    closest, chosen, values = np.full(size, -1.0), [0], [1 - strength]
    for _ in range(min(k, size) - 1):
        closest = np.maximum(closest, unit @ unit[chosen[-1]])
        value = (1 - strength) * good - strength * (1 + closest) / 2
        value[chosen] = -np.inf
        chosen.append(int(np.argmax(value)))
        values.append(float(value[chosen[-1]]))
    return pool[chosen], np.array(values)
