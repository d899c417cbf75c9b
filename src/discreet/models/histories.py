"""Bring histories into a model's catalog: one person's, or those of many people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arrays import Singles
from discreet.checks import DataError
from discreet.data.accepting import accept
from discreet.data.declaring import check_scale
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel

ItemId = str | int
History = Mapping[ItemId, float] | Iterable[ItemId]
# Nobody in the data is called this: a release with rows of its own people must not take a visitor for one.
_NEWCOMER = "(a newcomer)"
_DO = "pass ignore_unknown=True (--ignore-unknown) to leave them out"


def person_row(model: FittedModel, history: History, *, ignore_unknown: bool = False) -> Interactions:
    """Return the one row of a person, in the model's catalog."""
    rated = _listed(model, history)
    known = model.catalog.index_of(list(rated)) >= 0
    unknown = int(np.count_nonzero(~known))
    if unknown and not ignore_unknown:
        raise DataError(
            f"{unknown} of the history's {len(rated)} items are not in the model's catalog; {_DO}."
        )
    kept = [(item, value) for (item, value), fits in zip(rated.items(), known, strict=True) if fits]
    return _rows(model, [dict(kept)])


def variants(model: FittedModel, history: Mapping[ItemId, float]) -> Interactions:
    """Return a person's history, and below it the same without each of its items in turn."""
    without = [{other: value for other, value in history.items() if other != item} for item in history]
    return _rows(model, [dict(history), *without])


def people_rows(model: FittedModel, histories: Any, *, ignore_unknown: bool = False) -> Interactions:
    """Return many people's rows in the model's catalog.

    `histories` are interactions, or what can be read as such: a path, a data frame. Of an item that somebody
    rated twice the last rating counts.
    """
    implicit = not model.scorer.needs_ratings
    data = accept(histories, implicit=implicit, duplicates="last")
    if data.catalog is model.catalog or data.catalog == model.catalog:
        return data
    place = model.catalog.index_of(data.catalog.ids)
    known = place[data.items] >= 0
    unknown = int(np.count_nonzero(place < 0))
    if unknown and not ignore_unknown:
        raise DataError(
            f"{unknown:,} of the histories' {place.size:,} items are not in the model's catalog; {_DO}."
        )
    values = np.full(data.n_ratings, model.facts.high, np.float32) if implicit else data.values
    _check_scale(model, values[known])
    rows = data.rows()[known]
    return Interactions.from_arrays(
        data.users.id_at(rows),
        model.catalog.id_at(place[data.items[known]]),
        values[known],
        catalog=model.catalog,
        people=data.users,
        facts=model.facts,
        name="histories",
    )


def _rows(model: FittedModel, people: list[dict[ItemId, float]]) -> Interactions:
    names = [_NEWCOMER if place == 0 else f"{_NEWCOMER} {place}" for place in range(len(people))]
    values = np.asarray([value for rated in people for value in rated.values()], dtype=np.float32)
    if model.scorer.needs_ratings:
        _check_scale(model, values)
    return Interactions.from_arrays(
        [name for name, rated in zip(names, people, strict=True) for _ in rated],
        [item for rated in people for item in rated],
        values.astype(np.float64),
        catalog=model.catalog,
        people=Vocabulary.of(names),
        facts=model.facts,
        name="history",
    )


def _listed(model: FittedModel, history: History) -> dict[ItemId, float]:
    if isinstance(history, str | bytes) or not isinstance(history, Iterable):
        raise DataError("A history is a mapping from item to rating, or a list of item ids.")
    # A series of pandas is a mapping that does not say so.
    pairs = getattr(history, "items", None)
    if callable(pairs):
        history = dict(pairs())
    if not model.scorer.needs_ratings:
        return dict.fromkeys(history, model.facts.high)
    if not isinstance(history, Mapping):
        raise DataError(
            "This model was fitted on ratings; give the history as a mapping from item to rating."
        )
    try:
        return {item: float(value) for item, value in history.items()}
    except (TypeError, ValueError):
        raise DataError("The history's ratings must be numbers.") from None


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
