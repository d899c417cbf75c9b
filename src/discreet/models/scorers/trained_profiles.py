"""Score by profiles of users and items that were trained without a guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy.sparse import csr_matrix

from discreet.core.arrays import Floats, Indices, Singles
from discreet.core.rows import predict_cells
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.scorers.factors import folded
from discreet.models.scorers.parts import ITEMS, Constant, Ids, Stored, StoredNumber, StoredNumbers
from discreet.models.scorers.scorer import Scorer

_TRAINED = "trained without a guarantee: the label states NOT PRIVATE"
_LARGEST = 1e9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedProfileScorer(Scorer):
    """Scores `item_factors . profile`.

    A user with stored factors has these as profile. The profile of any other user minimizes the loss over
    their own row, with `profile_factors` as items: chosen items weigh 1, all others `alpha0`.
    """

    kind: ClassVar[str] = "trained-profiles"
    needs_ratings: ClassVar[bool] = False
    stored: ClassVar[Mapping[str, Stored]] = {
        "profiled": Ids(source="public: users with stored profiles", count="profiled"),
        "user_factors": StoredNumbers(
            source=_TRAINED, shape=("profiled", "factors"), least=-_LARGEST, most=_LARGEST
        ),
        "item_factors": StoredNumbers(
            source=_TRAINED, shape=(ITEMS, "factors"), least=-_LARGEST, most=_LARGEST
        ),
        "profile_factors": StoredNumbers(
            source=_TRAINED, shape=(ITEMS, "factors"), least=-_LARGEST, most=_LARGEST
        ),
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "alpha0": StoredNumber(least=0.0, most=1.0),
        "regularization": StoredNumber(least=1e-12, most=_LARGEST),
    }

    profiled: Vocabulary
    user_factors: Floats
    item_factors: Floats
    profile_factors: Floats
    alpha0: float
    regularization: float

    def fold_in(self, histories: Interactions) -> Floats:
        """Return the stored profile of each user who has one, and the best fit to their row otherwise."""
        known = np.full(histories.n_users, -1)
        if len(self.profiled):
            known = self.profiled.index_of(histories.users.series)
        profiles = self._fitted(histories)
        profiles[known >= 0] = self.user_factors[known[known >= 0]]
        return profiles

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        people, place = folded(self, histories, rows)
        return predict_cells(people, self.item_factors, place, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        people, place = folded(self, histories, rows)
        return (people[place] @ self.item_factors.T).astype(np.float32)

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        return self.item_factors

    def _fitted(self, histories: Interactions) -> Floats:
        """Return each user's minimizer: one small system per user, or one for all if alpha0 is 1."""
        others, size = self.profile_factors, self.profile_factors.shape[1]
        shape = (histories.n_users, len(others))
        rows = csr_matrix((np.ones(histories.n_ratings), histories.items, histories.indptr), shape=shape)
        linear: Floats = np.asarray(rows @ others)
        shared = self.alpha0 * (others.T @ others + self.regularization * len(others) * np.eye(size))
        if self.alpha0 == 1:
            return np.asarray(np.linalg.solve(shared, linear.T).T)
        products = (others[:, :, None] * others[:, None, :]).reshape(len(others), -1)
        own = np.asarray(rows @ products).reshape(-1, size, size)
        ridge = self.regularization * np.diff(rows.indptr)[:, None, None] * np.eye(size)
        least = 1e-12 * np.eye(size)
        found = np.linalg.solve(shared + (1 - self.alpha0) * (own + ridge) + least, linear[:, :, None])
        return np.asarray(found[:, :, 0])
