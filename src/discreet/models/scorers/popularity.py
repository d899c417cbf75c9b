"""Score every item alike for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.scorers.scorer import Scorer


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PopularityScorer(Scorer):
    """Score every item alike for everybody."""

    kind: ClassVar[str] = "popularity"
    needs_ratings: ClassVar[bool] = False
    provenance: ClassVar[Mapping[str, str]] = {
        "popularity": "noisy release: weighted counts of people an item"
    }

    popularity: Floats

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the noisy counts."""
        return {"popularity": self.popularity}

    def settings(self) -> dict[str, Any]:
        """Return nothing: the counts are all there is."""
        return {}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Build the scorer again."""
        return cls(popularity=arrays["popularity"])

    def fold_in(self, histories: Interactions) -> Floats:
        """Return an empty vector for everybody: this model knows no persons."""
        return np.zeros((histories.n_users, 0))

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the items' popularity."""
        return self.popularity[items]

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the same list for everybody."""
        return np.broadcast_to(self.popularity.astype(np.float32), (len(rows), len(self.popularity))).copy()
