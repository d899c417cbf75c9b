"""Name the items that are similar to one, as far as they stand out of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.models.answers import SimilarItem
from discreet.models.scorers.similarity import Neighbors

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel


def similar_to(model: FittedModel, places: Sequence[int], k: int) -> list[list[SimilarItem]]:
    """Return up to `k` neighbors of each of these items, nearest first.

    What noise may have made is left out: a simulated fit has noise as well, one with epsilon infinite none.
    """
    neighbors = model.scorer.similarities(noised=model.guarantee.epsilon < np.inf)
    return [_named(model, place, neighbors(place, k), k) for place in places]


def _named(model: FittedModel, place: int, found: Neighbors, k: int) -> list[SimilarItem]:
    similarity = found.similarity.copy()
    similarity[place] = -np.inf
    if found.confidence is not None:
        similarity[~(found.confidence >= found.least)] = -np.inf
    best = np.argsort(-similarity, kind="stable")[:k]
    best = best[np.isfinite(similarity[best])]
    sure = [None] * best.size if found.confidence is None else found.confidence[best].tolist()
    ids = model.catalog.id_at(best).tolist()
    return [SimilarItem(*one) for one in zip(ids, similarity[best].tolist(), sure, strict=True)]
