"""Repeat published rounds of rank one on a person's own row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.blocks import rows_of
from discreet.contributions.stepped_rows import RoundsSoFar
from discreet.data.interactions import Interactions
from discreet.models.scorers.factors import LinearRatings
from discreet.models.scorers.parts import ITEMS, RELEASED, Constant, Number, Numbers, Stored


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedScorer(LinearRatings):
    """Predict a person's own mean and the completed row, which the person computes from the published rounds.

    `row_bound` is in units of the ratings; `mean` is the middle of the scale, what nobody's mean is without.
    """

    kind: ClassVar[str] = "rank-one-rounds"
    stored: ClassVar[Mapping[str, Stored]] = {
        "item_bias": Numbers(source="zeros: the method has none", shape=(ITEMS,)),
        "directions": Numbers(source=RELEASED, shape=(ITEMS, "rounds"), least=-2.0, most=2.0),
        "paces": Numbers(source=RELEASED, shape=("rounds",), least=0.0, most=1e15),
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        **LinearRatings.constants,
        "row_bound": Number(least=1e-15, most=1e15),
    }

    directions: Floats
    paces: Floats
    row_bound: float

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each person's own mean, beyond the middle, and place on every direction."""
        rows = rows_of(histories)
        centered = rows._replace(values=(rows.values - self.mean).astype(np.float32))
        return RoundsSoFar(
            middle=self.mean,
            half=1.0,
            row_bound=self.row_bound,
            rounds=self.paces.size,
            directions=self.directions,
            paces=self.paces,
        ).places(centered)

    def item_vectors(self) -> Floats:
        """Return the items' coordinates on the directions."""
        return self.directions

    def _design(self) -> Floats:
        return np.column_stack([np.ones(self.item_bias.size), self.directions])
