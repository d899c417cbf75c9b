"""Rank by what a user will interact with and then rate highly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np

from discreet.core.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.scorers.counts import DEVIATION, LIKING, RANKINGS, liking
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.interactions import BLENDED, PAIRED, InteractionScorer, PairsAndHistories
from discreet.models.scorers.log_chance import log_chance
from discreet.models.scorers.parts import (
    ITEMS,
    RELEASED,
    Constant,
    Notes,
    Stored,
    StoredNumber,
    StoredNumbers,
)
from discreet.models.scorers.ranking import Liking, Ranking
from discreet.models.scorers.released_histories import HISTORIES
from discreet.models.scorers.scorer import Scorer
from discreet.models.scorers.similarity import PLAIN, refuse_plain

_OF_CHOICE = ("ridge", "fading", "evenly", "length")
# The parts of both scorers, and what those of the second are called here.
_STARS = ("mean", "item_bias", "item_factors", "ridge", "low", "high")
_CHOICE = {
    "popularity": "popularity",
    "co_occurrences": "item_factors",
    **{f"choice_{name}": name for name in _OF_CHOICE},
    **{name: name for name in (*PAIRED, *BLENDED)},
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionsAndRatings(PairsAndHistories):
    """Ratings as in `RatingScorer`, and lists ordered by interaction and rating together.

    The score is the log-odds that the user interacts with an item (`InteractionScorer`) plus `liking` times
    the log-probability that they then rate it above their own usual rating.
    """

    kind: ClassVar[str] = "choice-and-stars"
    predicts_stars: ClassVar[bool] = True
    stored: ClassVar[Mapping[str, Stored]] = {
        **RatingScorer.stored,
        "popularity": InteractionScorer.stored["popularity"],
        "co_occurrences": StoredNumbers(source=RELEASED, shape=(ITEMS, "directions")),
        **PAIRED,
        **HISTORIES,
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "mean": StoredNumber(),
        "low": StoredNumber(),
        "high": StoredNumber(),
        "liking": LIKING,
        **{f"choice_{name}": InteractionScorer.constants[name] for name in _OF_CHOICE},
        **BLENDED,
        "decisions": Notes(),
    }

    mean: float
    item_bias: Floats
    item_factors: Floats
    ridge: Floats
    low: float
    high: float
    popularity: Floats
    co_occurrences: Floats
    liking: float
    choice_ridge: float
    choice_fading: float
    choice_evenly: float
    choice_length: float

    @classmethod
    def of(cls, stars: RatingScorer, choice: InteractionScorer, known: float, rated: float) -> Self:
        """Combine both scorers; ratings count by how well items' effects are `known`.

        They count less where a typical user has `rated` a large part of the catalog.
        """
        parts = {name: getattr(stars, name) for name in _STARS}
        parts |= {here: getattr(choice, name) for here, name in _CHOICE.items()}
        return cls(**parts, liking=liking(known, rated), decisions=stars.decisions)

    @property
    def stars(self) -> RatingScorer:
        """Return the part that predicts ratings."""
        return self.prepared("stars", lambda: RatingScorer(**{name: getattr(self, name) for name in _STARS}))

    @property
    def choice(self) -> InteractionScorer:
        """Return the part that predicts interactions."""
        return self.prepared(
            "choice",
            lambda: InteractionScorer(**{name: getattr(self, here) for here, name in _CHOICE.items()}),
        )

    def check(self) -> None:
        """Raise for pairs that do not fit together."""
        self.choice.check()

    @property
    def search_leaves_out(self) -> str:
        """Name the weights between items, if they count."""
        return self.choice.search_leaves_out

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each user's bias and factors, and their interaction embedding."""
        return np.column_stack([self.stars.fold_in(histories), self.choice.fold_in(histories)])

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return predicted ratings inside the scale."""
        return self.stars.predict(histories, rows, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return predicted ratings, not clipped: the order at the top of the scale is kept."""
        return self.stars.scores(histories, rows)

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the log-odds of interaction and the weighted log-probability of liking, added up."""
        choice = self.choice.scores(histories, rows)
        above = self.scores(histories, rows) - self._usual(histories, rows)[:, None]
        worth: Singles = (choice + self.liking * log_chance(above / self._deviation)).astype(np.float32)
        return worth

    def ranking(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Ranking | None:
        """Return the log-odds of interaction and the chance of liking, each as products."""
        if rank_by is not None and rank_by not in RANKINGS:
            return None
        stars = self.stars.linear(histories, rows)
        if rank_by == "stars":
            return Ranking(stars, None, stars, self.shown)
        liked = Liking(self.liking, stars, self._usual(histories, rows), self._deviation, "normal")
        choice, followed = self.choice.linear(histories, rows), self.choice.followed(histories, rows)
        return Ranking(choice, None if rank_by == "choice" else liked, stars, self.shown, followed)

    def worth_by(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Singles:
        """Order lists by "both" (default), "choice" (log-odds of interaction) or "stars" (ratings)."""
        if rank_by == "choice":
            return self.choice.scores(histories, rows)
        if rank_by == "stars":
            return self.scores(histories, rows)
        return Scorer.worth_by(self, histories, rows, None if rank_by == "both" else rank_by)

    def shown(self, scores: Floats) -> Floats:
        """Return ratings inside the scale."""
        return self.stars.shown(scores)

    def expected_stars(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return expected ratings as users read them."""
        return self.stars.expected_stars(histories, rows, items)

    @property
    def rankings(self) -> tuple[str, ...]:
        """Return what lists can be ordered by."""
        return RANKINGS

    @property
    def ranked_by(self) -> str:
        """Return what orders lists."""
        return f"{self.choice.ranked_by}, and expected stars" if self.liking else self.choice.ranked_by

    def score_parts(self, histories: Interactions, rows: Indices) -> dict[str, Floats]:
        """Return the parts of what a user would choose, and what expected stars add to it."""
        found = self.choice.score_parts(histories, rows)
        worth = self.worth(histories, rows).astype(np.float64)
        return {**found, "expected stars": worth - sum(found.values())}

    def known_by(self) -> Floats:
        """Return the released counts: the places of items are shrunk by the noise over them."""
        return self.popularity

    def item_vectors(self) -> Floats:
        """Return items' factors beyond quality and popularity, by how much users differ in them."""
        if not self.co_occurrences.shape[1]:
            refuse_plain(self.item_bias, self.item_factors)
        scaled = self.item_factors / np.sqrt(self.ridge[1:])
        return np.column_stack([scaled[:, PLAIN:], self.co_occurrences])

    def _usual(self, histories: Interactions, rows: Indices) -> Floats:
        """Return the mean rating of each of these users, shrunk by one additional average rating."""
        people = histories if histories.are_all(rows) else histories.select_users(rows)
        counts = np.diff(people.indptr)
        sums = np.bincount(people.rows(), weights=people.values, minlength=rows.size)
        usual: Floats = (sums + self.mean) / (counts + 1)
        return usual

    @property
    def _deviation(self) -> float:
        return max(DEVIATION * (self.high - self.low) / 2, 1e-150)
