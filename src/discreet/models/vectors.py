"""Vectors of items and users whose inner product is the score that `recommend` sorts by.

An item's vector ends in its bias and a filler that makes all vectors equally long. A user's vector ends in 1
and 0. The nearest items by distance or by angle are then the items with the largest inner product: graph
indexes find neighbors well and largest products badly. All numbers of items are already released, so writing
them costs nothing. Weights between items aren't vectors. They stay in the model, and `reranked` adds them to
what a search found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from discreet.core.arrays import Floats, Singles
from discreet.core.checks import integer
from discreet.models.answers import titles_in_order
from discreet.models.errors import NotSearchable
from discreet.models.listings import ListedItem, Listing
from discreet.models.lists import item_places

if TYPE_CHECKING:
    from discreet.data.interactions import Interactions
    from discreet.models.fitted import FittedModel
    from discreet.models.histories import ItemId


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
