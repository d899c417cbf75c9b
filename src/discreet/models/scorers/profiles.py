"""Score by profiles of users: a log-linear model of popularity and factors, or profiles that were trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy.sparse import csr_matrix

from discreet.core import Floats, Indices, Singles, predict_cells
from discreet.data import Interactions, Vocabulary
from discreet.models.scorers.ranking import LinearScores, Ranking
from discreet.models.scorers.scorer import (
    ITEMS,
    RELEASED,
    Constant,
    Ids,
    Scorer,
    Stored,
    StoredNumber,
    StoredNumbers,
)
from discreet.statistics import Profiles, rows_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileScorer(Scorer):
    """Scores `item_bias + item_factors . (profile - origin)`.

    The profile is the sum of `profile_vectors` over the user's items, normalized by their size, centered,
    scaled and shortened to a public length. It depends on released numbers and the user's own row only.
    """

    kind: ClassVar[str] = "profiles"
    needs_ratings: ClassVar[bool] = False
    stored: ClassVar[Mapping[str, Stored]] = {
        "item_bias": StoredNumbers(source=RELEASED, shape=(ITEMS,)),
        "item_factors": StoredNumbers(source=RELEASED, shape=(ITEMS, "factors")),
        "origin": StoredNumbers(source=RELEASED, shape=("factors",)),
        "profile_vectors": StoredNumbers(source=RELEASED, shape=(ITEMS, "factors")),
        "profile_squares": StoredNumbers(source=RELEASED, shape=(ITEMS,), least=0.0),
        "growth": StoredNumbers(source=RELEASED, shape=("factors",), least=0.0, may_be_empty=True),
        "center": StoredNumbers(source=RELEASED, shape=("factors",)),
        "scale": StoredNumbers(source=RELEASED, shape=("factors",)),
    }
    constants: ClassVar[Mapping[str, Constant]] = {"clip": StoredNumber(least=0.0)}
    inside: ClassVar[Mapping[str, tuple[str, str]]] = {
        "profile_vectors": ("profiles", "vectors"),
        "profile_squares": ("profiles", "squares"),
        **{name: ("profiles", name) for name in ("growth", "center", "scale", "clip")},
    }
    made_of: ClassVar[Mapping[str, type]] = {"profiles": Profiles}

    item_bias: Floats
    item_factors: Floats
    origin: Floats
    #: The map from a user's items to a profile.
    profiles: Profiles

    def _vectors(self, histories: Interactions) -> Floats:
        """Return each user's profile relative to the origin; zeros for users whose items have no vectors."""
        places = self.profiles.places(rows_of(histories))
        silent = ~places.any(axis=1)
        places -= self.origin
        places[silent] = 0.0
        return places

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        people, where = self.folded(histories, rows)
        if not self.item_factors.shape[1]:
            return self.item_bias[items]
        return self.item_bias[items] + predict_cells(people, self.item_factors, where, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        return self._linear(histories, rows).all()

    def ranking(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Ranking | None:
        """Return the scores as products."""
        return None if rank_by is not None else Ranking(self._linear(histories, rows))

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        return self.item_factors if self.item_factors.shape[1] else Scorer.item_vectors(self)

    def _linear(self, histories: Interactions, rows: Indices) -> LinearScores:
        people, where = self.folded(histories, rows)
        return LinearScores(people[where], self.item_factors, self.item_bias)


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

    def _vectors(self, histories: Interactions) -> Floats:
        """Return the stored profile of each user who has one, and the best fit to their row otherwise."""
        known = np.full(histories.n_users, -1)
        if len(self.profiled):
            known = self.profiled.index_of(histories.users.series)
        profiles = self._fitted(histories)
        profiles[known >= 0] = self.user_factors[known[known >= 0]]
        return profiles

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        people, place = self.folded(histories, rows)
        return predict_cells(people, self.item_factors, place, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        people, place = self.folded(histories, rows)
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
