"""Count which items are chosen together, and choose one number by a hidden part, for all item bars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.arrays import Floats, Indices
from discreet.data.interactions import Interactions
from discreet.models.bars.search import Direction, Point, walk
from discreet.models.bars.validation import hide_choices
from discreet.models.scorers.item_weights import ItemWeightsScorer

# A search looks at this many of the most chosen items: each of its steps may cost their third power.
_SEARCHED_ITEMS = 1024
# Among equals the better known comes first; no weight is as small as this.
_TIE_BREAK = 1e-6


def most_chosen(data: Interactions, most: int) -> Indices:
    """Return the items chosen most often, at most `most` of them, in catalog order."""
    counts = np.bincount(data.items, minlength=data.n_items)
    return np.sort(np.argsort(-counts, kind="stable")[:most])


def chosen_together(data: Interactions, items: Indices) -> Floats:
    """Return how many people chose each pair of these items; the diagonal counts those who chose one."""
    choices: Any = data.with_values(np.ones(data.n_ratings, dtype=np.float32)).to_scipy()[:, items]
    together: Floats = (choices.T @ choices).toarray().astype(np.float64)
    return together


def weights_scorer(
    data: Interactions, items: Indices, weights: Floats, decisions: dict[str, Any]
) -> ItemWeightsScorer:
    """Return the scorer of item-to-item weights over these items."""
    counts = np.bincount(data.items, minlength=data.n_items).astype(np.float64)
    return ItemWeightsScorer(
        items=items,
        weights=weights.astype(np.float32),
        base=counts * (_TIE_BREAK / max(counts.max(initial=0.0), 1.0)),
        decisions=decisions,
    )


def search_setting(
    data: Interactions,
    name: str,
    start: float,
    direction: Direction,
    weigh: Callable[[Floats, float], Floats],
    seed: int,
) -> float:
    """Return the value of a setting under which hidden choices of the best known items rank best."""
    hidden = hide_choices(data, seed)
    if hidden is None:
        return start
    items = most_chosen(hidden.train, _SEARCHED_ITEMS)
    together = chosen_together(hidden.train, items)

    def loss(point: Point) -> float:
        scorer = weights_scorer(hidden.train, items, weigh(together, point[name]), {})
        return hidden.loss(scorer.scores(hidden.train, hidden.people))

    return walk({name: start}, {name: direction}, loss)[name]
