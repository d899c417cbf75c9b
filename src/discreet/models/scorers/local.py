"""Score from reports: participants by the collector's vectors, other users on their own device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, final

import numpy as np

from discreet.collect.estimate import Collected
from discreet.core.arrays import Floats, Indices
from discreet.core.rows import predict_cells
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.scorers.counts import COUNTS, CountedRatings, counted
from discreet.models.scorers.factors import RatingScorer, folded
from discreet.models.scorers.parts import ITEMS, Constant, Ids, Stored, StoredNumbers
from discreet.models.scorers.ranking import LinearScores

# A ridge that keeps biases at zero, for models without biases.
_PINNED = 1e9
_FROM_REPORTS = "computed from reports that were private before they were collected"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalScorer(CountedRatings):
    """Predictions for the users of the collection, from vectors learned from their reports.

    A participant, identified by id, gets the collector's vector, and the ratings in the given history are not
    used. Any other history is folded in on its user's own device (`device`), from true ratings that never
    leave it.
    """

    kind: ClassVar[str] = "local-ratings"
    stored: ClassVar[Mapping[str, Stored]] = {
        "people": Ids(source="public: who took part in the collection", count="people"),
        "user_vectors": StoredNumbers(source=_FROM_REPORTS, shape=("people", ("factors", 1))),
        "item_bias": StoredNumbers(source=_FROM_REPORTS, shape=(ITEMS,)),
        "item_factors": StoredNumbers(source=_FROM_REPORTS, shape=(ITEMS, "factors")),
        "ridge": replace(RatingScorer.stored["ridge"], source="computed from public constants and reports"),
        "popularity": COUNTS,
    }
    constants: ClassVar[Mapping[str, Constant]] = RatingScorer.constants

    people: Vocabulary
    user_vectors: Floats
    item_bias: Floats
    item_factors: Floats
    ridge: Floats
    mean: float
    count_power: float = 0.0
    decisions: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, people: Vocabulary, user_vectors: Floats, device: RatingScorer) -> Self:
        """Return the scorer that uses these vectors for participants and `device` for all others."""
        parts = {entry.name: getattr(device, entry.name) for entry in fields(device)}
        return cls(people=people, user_vectors=user_vectors, **parts)

    @property
    def device(self) -> RatingScorer:
        """Return the scorer that runs on a user's own device."""
        return RatingScorer(**{entry.name: getattr(self, entry.name) for entry in fields(RatingScorer)})

    def knows(self, user: object) -> bool:
        """Return whether this user took part in the collection."""
        return bool(self.people.index_of([user])[0] >= 0)

    def fold_in(self, histories: Interactions) -> Floats:
        """Return bias and factors: the collector's for participants, else from each history on its own."""
        known = self._places(histories.users)
        if (known >= 0).all():
            return self.user_vectors[known]
        vectors = self.device.fold_in(histories)
        vectors[known >= 0] = self.user_vectors[known[known >= 0]]
        return vectors

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return predicted ratings inside the scale."""
        return np.clip(self._unclipped(histories, rows, items), self.low, self.high)

    def linear(self, histories: Interactions, rows: Indices) -> LinearScores:
        """Return users' own vectors and the items' rows."""
        people, place = self._asked(histories, rows)
        return LinearScores(people[place], self._design(), self.mean + self.item_bias)

    def expected_stars(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return expected ratings as users read them."""
        return self.shown(self._unclipped(histories, rows, items))

    def shown(self, scores: Floats) -> Floats:
        """Return ratings inside the scale."""
        return self.device.shown(scores)

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        return self.device.item_vectors()

    def _unclipped(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        people, place = self._asked(histories, rows)
        cells: Floats = (
            self.mean + self.item_bias[items] + predict_cells(people, self._design(), place, items)
        )
        return cells

    def _asked(self, histories: Interactions, rows: Indices) -> tuple[Floats, Indices]:
        """Return vectors and each row's place among them.

        Who took part is asked of whole histories: some rows of users without IDs identify no user.
        """
        if histories.users == self.people:
            return self.user_vectors, rows
        return folded(self, histories, rows)

    def _places(self, users: Vocabulary) -> Indices:
        """Return each user's row in the collection, -1 for others; a row number alone identifies no user."""
        if users.is_positional and users != self.people:
            return np.full(len(users), -1)
        return self.people.index_of(users.series).astype(np.int64)

    def _design(self) -> Floats:
        return np.column_stack([np.ones(len(self.item_factors)), self.item_factors])


def factor_scorer(collected: Collected, people: Floats, items: Floats, ridge: float) -> LocalScorer:
    """Return the scorer of a model without biases that was fitted in units in which the scale is [0, 1].

    `ridge` is the ridge of a user's factors in fold-in on the device, in the same units.
    """
    low, width = collected.mechanism.low, collected.width
    size = people.shape[1]
    device = RatingScorer(
        mean=low,
        item_bias=np.zeros(len(items)),
        item_factors=width * items,
        ridge=np.append(_PINNED, np.full(size, width**2 * ridge)),
        low=low,
        high=collected.mechanism.high,
        **counted(collected.item_counts, collected.reports.n_users),
    )
    vectors = np.column_stack([np.zeros(len(people)), people])
    return LocalScorer.of(collected.reports.users, vectors, device)
