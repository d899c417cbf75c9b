"""Score every item alike for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.scorers.parts import ITEMS, Numbers, Stored
from discreet.models.scorers.scorer import Scorer


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PopularityScorer(Scorer):
    """Score every item alike for everybody."""

    kind: ClassVar[str] = "popularity"
    needs_ratings: ClassVar[bool] = False
    stored: ClassVar[Mapping[str, Stored]] = {
        "popularity": Numbers(source="noisy release: weighted counts of people an item", shape=(ITEMS,))
    }

    popularity: Floats

    def fold_in(self, histories: Interactions) -> Floats:
        """Return an empty vector for everybody: this model knows no persons."""
        return np.zeros((histories.n_users, 0))

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the items' popularity."""
        return self.popularity[items]

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the same list for everybody."""
        return np.broadcast_to(self.popularity.astype(np.float32), (len(rows), len(self.popularity))).copy()
