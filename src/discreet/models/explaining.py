"""Say why an item stands where it does in a person's list, in the units that the list is sorted by.

Ranking scores mean something only beside each other, so all is told against a reference: the average item of
the lower half of the person's own ranking. An item of the upper half is above it in all, so that at least one
part speaks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays import Floats, Indices
from discreet.data.interactions import Interactions
from discreet.models.answers import Explanation
from discreet.models.histories import variants
from discreet.models.lists import listable

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel

# So many scores are held at once.
_SCORES_AT_ONCE = 1 << 24
_ONE = np.zeros(1, dtype=np.int64)


def explain_item(model: FittedModel, person: Interactions, place: int) -> Explanation:
    """Return why the item at this place of the catalog has its score, for the one person in the row."""
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
    )


def lower_half(worth: Floats) -> Indices:
    """Return the items of the lower half of a ranking; of one item alone, that item."""
    return np.argsort(-worth, kind="stable")[worth.size // 2 :]


def _without_each(model: FittedModel, person: Interactions, place: int, lower: Indices) -> Floats:
    """Return how far the item is above the reference without each of the person's ratings in turn."""
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
