"""Score with item vectors that are known to be unsure: a person's vector leans less on items rated rarely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from discreet.arrays import Floats, Singles
from discreet.checks import DataError
from discreet.contributions.blocks import rows_of
from discreet.data.interactions import Interactions
from discreet.models.scorers.counts import COUNTS
from discreet.models.scorers.factors import LinearRatings
from discreet.models.scorers.parts import ITEMS, RELEASED, Constant, Notes, Numbers, Stored
from discreet.models.scorers.scorer import Scorer
from discreet.solvers.bayesian_als import Beliefs, believe, lines_of, packed_size

# Beyond this, squares summed over a history could overflow in single precision.
_LARGEST = 1e12


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnsureRatingScorer(LinearRatings):
    """Predict `mean + item bias + own bias + item factors . own factors`, clipped to the scale.

    `item_spreads` holds, for each item, the lower triangle of the covariance of its bias and factors: what
    is not known of them counts in a person's own problem like a ridge, beside `ridge` (the bias's first).
    """

    kind: ClassVar[str] = "unsure-ratings"
    stored: ClassVar[Mapping[str, Stored]] = {
        "item_bias": Numbers(source=RELEASED, shape=(ITEMS,), least=-_LARGEST, most=_LARGEST),
        "item_factors": Numbers(source=RELEASED, shape=(ITEMS, "factors"), least=-_LARGEST, most=_LARGEST),
        "item_spreads": Numbers(
            source=RELEASED, shape=(ITEMS, "pairs"), dtype=np.float32, least=-_LARGEST, most=_LARGEST
        ),
        "ridge": Numbers(source=RELEASED, shape=(("factors", 1),), least=1e-12, most=_LARGEST),
        "popularity": COUNTS,
    }
    constants: ClassVar[Mapping[str, Constant]] = {**LinearRatings.constants, "decisions": Notes()}

    item_factors: Floats
    item_spreads: Singles
    ridge: Floats
    decisions: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse spreads of another number of factors."""
        if self.item_spreads.shape[1] != packed_size(self.ridge.size):
            raise DataError("The shape of item_spreads does not fit the other parts.")

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each person's bias and factors."""
        own = rows_of(histories)
        rated, columns = np.unique(own.columns, return_inverse=True)
        known = Beliefs(
            mean=self.mean,
            lines=lines_of(self.item_bias[rated], self.item_factors[rated], self.item_spreads[rated]),
            people=np.diag(self.ridge),
            items=np.diag(self.ridge),
            noise=1.0,
        )
        lines = believe(own._replace(columns=columns.astype(np.int32)), 0, own.n_rows, known)
        return np.delete(lines[:, : self.ridge.size + 1], 1, axis=1).astype(np.float64)

    def explain(self) -> dict[str, Any]:
        """Return what the fit found."""
        return dict(self.decisions)

    def item_vectors(self) -> Floats:
        """Return the item factors; along each of them people differ alike."""
        return self.item_factors if self.item_factors.shape[1] else Scorer.item_vectors(self)

    def _design(self) -> Floats:
        return np.column_stack([np.ones(self.item_bias.size), self.item_factors])
