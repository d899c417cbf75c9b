"""Learn weights between all items of a large catalog, where nothing is hidden.

Released co-occurrences cover the most popular items, because noise hides the pairs of all others. Without
noise the other pairs count as well, and a sparse regression per item replaces the matrix. At any finite
epsilon nothing here runs: `Session.rows` raises.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Indices
from discreet.data.interactions import Interactions
from discreet.models.scorers.interactions import FADING
from discreet.models.scorers.next_items import NextItems
from discreet.models.user_factorization.settings import FactorizationSettings
from discreet.privacy.session import Session
from discreet.solvers.item_regression import LocalPairs, OrderWeights, strongest_of_sparse


def whole_catalog(
    session: Session, settings: FactorizationSettings, *, blend: float, ordered: bool
) -> NextItems | None:
    """Return the weights between all items; None with noise, in small catalogs, and of data elsewhere."""
    if session.is_private or session.n_items <= settings.most_co_occurrence_items:
        return None
    data = session.rows()
    if not isinstance(data, Interactions):
        return None
    ordered = ordered and data.times is not None
    order = settings.order if ordered else OrderWeights()
    pairs = LocalPairs.of(
        data.indptr, data.items, steps_in_time(data), data.n_items, order, settings.nearest_items
    )
    kept = strongest_of_sparse(pairs.weights(settings.pair_ridge_users), settings.most_neighbors)
    return NextItems(
        items=np.arange(data.n_items),
        neighbors=kept.items,
        weights=kept.weights,
        blend=blend,
        fading=FADING if ordered else 0.0,
    )


def steps_in_time(data: Interactions) -> Indices:
    """Return the place of each interaction in its user's order; those at one time share a place."""
    if data.times is None:
        return np.zeros(data.n_ratings, dtype=np.int64)
    rows = data.rows()
    order = np.lexsort((data.times, rows))
    later = np.zeros(order.size, dtype=np.int64)
    later[1:] = (rows[order][1:] == rows[order][:-1]) & (np.diff(data.times[order]) != 0)
    steps = np.empty(order.size, dtype=np.int64)
    steps[order] = np.cumsum(later)
    return steps
