"""Score with item vectors: a user's vector is one ridge problem over that user's own row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.errors import MalformedPart
from discreet.models.scorers.counts import COUNTS, LIKING, CountedRatings
from discreet.models.scorers.parts import (
    ITEMS,
    RELEASED,
    Constant,
    Notes,
    Stored,
    StoredNumber,
    StoredNumbers,
)
from discreet.models.scorers.ranking import LinearScores
from discreet.models.scorers.scorer import Scorer
from discreet.models.scorers.similarity import refuse_plain
from discreet.solvers.few_rows import FEW, products, ridge_vectors
from discreet.statistics.statistic import rows_of

# Shown ratings are compressed smoothly near the ends of the scale, within about this fraction of it.
_SOFTNESS = 0.05


def folded(scorer: Scorer, histories: Interactions, rows: Indices) -> tuple[Floats, Indices]:
    """Return the vectors of the users in `rows`, each computed once, and the index of each row's vector.

    Vectors of a few users are kept with their histories: one answer needs them several times.
    """
    place = rows
    if not histories.are_all(rows):
        # Marks need no sorting, which takes longer than the products of many pairs.
        marked = np.zeros(histories.n_users, dtype=bool)
        marked[rows] = True
        asked, place = np.flatnonzero(marked), (np.cumsum(marked) - 1)[rows]
        if asked.size < histories.n_users:
            histories = histories.select_users(asked)
    if histories.n_users > FEW:
        return scorer.fold_in(histories), place
    by, vectors = histories.kept.get("folded", (None, None))
    if by is not scorer or vectors is None:
        vectors = scorer.fold_in(histories)
        histories.kept["folded"] = scorer, vectors
    return vectors, place


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearRatings(CountedRatings):
    """Ratings `mean + item bias + item row . own vector`, clipped to the scale."""

    constants: ClassVar[Mapping[str, Constant]] = {
        "mean": StoredNumber(),
        "low": StoredNumber(),
        "high": StoredNumber(),
        "liking": LIKING,
    }

    mean: float
    item_bias: Floats

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return predicted ratings inside the scale."""
        return np.clip(self.unclipped(histories, rows, items), self.low, self.high)

    def unclipped(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return predicted ratings, also beyond the ends of the scale."""
        people, place = self._people(histories, rows)
        return LinearScores(people, self._design(), self._offsets()).cells(place, items)

    def linear(self, histories: Interactions, rows: Indices) -> LinearScores:
        """Return users' own vectors and the items' rows."""
        people, place = self._people(histories, rows)
        return LinearScores(people[place], self._design(), self._offsets())

    def _offsets(self) -> Floats:
        """Return what each item's ratings are without a user's own vector."""
        return self.prepared("offsets", lambda: self.mean + self.item_bias)

    def expected_stars(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return expected ratings as users read them."""
        return self.shown(self.unclipped(histories, rows, items))

    def shown(self, scores: Floats) -> Floats:
        """Return ratings inside the scale; a soft clip keeps very good items apart."""
        softness = max((self.high - self.low) * _SOFTNESS, 1e-150)
        above = softness * np.logaddexp(0, (scores - self.high) / softness)
        below = softness * np.logaddexp(0, (self.low - scores) / softness)
        return np.clip(scores - above + below, self.low, self.high)

    def _people(self, histories: Interactions, rows: Indices) -> tuple[Floats, Indices]:
        """Return vectors of users, and the place of each row's vector among them."""
        return folded(self, histories, rows)

    @abstractmethod
    def _design(self) -> Floats:
        """Return the row of each item that a user's own vector is multiplied with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorRatings(LinearRatings):
    """Ratings `mean + item bias + own bias + item factors . own factors`, clipped to the scale.

    `ridge` has the strength of the own bias's ridge first, then one for each factor.
    """

    item_factors: Floats
    ridge: Floats
    decisions: Mapping[str, Any] = field(default_factory=dict)

    def _design(self) -> Floats:
        return self.prepared(
            "design", lambda: np.column_stack([np.ones(self.item_bias.size), self.item_factors])
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RatingScorer(FactorRatings):
    """Ratings of users whose bias and factors minimize the squared error over their ratings plus a ridge.

    With `count_power` above 0 the ridge grows with that power of the user's number of ratings.
    """

    kind: ClassVar[str] = "ratings"
    stored: ClassVar[Mapping[str, Stored]] = {
        "item_bias": StoredNumbers(source=RELEASED, shape=(ITEMS,)),
        "item_factors": StoredNumbers(source=RELEASED, shape=(ITEMS, "factors")),
        "ridge": StoredNumbers(
            source="computed from public constants and noisy releases only",
            shape=(("factors", 1),),
            least=0.0,
        ),
        "popularity": COUNTS,
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        **LinearRatings.constants,
        "count_power": StoredNumber(least=0.0, most=10.0),
        "decisions": Notes(),
    }

    count_power: float = 0.0

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each user's bias and factors."""
        own = rows_of(histories)
        scales = np.maximum(own.row_weights(), 1) ** self.count_power if self.count_power else None
        return ridge_vectors(own, self._design(), ridge=self.ridge, scales=scales, offsets=self._offsets())

    def known_by(self) -> Floats | None:
        """Return the released counts, where there are any: factors are shrunk by the noise over them."""
        return self.popularity if self.popularity.size else None

    def item_vectors(self) -> Floats:
        """Return the item factors, each in units of the users' spread along it."""
        if not self.item_factors.shape[1]:
            return Scorer.item_vectors(self)
        refuse_plain(self.item_bias, self.item_factors)
        return self.item_factors / np.sqrt(self.ridge[1:])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitFactorScorer(Scorer):
    """Scores `item factors . own factors`. A user's factors come from their interactions."""

    kind: ClassVar[str] = "implicit-factors"
    needs_ratings: ClassVar[bool] = False
    stored: ClassVar[Mapping[str, Stored]] = {
        "item_factors": StoredNumbers(
            source=RELEASED, shape=(ITEMS, "factors"), dtype=np.float32, least=-1e15, most=1e15
        )
    }
    constants: ClassVar[Mapping[str, Constant]] = {
        "alpha": StoredNumber(least=0.0, most=1e15),
        "regularization": StoredNumber(least=0.0, most=1e15),
    }

    item_factors: npt.NDArray[np.float32]
    alpha: float
    regularization: float

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each user's factors; only which items they interacted with counts."""
        from discreet.solvers.als import Confidence, fold_in_implicit

        chosen = rows_of(histories)._replace(values=np.ones(histories.n_ratings, dtype=np.float32))
        confidence = Confidence(alpha=self.alpha, regularization=self.regularization)
        return fold_in_implicit(chosen, self.item_factors, confidence).astype(np.float64)

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        people, place = folded(self, histories, rows)
        return products(people, self.item_factors.astype(np.float64), place, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        people, place = folded(self, histories, rows)
        return people[place].astype(np.float32) @ self.item_factors.T

    def search_parts(self) -> tuple[Floats, Floats]:
        """Return the item factors; biases don't exist."""
        return self.item_vectors(), np.zeros(len(self.item_factors))

    def explain(self) -> dict[str, Any]:
        """Return the settings, given or found."""
        return {"factors": self.item_factors.shape[1], **self.settings()}

    def item_vectors(self) -> Floats:
        """Return the item factors."""
        return self.item_factors.astype(np.float64)


# Beyond this, squares summed over a history could overflow in single precision.
_LARGEST = 1e12


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnsureRatingScorer(FactorRatings):
    """Ratings from item factors that are known up to a covariance.

    `item_spreads` has, for each item, the lower triangle of the covariance of its bias and factors. This
    uncertainty acts like a ridge in a user's own problem, in addition to `ridge` (the bias's first).
    """

    kind: ClassVar[str] = "unsure-ratings"
    stored: ClassVar[Mapping[str, Stored]] = {
        "item_bias": StoredNumbers(source=RELEASED, shape=(ITEMS,), least=-_LARGEST, most=_LARGEST),
        "item_factors": StoredNumbers(
            source=RELEASED, shape=(ITEMS, "factors"), least=-_LARGEST, most=_LARGEST
        ),
        "item_spreads": StoredNumbers(
            source=RELEASED, shape=(ITEMS, "pairs"), dtype=np.float32, least=-_LARGEST, most=_LARGEST
        ),
        "ridge": StoredNumbers(source=RELEASED, shape=(("factors", 1),), least=1e-12, most=_LARGEST),
        "popularity": COUNTS,
    }
    constants: ClassVar[Mapping[str, Constant]] = {**LinearRatings.constants, "decisions": Notes()}

    item_spreads: Singles

    def check(self) -> None:
        """Raise for covariances for another number of factors."""
        from discreet.solvers.bayesian_als import packed_size

        if self.item_spreads.shape[1] != packed_size(self.ridge.size):
            raise MalformedPart(part="item_spreads", rule="shape")

    def fold_in(self, histories: Interactions) -> Floats:
        """Return each user's bias and factors."""
        # Compiled: other scorers answer without waiting for it.
        from discreet.solvers.bayesian_als import Beliefs, believe, lines_of

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

    def item_vectors(self) -> Floats:
        """Return the item factors; users have the same spread along each of them."""
        return self.item_factors if self.item_factors.shape[1] else Scorer.item_vectors(self)
