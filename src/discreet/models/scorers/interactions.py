"""Score items by Bayes' rule: how popular an item is, and how similar its users are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, final

import numpy as np

from discreet.core.arrays import Floats, Indices, Singles
from discreet.core.checks import DiscreetError
from discreet.core.rows import Rows
from discreet.data.interactions import Interactions
from discreet.models.scorers.factors import folded
from discreet.models.scorers.parts import (
    ITEMS,
    RELEASED,
    Constant,
    Notes,
    Stored,
    StoredNumber,
    StoredNumbers,
)
from discreet.models.scorers.ranking import LinearScores, Ranking
from discreet.models.scorers.released_histories import HISTORIES
from discreet.models.scorers.scorer import Scorer
from discreet.models.user_factorization import constants as tuned
from discreet.solvers.few_rows import products, weighted_sums


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionScorer(Scorer):
    """Score by `item_bias + item_factors . own embedding`.

    The embeddings of an item's users are modeled as normal around `item_factors` with unit variance. So an
    item's log-odds are the logarithm of its popularity, minus a part of its squared length, plus the product
    with the user's embedding. That embedding comes from the user's items; later ones count more where times
    are known.
    """

    kind: ClassVar[str] = "clicks"
    needs_ratings: ClassVar[bool] = False
    stored: ClassVar[Mapping[str, Stored]] = {
        # A logarithm is taken of it.
        "popularity": StoredNumbers(source=RELEASED, shape=(ITEMS,), least=1e-150),
        "item_factors": StoredNumbers(source=RELEASED, shape=(ITEMS, "factors")),
        **HISTORIES,
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "ridge": StoredNumber(least=1e-9),
        "fading": StoredNumber(least=0.0, most=100.0),
        "evenly": StoredNumber(least=0.0, most=1.0),
        "length": StoredNumber(least=0.0, most=10.0),
        "decisions": Notes(),
    }

    popularity: Floats
    item_factors: Floats
    # Files of the first version have only the next two constants; the defaults of the others are theirs.
    ridge: float
    fading: float
    evenly: float = 0.0
    length: float = 0.5
    decisions: Mapping[str, Any] = field(default_factory=dict)
    history_lengths: Floats = field(default_factory=lambda: np.zeros(0))
    history_order: Floats = field(default_factory=lambda: np.zeros(0))
    rating_levels: Floats = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, popularity: Floats, item_factors: Floats, decisions: Mapping[str, Any]) -> Self:
        """Return the scorer with the usual constants."""
        return cls(
            popularity=popularity,
            item_factors=item_factors,
            ridge=tuned.LIST_RIDGE,
            fading=tuned.LIST_FADING,
            evenly=tuned.LIST_EVENLY,
            length=tuned.LIST_LENGTH,
            decisions=decisions,
        )

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each user's embedding, from items and (if the histories have them) times, not ratings."""
        share = self.popularity / self.popularity.sum()
        centered = self.item_factors - share @ self.item_factors
        weights = recency(histories, self.fading, self.evenly)
        chosen = Rows(histories.indptr, histories.items, weights.astype(np.float32))
        counted = np.bincount(histories.rows(), weights=weights, minlength=histories.n_users)
        # In the eigenbasis the problems of all users are diagonal.
        spread, turn = np.linalg.eigh((centered * share[:, None]).T @ centered)
        place: Floats = weighted_sums(chosen, centered @ turn)
        place /= counted[:, None] * np.maximum(spread, 0.0) + self.ridge
        turned: Floats = place @ turn.T
        return turned

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        people, where = folded(self, histories, rows)
        scores: Floats = self.item_bias()[items] + products(people, self.item_factors, where, items)
        return scores

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        return self.linear(histories, rows).all()

    def linear(self, histories: Interactions, rows: Indices) -> LinearScores:
        """Return what the scores of these people are products of."""
        people, where = folded(self, histories, rows)
        return LinearScores(people[where], self.item_factors, self.item_bias())

    def ranking(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Ranking | None:
        """Return the scores as products."""
        return None if rank_by is not None else Ranking(self.linear(histories, rows))

    def search_parts(self) -> tuple[Floats, Floats]:
        """Return the item factors, and biases by popularity."""
        return self.item_factors, self.item_bias()

    def explain(self) -> dict[str, Any]:
        """Return the decisions of the fit and their inputs."""
        return dict(self.decisions)

    def known_by(self) -> Floats:
        """Return the released counts: the places of items are shrunk by the noise over them."""
        return self.popularity

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        if not self.item_factors.shape[1]:
            raise DiscreetError(
                "This model found no latent factors above the noise, only how popular items are, so it "
                "cannot say which are similar. More people or a larger epsilon would help."
            )
        return self.item_factors

    def item_bias(self) -> Floats:
        """Return the score of each item for a user at the origin."""
        bias: Floats = np.log(self.popularity) - self.length * (self.item_factors**2).sum(axis=1)
        return bias


def recency(histories: Interactions, fading: float, evenly: float = 0.0) -> Floats:
    """Return each interaction's weight by its rank from the user's latest.

    Interactions at one time share their weights evenly, in whatever order they are listed. Without times each
    of a user's n interactions has weight n to the minus `evenly`.
    """
    rows = histories.rows()
    if histories.times is None:
        lengths = np.maximum(np.diff(histories.indptr), 1)
        return (lengths.astype(np.float64) ** -evenly)[rows]
    order = np.lexsort((histories.times, rows))
    people, times = rows[order], histories.times[order]
    later = histories.indptr[1:][people] - 1 - np.arange(people.size)
    first = np.ones(people.size, dtype=bool)
    first[1:] = (people[1:] != people[:-1]) | (times[1:] != times[:-1])
    group = np.cumsum(first) - 1
    shared = np.bincount(group, weights=(1 + later) ** -fading) / np.bincount(group)
    weights = np.empty(people.size)
    weights[order] = shared[group]
    return weights
