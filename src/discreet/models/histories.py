"""Bring the histories of one user or of many into a model's catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from discreet.core import Singles
from discreet.core.checks import DataError
from discreet.data import (
    Choice,
    History,
    Interactions,
    ItemId,
    Moment,
    TableOptions,
    UserHistory,
    Vocabulary,
    accept,
    accept_history,
    check_scale,
    refuse_columns,
    refuse_declared,
    refuse_unknown_names,
    seconds_of,
)
from discreet.models.errors import MixedOrders, NoHistories, OffScale, RatingsNeeded, UnknownItems
from discreet.models.scorers.scorer import NEWCOMER

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel

__all__ = ["History", "ItemId", "Moment", "people_rows", "person_row", "requested", "variants"]


def person_row(
    model: FittedModel,
    history: History,
    *,
    user: ItemId | None = None,
    ignore_unknown: bool = False,
    columns: Choice | None = None,
    now: Moment | None = None,
) -> Interactions:
    """Return the row of one user, in the model's catalog; its order is kept as times.

    `user` is the user's id; without one the user is a newcomer. `columns` names those of a data frame, and
    `now` is when the list is requested.
    """
    own = accept_history(history, implicit=not model.scorer.needs_ratings, columns=columns)
    ratings = _ratings(model, own)
    places = model.catalog.index_of(own.items)
    known = places >= 0
    unknown = int(np.count_nonzero(~known))
    if unknown and not ignore_unknown:
        raise UnknownItems(
            count=unknown,
            of=len(own.items),
            examples=tuple(own.items[place] for place in np.flatnonzero(~known)[:_FEW]),
        )
    if model.scorer.needs_ratings:
        _check_scale(model, ratings[known])
    names = [user, own.user, NEWCOMER]
    name = next(one for one in names if one is not None)
    chosen = np.flatnonzero(known)
    # Text and a number may name one item: the latest row counts, and of equal times the last.
    times = () if own.times is None else (own.times[chosen],)
    chosen = chosen[np.lexsort((*times, places[chosen]))]
    items = places[chosen]
    last = np.ones(items.size, dtype=bool)
    last[:-1] = items[1:] != items[:-1]
    chosen, items = chosen[last], items[last]
    return Interactions(
        indptr=np.array([0, chosen.size]),
        items=items,
        values=ratings[chosen],
        times=None if own.times is None else own.times[chosen],
        listed=chosen,
        users=Vocabulary.of([name]),
        catalog=model.catalog,
        facts=model.facts,
        name="history",
        now=_moment(model, now),
    )


def requested(model: FittedModel, histories: Interactions, now: Moment | None) -> Interactions:
    """Return histories with the time of the request, unless the model was fitted on mere positions."""
    moment = _moment(model, now)
    return histories if moment is None else histories.at(moment)


def _moment(model: FittedModel, now: Moment | None) -> float | None:
    positions = model.schema is not None and model.schema.has_positions
    return None if now is None or positions else seconds_of(now)


# So many unknown items are named; they are the user's own.
_FEW = 3


def variants(person: Interactions) -> Interactions:
    """Return a user's row, and below it the same row without each of its ratings in turn."""
    kept = np.vstack([np.ones(person.n_ratings, dtype=bool), ~np.eye(person.n_ratings, dtype=bool)])
    rows, cells = np.nonzero(kept)
    names = [NEWCOMER if row == 0 else f"{NEWCOMER} {row}" for row in range(len(kept))]
    return Interactions(
        indptr=np.searchsorted(rows, np.arange(len(kept) + 1)),
        items=person.items[cells],
        values=person.values[cells],
        times=None if person.times is None else person.times[cells],
        users=Vocabulary.of(names),
        catalog=person.catalog,
        facts=person.facts,
        name=person.name,
        now=person.now,
    )


