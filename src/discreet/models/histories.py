"""Bring the histories of one user or of many into a model's catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Singles
from discreet.core.checks import DataError
from discreet.data.facts import check_scale
from discreet.data.inputs import History, ItemId, UserHistory, accept, accept_history, refuse_columns
from discreet.data.interactions import Interactions
from discreet.data.reading.columns import Choice
from discreet.data.vocabulary import Vocabulary
from discreet.models.scorers.scorer import NEWCOMER

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel

__all__ = ["History", "ItemId", "people_rows", "person_row", "variants"]

_DO = "pass ignore_unknown=True (--ignore-unknown) to leave them out"


def person_row(
    model: FittedModel,
    history: History,
    *,
    user: ItemId | None = None,
    ignore_unknown: bool = False,
    columns: Choice | None = None,
) -> Interactions:
    """Return the row of one user, in the model's catalog; its order is kept as times.

    `user` is the user's id; without one the user is a newcomer. `columns` names those of a data frame.
    """
    own = accept_history(history, implicit=not model.scorer.needs_ratings, columns=columns)
    ratings = _ratings(model, own)
    known = model.catalog.index_of(own.items) >= 0
    unknown = int(np.count_nonzero(~known))
    if unknown and not ignore_unknown:
        raise DataError(
            f"{unknown} of the history's {len(own.items)} items {'is' if unknown == 1 else 'are'} not in the "
            f"model's catalog ({_named([own.items[place] for place in np.flatnonzero(~known)[:_FEW]])}"
            f"{', ...' * (unknown > _FEW)}); {_DO}."
        )
    items = [item for item, fits in zip(own.items, known.tolist(), strict=True) if fits]
    if model.scorer.needs_ratings:
        _check_scale(model, ratings[known])
    names = [user, own.user, NEWCOMER]
    name = next(one for one in names if one is not None)
    return Interactions.from_arrays(
        [name] * len(items),
        items,
        ratings[known].astype(np.float64),
        None if own.times is None else own.times[known],
        catalog=model.catalog,
        people=Vocabulary.of([name]),
        facts=model.facts,
        name="history",
        duplicates="last",
    )


# So many unknown items are named, and so many letters of each; they are the person's own.
_FEW, _LONGEST = 3, 36


def _named(items: list[ItemId]) -> str:
    texts = (str(item) for item in items)
    return ", ".join(repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}..." for text in texts)


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
    )


def people_rows(
    model: FittedModel, histories: Any, *, ignore_unknown: bool = False, columns: Choice | None = None
) -> Interactions:
    """Return the rows of many users in the model's catalog.

    `histories` are interactions or can be read as interactions: a path, a data frame; or a mapping from users
    to histories, or a list of histories, whose users are numbered from 0. Times are kept; without them the
    rows have no order. If a user rated an item twice, the latest rating counts.
    """
    implicit = not model.scorer.needs_ratings
    if isinstance(histories, Mapping | list | tuple):
        refuse_columns(columns, histories)
        return _written_rows(model, histories, ignore_unknown=ignore_unknown)
    data = accept(histories, implicit=implicit, columns=columns, duplicates="last")
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
    )


def _written_rows(
    model: FittedModel, histories: Mapping[ItemId, History] | Sequence[History], *, ignore_unknown: bool
) -> Interactions:
    """Return the rows of histories that are lists or mappings: all with an order, or all without."""
    named = histories.items() if isinstance(histories, Mapping) else enumerate(histories)
    implicit = not model.scorer.needs_ratings
    own = {user: accept_history(one, implicit=implicit) for user, one in named}
    if not own:
        raise DataError("There are no histories; give at least one, which may be empty.")
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
        raise DataError(
            "Some histories have an order and others none. Give all of them as lists, oldest first, or all "
            "as mappings from item to rating."
        )
    return np.concatenate(moments) if moments else None


def _refuse_unknown(unknown: int, items: int, *, ignore_unknown: bool) -> None:
    if unknown and not ignore_unknown:
        raise DataError(
            f"{unknown:,} of the histories' {items:,} items are not in the model's catalog; {_DO}."
        )


def _ratings(model: FittedModel, own: UserHistory) -> Singles:
    if not model.scorer.needs_ratings:
        return np.full(len(own.items), model.facts.high, dtype=np.float32)
    if own.ratings is None and own.items:
        raise DataError(
            "This model was fitted on ratings; give the history as (item, rating) pairs, oldest first, or as "
            "a mapping from item to rating."
        )
    return np.asarray(own.ratings or [], dtype=np.float32)


def _check_scale(model: FittedModel, values: Singles) -> None:
    facts = model.facts
    try:
        check_scale(values, facts)
    except DataError as error:
        steps = "" if facts.step is None else f" in steps of {facts.step:g}"
        raise DataError(
            "The history has ratings that are not on the scale of the model, "
            f"{facts.low:g} to {facts.high:g}{steps}; give them on that scale."
        ) from error
