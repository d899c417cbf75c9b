"""Score items for a person by Bayes' rule: how popular an item is, and how much its crowd is like them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, final

import numpy as np

from discreet.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.scorers.factors import folded
from discreet.models.scorers.parts import ITEMS, RELEASED, Constant, Notes, Number, Numbers, Stored
from discreet.models.scorers.scorer import Scorer
from discreet.solvers.rows import Rows, multiply, predict_cells

# A person's place is pulled to the middle as if it had this variance against what one choice tells.
_RIDGE = 0.25
# The r-th choice from the latest weighs (1 + r) to the minus this, where times are known.
_FADING = 0.65


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClickScorer(Scorer):
    """Score by `item_bias + item_factors . own place`.

    Those who choose an item stand around `item_factors` with unit variance, so an item's log-odds are the
    logarithm of its popularity, minus half its squared length, plus the product with the person's place.
    That place comes from the items they chose, the later ones counting more where times are known.
    """

    kind: ClassVar[str] = "clicks"
    needs_ratings: ClassVar[bool] = False
    stored: ClassVar[Mapping[str, Stored]] = {
        # A logarithm is taken of it.
        "popularity": Numbers(source=RELEASED, shape=(ITEMS,), least=1e-150),
        "item_factors": Numbers(source=RELEASED, shape=(ITEMS, "factors")),
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "ridge": Number(least=1e-9),
        "fading": Number(least=0.0, most=100.0),
        "decisions": Notes(),
    }

    popularity: Floats
    item_factors: Floats
    ridge: float = _RIDGE
    fading: float = _FADING
    decisions: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, popularity: Floats, item_factors: Floats, decisions: Mapping[str, Any]) -> Self:
        """Return the scorer with the usual constants."""
        return cls(popularity=popularity, item_factors=item_factors, decisions=decisions)

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each person's place; ratings play no role, times do if the histories have them."""
        share = self.popularity / self.popularity.sum()
        centered = self.item_factors - share @ self.item_factors
        weights = recency(histories, self.fading)
        chosen = Rows(histories.indptr, histories.items, weights.astype(np.float32))
        heard = np.bincount(histories.rows(), weights=weights, minlength=histories.n_users)
        place: Floats = multiply(chosen, centered)
        place /= heard[:, None] * (share @ centered**2) + self.ridge
        return place

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single cells."""
        people, where = folded(self, histories, rows)
        scores: Floats = self._item_bias()[items] + predict_cells(people, self.item_factors, where, items)
        return scores

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        people, where = folded(self, histories, rows)
        return (people[where] @ self.item_factors.T + self._item_bias()).astype(np.float32)

    def explain(self) -> dict[str, Any]:
        """Return the rule's inputs and what it chose."""
        return dict(self.decisions)

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        return self.item_factors if self.item_factors.shape[1] else Scorer.item_vectors(self)

    def _item_bias(self) -> Floats:
        bias: Floats = np.log(self.popularity) - (self.item_factors**2).sum(axis=1) / 2
        return bias


def recency(histories: Interactions, fading: float) -> Floats:
    """Return each choice's weight by its place in the person's own order from the latest; 1 without times."""
    if histories.times is None:
        return np.ones(histories.n_ratings)
    rows = histories.rows()
    standing = np.arange(histories.n_ratings) if histories.listed is None else histories.listed
    order = np.lexsort((standing, histories.times, rows))
    later = np.empty(histories.n_ratings)
    later[order] = histories.indptr[1:][rows[order]] - 1 - np.arange(histories.n_ratings)
    weights: Floats = (1 + later) ** -fading
    return weights