def people_rows(
    model: FittedModel,
    histories: Any,
    *,
    ignore_unknown: bool = False,
    columns: Choice | None = None,
    now: Moment | None = None,
    **how: Unpack[TableOptions],
) -> Interactions:
    """Return the rows of many users in the model's catalog, for lists requested at `now`.

    `histories` are interactions or can be read as interactions: a path, a data frame; or a mapping from users
    to histories, or a list of histories, whose users are numbered from 0. Times are kept; without them the
    rows have no order. If a user rated an item twice, the latest rating counts.
    """
    refuse_unknown_names(how, model.recommend_all, TableOptions)
    implicit = not model.scorer.needs_ratings
    if isinstance(histories, Mapping | list | tuple):
        refuse_columns(columns, histories)
        refuse_declared(how, histories)
        return requested(model, _written_rows(model, histories, ignore_unknown=ignore_unknown), now)
    read = accept(histories, implicit=implicit, columns=columns, duplicates="last", **how)
    data = requested(model, read, now)
    if data.catalog is model.catalog or data.catalog == model.catalog:
        if not implicit:
            _check_scale(model, data.values)
        return data
    place = model.catalog.index_of(data.catalog.ids)
    known = place[data.items] >= 0
    _refuse_unknown(int(np.count_nonzero(place < 0)), place.size, ignore_unknown=ignore_unknown)
    values = np.full(data.n_ratings, model.facts.high, np.float32) if implicit else data.values
    if not implicit:
        _check_scale(model, values[known])
    rows = data.rows()[known]
    return Interactions.from_arrays(
        data.users.id_at(rows),
        model.catalog.id_at(place[data.items[known]]),
        values[known],
        None if data.times is None else data.times[known],
        catalog=model.catalog,
        people=data.users,
        facts=model.facts,
        name="histories",
    ).at(data.now)


def _written_rows(
    model: FittedModel, histories: Mapping[ItemId, History] | Sequence[History], *, ignore_unknown: bool
) -> Interactions:
    """Return the rows of histories that are lists or mappings: all with an order, or all without."""
    named = histories.items() if isinstance(histories, Mapping) else enumerate(histories)
    implicit = not model.scorer.needs_ratings
    own = {user: accept_history(one, implicit=implicit) for user, one in named}
    if not own:
        raise NoHistories()
    times = _joint_times(own.values())
    items = [item for one in own.values() for item in one.items]
    places = model.catalog.index_of(items)
    known = places >= 0
    _refuse_unknown(
        len({items[place] for place in np.flatnonzero(~known)}),
        len(set(items)),
        ignore_unknown=ignore_unknown,
    )
    ratings = np.concatenate([_ratings(model, one) for one in own.values()])[known]
    if not implicit:
        _check_scale(model, ratings)
    people = Vocabulary.of(list(own))
    rows = np.repeat(np.arange(len(own)), [len(one.items) for one in own.values()])[known]
    return Interactions.from_arrays(
        people.id_at(rows),
        model.catalog.id_at(places[known]),
        ratings,
        times if times is None else times[known],
        catalog=model.catalog,
        people=people,
        facts=model.facts,
        name="histories",
        duplicates="last",
    )


def _joint_times(histories: Iterable[UserHistory]) -> npt.NDArray[np.int64] | None:
    """Return the times of all, or None if none has an order; empty histories have either."""
    times = [one.times for one in histories if one.items]
    moments = [one for one in times if one is not None]
    if moments and len(moments) < len(times):
        raise MixedOrders()
    return np.concatenate(moments) if moments else None


def _refuse_unknown(unknown: int, items: int, *, ignore_unknown: bool) -> None:
    if unknown and not ignore_unknown:
        raise UnknownItems(count=unknown, of=items, where="histories")


def _ratings(model: FittedModel, own: UserHistory) -> Singles:
    if not model.scorer.needs_ratings:
        return np.full(len(own.items), model.facts.high, dtype=np.float32)
    if own.ratings is None and own.items:
        raise RatingsNeeded()
    return np.asarray(own.ratings or [], dtype=np.float32)


def _check_scale(model: FittedModel, values: Singles) -> None:
    facts = model.facts
    try:
        check_scale(values, facts)
    except DataError as error:
        raise OffScale(low=facts.low, high=facts.high, step=facts.step) from error
