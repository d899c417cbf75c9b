"""Score from reports: participants by the collector's vectors, other users on their own device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self, final

import numpy as np

from discreet.collect.estimate import Collected
from discreet.core import Floats, Indices
from discreet.data import Interactions, Vocabulary
from discreet.models.scorers.factors import COUNTS, FactorRatings, RatingScorer, counted
from discreet.models.scorers.scorer import ITEMS, Constant, Ids, Stored, StoredNumbers

#: A ridge so large that a coordinate becomes zero: that of biases, in models without biases.
PINNED = 1e9
_FROM_REPORTS = "computed from reports that were private before they were collected"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalScorer(FactorRatings):
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
    count_power: float = 0.0

    @classmethod
    def of(cls, people: Vocabulary, user_vectors: Floats, device: RatingScorer) -> Self:
        """Return the scorer that uses these vectors for participants and `device` for all others."""
        parts = {entry.name: getattr(device, entry.name) for entry in fields(device)}
        return cls(people=people, user_vectors=user_vectors, **parts)

    @property
    def device(self) -> RatingScorer:
        """Return the scorer that runs on a user's own device."""
        return self.prepared(
            "device",
            lambda: RatingScorer(**{entry.name: getattr(self, entry.name) for entry in fields(RatingScorer)}),
        )

    def _vectors(self, histories: Interactions) -> Floats:
        """Return bias and factors: the collector's for participants, else from each history on its own."""
        known = self._places(histories.users)
        if (known >= 0).all():
            return self.user_vectors[known]
        vectors = self.device._vectors(histories)
        vectors[known >= 0] = self.user_vectors[known[known >= 0]]
        return vectors

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        return self.device.item_vectors()

    def _people(self, histories: Interactions, rows: Indices) -> tuple[Floats, Indices]:
        """Return vectors and each row's place among them.

        Who took part is asked of whole histories: some rows of users without IDs identify no user.
        """
        if histories.users == self.people:
            return self.user_vectors, rows
        return self.folded(histories, rows)

    def _places(self, users: Vocabulary) -> Indices:
        """Return each user's row in the collection, -1 for others; a row number alone identifies no user."""
        if users.is_positional and users != self.people:
            return np.full(len(users), -1)
        return self.people.index_of(users.series).astype(np.int64)


def factor_scorer(
    collected: Collected, people: Floats, items: Floats, ridge: float | Floats, *, origin: float, unit: float
) -> LocalScorer:
    """Return the scorer of a model without biases: `origin` plus `unit` times both factors.

    `ridge` belongs to a user's factors in fold-in on the device. It pulls them to those of the mean
    participant, so that a user with few ratings gets this participant's predictions.
    """
    usual = people.mean(axis=0) if len(people) else np.zeros(people.shape[1])
    device = RatingScorer(
        mean=origin,
        item_bias=unit * (items @ usual),
        item_factors=unit * items,
        ridge=np.append(PINNED, np.full(people.shape[1], ridge)),
        low=collected.mechanism.low,
        high=collected.mechanism.high,
        **counted(collected.item_counts, collected.reports.n_users),
    )
    vectors = np.column_stack([np.zeros(len(people)), people - usual])
    return LocalScorer.of(collected.reports.users, vectors, device)
