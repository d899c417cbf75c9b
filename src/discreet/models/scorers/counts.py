"""Order lists by how often items were chosen, and a little by how they would be liked.

Stars alone are a bad order: on top are items that few users know and that those few liked. A model whose
release also counted the items orders by the counts; they are post-processing of what was released anyway.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.scorers.parts import ITEMS, StoredNumber, StoredNumbers
from discreet.models.scorers.ranking import LOGISTIC, Liking, LinearScores, Ranking
from discreet.models.scorers.scorer import Scorer

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
BY_COUNTS = "the number of ratings, and expected stars"
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
