"""Score with item vectors: a user's vector is one ridge problem over that user's own row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Singles
from discreet.data import Interactions
from discreet.models.errors import MalformedPart
from discreet.models.scorers.ranking import LOGISTIC, Liking, LinearScores, Ranking
from discreet.models.scorers.scorer import (
    ITEMS,
    RELEASED,
    Constant,
    Notes,
    Scorer,
    Stored,
    StoredNumber,
    StoredNumbers,
)
from discreet.models.scorers.similarity import refuse_plain
from discreet.solvers import products, ridge_vectors
from discreet.statistics import rows_of

#: How often items were chosen, in any unit; files of older versions do not have it.
COUNTS = StoredNumbers(
    source="counts from the same noisy releases or reports (none if the label states NOT PRIVATE)",
    shape=(ITEMS,),
    # A logarithm is taken of it.
    least=1e-150,
    optional=True,
)
LIKING = StoredNumber(least=0.0, most=100.0)
RANKINGS = ("both", "choice", "stars")
BY_COUNTS = "the number of ratings, combined with expected stars"
BY_STARS = (
    "expected stars alone, because this model has no counts. Its ratings are good, its recommendations poor"
)

# A rating deviates from its prediction by about this part of half the scale.
DEVIATION = 0.45
# Weight of expected ratings in recommendations, and the part of the catalog rated from which they don't
# count. Both were chosen by hand on validation parts. The experiment is not recorded, and no ablation covers
# them.
_LIKING, _NEARLY_ALL = 0.4, 0.5


def liking(known: float, rated: float) -> float:
    """Return the weight of expected ratings in recommendations, by how much of items' effects is known.

    They count less if a typical user has `rated` a large part of the catalog.
    """
    return _LIKING * known * max(0.0, 1 - (rated / _NEARLY_ALL) ** 2)


def counted(counts: npt.NDArray[Any], people: int) -> dict[str, Any]:
    """Return counts of single ratings as the fields of a scorer; items that no user chose stay above zero."""
    rated = float(np.maximum(counts, 0.0).sum()) / max(people * counts.size, 1)
    return {"popularity": np.maximum(counts, 0.0) + 0.5, "liking": liking(1.0, rated)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedScorer(Scorer):
    """Scores whose lists are ordered by counts (`popularity`), and by `liking`, if there are counts."""

    base_part: ClassVar[str] = "item mean"
    liked_part: ClassVar[str]

    popularity: Floats = field(default_factory=lambda: np.zeros(0))
    liking: float = 0.0

    @property
    def rankings(self) -> tuple[str, ...]:
        """Return what lists can be ordered by; without counts, only one order."""
        return RANKINGS if self.popularity.size else ()

    def worth_by(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Singles:
        """Return what lists are ordered by: "both" (as usual), "choice" (counts) or "stars" (the scores)."""
        if rank_by in self.rankings:
            if rank_by == "choice":
                return by_counts(self.popularity, 0.0, np.zeros((rows.size, self.popularity.size)))
            return self.scores(histories, rows) if rank_by == "stars" else self.worth(histories, rows)
        return Scorer.worth_by(self, histories, rows, rank_by)

    def score_parts(self, histories: Interactions, rows: Indices) -> dict[str, Floats]:
        """Return popularity, and what liking adds to it; without counts the parts of any scorer."""
        if not self.popularity.size:
            return Scorer.score_parts(self, histories, rows)
        worth = self.worth(histories, rows).astype(np.float64)
        base = np.broadcast_to(np.log(self.popularity), worth.shape)
        return {"popularity": base, self.liked_part: worth - base}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRatings(CountedScorer):
    """Ratings between `low` and `high`. Lists are ordered by counts (`popularity`) if there are any."""

    predicts_stars: ClassVar[bool] = True
    liked_part: ClassVar[str] = "expected stars"

    low: float
    high: float

    @property
    def ranked_by(self) -> str:
        """Return what orders lists, and whether it is stars alone."""
        return BY_COUNTS if self.popularity.size else BY_STARS

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the logarithm of the counts, plus `liking` times that of the chance of being liked.

        Liked means above what the user would give on average, the more popular items counting more.
        """
        stars = self.linear(histories, rows)
        if not self.popularity.size:
            return stars.all()
        above = (stars.all() - self._usual(stars)[:, None]) / self._deviation
        return by_counts(self.popularity, self.liking, above)

    @abstractmethod
    def linear(self, histories: Interactions, rows: Indices) -> LinearScores:
        """Return what the predicted ratings of these users are products of, before they are clipped."""

    @abstractmethod
    def shown(self, scores: Floats) -> Floats:
        """Return ratings inside the scale as users read them."""

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return predicted ratings, not clipped: the order at the top of the scale is kept."""
        return self.linear(histories, rows).all()

    def ranking(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Ranking | None:
        """Return the counts and the chance of being liked; without counts the ratings."""
        if rank_by is not None and rank_by not in self.rankings:
            return None
        stars = self.linear(histories, rows)
        if rank_by == "stars" or not self.popularity.size:
            return Ranking(stars, None, stars, self.shown)
        liked = Liking(self.liking, stars, self._usual(stars), self._deviation, "logistic")
        return Ranking(np.log(self.popularity), None if rank_by == "choice" else liked, stars, self.shown)

    def _usual(self, stars: LinearScores) -> Floats:
        return stars.average(self.popularity / self.popularity.sum())

    @property
    def _deviation(self) -> float:
        return max(DEVIATION * (self.high - self.low) / 2, 1e-150)


def by_counts(popularity: Floats, liking: float, above: Floats | Singles) -> Singles:
    """Return the logarithm of the counts, plus `liking` times that of the chance to lie `above` the usual."""
    liked = -np.logaddexp(0.0, -LOGISTIC * above)
    return np.asarray(np.log(popularity) + liking * liked, dtype=np.float32)


# Shown ratings are compressed smoothly near the ends of the scale, within about this fraction of it.
_SOFTNESS = 0.05


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
        return LinearScores(people, *self._lines()).cells(place, items)

    def linear(self, histories: Interactions, rows: Indices) -> LinearScores:
        """Return users' own vectors and the items' rows."""
        people, place = self._people(histories, rows)
        return self.linear_of(people[place])

    def linear_of(self, people: Floats) -> LinearScores:
        """Return the products of these users' vectors."""
        return LinearScores(people, *self._lines())

    def _lines(self) -> tuple[Floats, Floats]:
        """Return the row of each item, and what its ratings are without a user's own vector."""
        return self.prepared("lines", lambda: (self._design(), self.mean + self.item_bias))

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
        return self.folded(histories, rows)

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
        return np.column_stack([np.ones(self.item_bias.size), self.item_factors])


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

    def _vectors(self, histories: Interactions) -> Floats:
        """Return each user's bias and factors."""
        own = rows_of(histories)
        scales = np.maximum(own.row_weights(), 1) ** self.count_power if self.count_power else None
        design, offsets = self._lines()
        return ridge_vectors(own, design, ridge=self.ridge, scales=scales, offsets=offsets)

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

    def _vectors(self, histories: Interactions) -> Floats:
        """Return each user's factors; only which items they interacted with counts."""
        from discreet.solvers import Confidence, fold_in_implicit

        chosen = rows_of(histories)._replace(values=np.ones(histories.n_ratings, dtype=np.float32))
        confidence = Confidence(alpha=self.alpha, regularization=self.regularization)
        return fold_in_implicit(chosen, self.item_factors, confidence).astype(np.float64)

    def predict(self, histories: Interactions, rows: Indices, items: Indices) -> Floats:
        """Return the scores of single pairs of user and item."""
        people, place = self.folded(histories, rows)
        return products(people, self.item_factors.astype(np.float64), place, items)

    def scores(self, histories: Interactions, rows: Indices) -> Singles:
        """Return a score for every item."""
        people, place = self.folded(histories, rows)
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
        from discreet.solvers import packed_size

        if self.item_spreads.shape[1] != packed_size(self.ridge.size):
            raise MalformedPart(part="item_spreads", rule="shape")

    def _vectors(self, histories: Interactions) -> Floats:
        """Return each user's bias and factors."""
        # Compiled: other scorers answer without waiting for it.
        from discreet.solvers import Beliefs, believe, lines_of

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
