"""Count which items are chosen together, and choose one number by a hidden part, for all item bars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.arrays import Floats, Indices
from discreet.checks import non_negative, require
from discreet.data.interactions import Interactions
from discreet.models.bars.search import Direction, Point, walk
from discreet.models.bars.validation import hide_choices
from discreet.models.scorers.item_weights import MOST_FADING, ItemWeightsScorer

# A search looks at this many of the most chosen items: each of its steps may cost their third power.
_SEARCHED_ITEMS = 1024
# How much the latest choices count for more, where times are known; a search begins here.
_FADING, _FADING_WAY = 0.7, Direction(1.5, 0.2, 2.5)
# Among equals the better known comes first; no weight is as small as this.
_TIE_BREAK = 1e-6


def check_fading(fading: float | None) -> None:
    """Refuse a fading that no model file may have."""
    if fading is not None:
        known = non_negative("fading", fading)
        require(known <= MOST_FADING, "fading", fading, f"must be at most {MOST_FADING:g}")


def most_chosen(data: Interactions, most: int) -> Indices:
    """Return the items chosen most often, at most `most` of them, in catalog order."""
    counts = np.bincount(data.items, minlength=data.n_items)
    return np.sort(np.argsort(-counts, kind="stable")[:most])


def chosen_together(data: Interactions, items: Indices) -> Floats:
    """Return how many people chose each pair of these items; the diagonal counts those who chose one."""
    choices: Any = data.with_values(np.ones(data.n_ratings, dtype=np.float32)).to_scipy()[:, items]
    together: Floats = (choices.T @ choices).toarray().astype(np.float64)
    return together


def weights_scorer(data: Interactions, items: Indices, weights: Floats, settings: Point) -> ItemWeightsScorer:
    """Return the scorer of item-to-item weights over these items."""
    counts = np.bincount(data.items, minlength=data.n_items).astype(np.float64)
    return ItemWeightsScorer(
        items=items,
        weights=weights.astype(np.float32),
        base=counts * (_TIE_BREAK / max(counts.max(initial=0.0), 1.0)),
        fading=settings["fading"],
        decisions=settings,
    )


def search_settings(
    data: Interactions,
    given: dict[str, float | None],
    start: Point,
    directions: dict[str, Direction],
    weigh: Callable[[Floats, float], Floats],
    seed: int,
) -> Point:
    """Return the settings under which hidden choices of the best known items rank best.

    The first setting is what `weigh` asks for; `fading` joins where data have times. Those `given` stay.
    """
    fades = data.times is not None
    start = {**start, "fading": _FADING if fades else 0.0}
    directions = {**directions, "fading": _FADING_WAY} if fades else directions
    start |= {name: value for name, value in given.items() if value is not None}
    directions = {name: way for name, way in directions.items() if given.get(name) is None}
    hidden = hide_choices(data, seed) if directions else None
    if hidden is None:
        return start
    items = most_chosen(hidden.train, _SEARCHED_ITEMS)
    together, asked = chosen_together(hidden.train, items), next(iter(start))

    def loss(point: Point) -> float:
        scorer = weights_scorer(hidden.train, items, weigh(together, point[asked]), point)
        return hidden.loss(scorer.scores(hidden.train, hidden.people))

    return walk(start, directions, loss)
