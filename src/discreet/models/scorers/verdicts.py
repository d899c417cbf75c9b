"""Score verdicts from a completed matrix: rows of its own people, and anybody else from their own history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, final, get_args

import numpy as np

from discreet.arrays import Floats, Indices, Singles
from discreet.checks import DataError
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.one_bit.verdicts import verdicts_of
from discreet.models.scorers.counts import COUNTS, LIKING, RANKINGS, by_counts, parts_by_counts
from discreet.models.scorers.parts import ITEMS, RELEASED, Constant, Ids, Number, Numbers, Stored, Word
from discreet.models.scorers.scorer import Scorer
from discreet.solvers.low_rank.losses import Link, OneBitLoss, curvature_at_0
from discreet.solvers.rows import predict_cells

_NEWTON_STEPS = 12


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitScorer(Scorer):
    """Predict by `left[person] . right[item]`: above 0 is liked.

    The people the matrix was completed for have a row; which ones they are is public in this frame. A
    newcomer's row is the most likely one given their own verdicts and what rows usually look like.
    """

    kind: ClassVar[str] = "one-bit"
    base_part: ClassVar[str] = "item mean"
    stored: ClassVar[Mapping[str, Stored]] = {
        "users": Ids(source="public: the people the promise speaks of", count="people"),
        "left": Numbers(source=RELEASED, shape=("people", "factors")),
        "right": Numbers(source=RELEASED, shape=(ITEMS, "factors")),
        "popularity": COUNTS,
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "above": Number(optional=True),
        "bound": Number(least=0.0),
        "link": Word(allowed=get_args(Link)),
        "scale": Number(least=1e-9),
        "liking": LIKING,
    }

    users: Vocabulary
    left: Floats
    right: Floats
    bound: float
    link: Link
    scale: float
    above: float | None
    popularity: Floats = field(default_factory=lambda: np.zeros(0))
    liking: float = 0.0

    @property
    def rankings(self) -> tuple[str, ...]:
        """Return what lists can be ordered by; without counts there is no choice."""
        return RANKINGS if self.popularity.size else ()

    @property
    def ranked_by(self) -> str:
        """Say what orders lists, and say so if that is the odds of liking alone."""
        if self.popularity.size:
            return "how often items are chosen, and the odds of liking"
        return "the odds of liking alone, for this model has no counts: poor for lists"

    def knows(self, user: object) -> bool:
        """Tell whether this person has a row."""
        return bool(self.users.index_of([user])[0] >= 0)

    def fold_in(self, histories: Interactions) -> Floats:
        """Return the row of everybody who has one, and the most likely row of each newcomer."""
        known = self.users.index_of(histories.users.series)
        vectors = self.left[np.maximum(known, 0)]
        for newcomer in np.flatnonzero(known < 0):
            vectors[newcomer] = self._most_likely(histories, int(newcomer))
        return vectors

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return signed scores of cells, none beyond the bound."""
        people, place = self._asked(histories, rows)
        return np.clip(predict_cells(people, self.right, place, items), -self.bound, self.bound)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return signed scores of all items, not bounded: the order at the top is kept."""
        people, place = self._asked(histories, rows)
        return (people[place] @ self.right.T).astype(np.float32)

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the logarithm of the counts, plus `liking` times that of the chance of being liked."""
        scores = self.scores(histories, rows)
        return (
            by_counts(self.popularity, self.liking, scores / self.scale) if self.popularity.size else scores
        )

    def worth_by(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Singles:
        """Return what lists are ordered by: "both" (as usual), "choice" (counts) or "stars" (liking)."""
        if rank_by in self.rankings:
            if rank_by == "choice":
                return by_counts(self.popularity, 0.0, np.zeros((rows.size, self.popularity.size)))
            return self.scores(histories, rows) if rank_by == "stars" else self.worth(histories, rows)
        return Scorer.worth_by(self, histories, rows, rank_by)

    def score_parts(self, histories: Interactions, rows: Indices) -> dict[str, Floats]:
        """Return popularity, and what the odds of liking add to it."""
        return parts_by_counts(self, self.popularity, "odds of liking", histories, rows)

    def item_vectors(self) -> Floats:
        """Return the right factor."""
        return self.right if self.right.shape[1] else Scorer.item_vectors(self)

    def _asked(self, histories: Interactions, rows: Indices) -> tuple[Floats, Indices]:
        asked, place = np.unique(rows, return_inverse=True)
        return self.fold_in(histories.select_users(asked)), place

    def _most_likely(self, histories: Interactions, row: int) -> Floats:
        """Maximize the likelihood of one person's own verdicts under a normal prior with the rows' spread."""
        span = slice(int(histories.indptr[row]), int(histories.indptr[row + 1]))
        design = self.right[histories.items[span]]
        if self.above is None:
            raise DataError("The model does not say where a like begins, so that it cannot place newcomers.")
        verdicts = verdicts_of(histories, self.above)[span]
        loss = OneBitLoss(verdicts=verdicts, link=self.link, scale=self.scale)
        ridge = 1 / np.maximum(np.mean(self.left**2, axis=0), 1e-12)
        # The curvature at 0 is the largest for the logistic link and close to it for the probit: steps are
        # safe.
        curvature = 2 * curvature_at_0(self.link, self.scale) * design.T @ design + np.diag(ridge)
        vector = np.zeros(self.right.shape[1])
        for _ in range(_NEWTON_STEPS if verdicts.size else 0):
            slope = design.T @ loss.gradient(design @ vector) + ridge * vector
            try:
                vector = vector - np.linalg.solve(curvature, slope)
            except np.linalg.LinAlgError as error:
                raise DataError("The model's factors are too far apart to place anybody by them.") from error
        return vector
