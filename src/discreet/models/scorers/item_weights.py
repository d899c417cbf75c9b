"""Score an item by the weights it has from everything a person chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from discreet.arrays import Floats, Indices, Singles
from discreet.checks import DataError
from discreet.data.interactions import Interactions
from discreet.models.scorers.choices import recency
from discreet.models.scorers.parts import ITEMS, Constant, Notes, Number, Numbers, Stored
from discreet.models.scorers.scorer import Scorer
from discreet.models.scorers.similarity import Neighbors

MOST_FADING = 100.0
_COUNTED = "counted without noise: the label says NOT PRIVATE"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWeightsScorer(Scorer):
    """Add up `weights[chosen, item]` over what a person chose, for the items that have weights.

    `base` decides among equals, and for a person who chose nothing. Where times are known, the r-th choice
    from the latest counts by (1 + r) to the minus `fading`.
    """

    kind: ClassVar[str] = "item-weights"
    needs_ratings: ClassVar[bool] = False
    history_part: ClassVar[str] = "co-occurrence"
    stored: ClassVar[Mapping[str, Stored]] = {
        "items": Numbers(source=_COUNTED, shape=("weighed",), dtype=np.int64, least=0, index_of=ITEMS),
        "weights": Numbers(
            source=_COUNTED, shape=("weighed", "weighed"), dtype=np.float32, least=-1e15, most=1e15
        ),
        "base": Numbers(source=_COUNTED, shape=(ITEMS,), least=-1e15, most=1e15),
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "fading": Number(least=0.0, most=MOST_FADING),
        "decisions": Notes(),
    }

    items: Indices
    weights: Singles
    base: Floats
    # Files of the first version do not name it, and count every choice alike.
    fading: float = 0.0
    decisions: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse items named twice."""
        if np.unique(self.items).size != self.items.size:
            raise DataError("items names an item twice.")

    def fold_in(self, histories: Interactions) -> Floats:
        """Return the sums of the weights of what each person chose."""
        place = np.full(self.base.size, -1, dtype=np.int64)
        place[self.items] = np.arange(self.items.size)
        weighed = histories.with_values(recency(histories, self.fading).astype(np.float32))
        choices: Any = weighed.where(place[histories.items] >= 0).to_scipy()
        sums: Floats = np.asarray(choices[:, self.items] @ self.weights, dtype=np.float64)
        return sums

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single cells."""
        asked, place = np.unique(rows, return_inverse=True)
        every: Floats = self.scores(histories, asked).astype(np.float64)
        return every[place, items]

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        asked, place = np.unique(rows, return_inverse=True)
        found = np.tile(self.base.astype(np.float32), (asked.size, 1))
        found[:, self.items] += self.fold_in(histories.select_users(asked)).astype(np.float32)
        every: Singles = found[place]
        return every

    def similarities(self, *, noised: bool) -> Callable[[int, int], Neighbors]:
        """Return how much having chosen an item speaks for each other one; counted without noise."""

        def neighbors(item: int, k: int) -> Neighbors:
            speaks = np.zeros(self.base.size)
            place = np.flatnonzero(self.items == item)
            if place.size:
                speaks[self.items] = self.weights[place[0]]
            return Neighbors(np.where(speaks > 0, speaks, -np.inf), None)

        return neighbors

    def explain(self) -> dict[str, Any]:
        """Return what the fit chose."""
        return dict(self.decisions)
