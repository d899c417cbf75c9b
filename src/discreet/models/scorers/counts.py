"""Order lists by how often items were chosen, and a little by how they would be liked.

Stars alone are a bad order: on top stand items that few people know and that those few liked. A model whose
release also counted the items orders by the counts; they are post-processing of what was released anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices, Singles
from discreet.data.interactions import Interactions
from discreet.models.scorers.parts import ITEMS, StoredNumber, StoredNumbers
from discreet.models.scorers.scorer import Scorer
from discreet.models.user_factorization import constants as tuned

#: How often items were chosen, in any unit; files of older versions do not have it.
COUNTS = StoredNumbers(
    source="counts from the same noisy releases or reports (none if the label says NOT PRIVATE)",
    shape=(ITEMS,),
    # A logarithm is taken of it.
    least=1e-150,
    optional=True,
)
LIKING = StoredNumber(least=0.0, most=100.0)
RANKINGS = ("both", "choice", "stars")
BY_COUNTS = "how often items are chosen, and expected stars"
BY_STARS = "expected stars alone, for this model has no counts: good at the stars themselves, poor for lists"

# A rating deviates from its prediction by about this part of half the scale.
DEVIATION = 0.45
# The logistic function at this multiple is nearly the normal distribution.
_LOGISTIC = 1.702


def liking(known: float, rated: float) -> float:
    """Return how much stars count in a list, by how much of items' effects is known.

    They count less where a typical person has `rated` a large part of the catalog.
    """
    return tuned.LIKING * known * max(0.0, 1 - (rated / tuned.NEARLY_ALL) ** 2)


def counted(counts: npt.NDArray[Any], people: int) -> dict[str, Any]:
    """Return counts of single ratings as the fields of a scorer; items that nobody chose stay above zero."""
    rated = float(np.maximum(counts, 0.0).sum()) / max(people * counts.size, 1)
    return {"popularity": np.maximum(counts, 0.0) + 0.5, "liking": liking(1.0, rated)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRatings(Scorer):
    """Predict ratings between `low` and `high`; order lists by counts (`popularity`) where there are any."""

    predicts_stars: ClassVar[bool] = True
    base_part: ClassVar[str] = "item mean"

    low: float
    high: float
    popularity: Floats = field(default_factory=lambda: np.zeros(0))
    liking: float = 0.0

    @property
    def rankings(self) -> tuple[str, ...]:
        """Return what lists can be ordered by; without counts there is no choice."""
        return RANKINGS if self.popularity.size else ()

    @property
    def ranked_by(self) -> str:
        """Say what orders lists, and say so if that is stars alone."""
        return BY_COUNTS if self.popularity.size else BY_STARS

    def worth(self, histories: Interactions, rows: Indices) -> Singles:
        """Return the logarithm of the counts, plus `liking` times that of the chance of being liked.

        Liked means above what the person would give on average, the more popular items counting more.
        """
        stars = self.scores(histories, rows)
        if not self.popularity.size:
            return stars
        usual = stars @ (self.popularity / self.popularity.sum())
        deviation = max(DEVIATION * (self.high - self.low) / 2, 1e-150)
        return by_counts(self.popularity, self.liking, (stars - usual[:, None]) / deviation)

    def worth_by(self, histories: Interactions, rows: Indices, rank_by: str | None) -> Singles:
        """Return what lists are ordered by: "both" (as usual), "choice" (counts) or "stars"."""
        if rank_by in self.rankings:
            if rank_by == "choice":
                return by_counts(self.popularity, 0.0, np.zeros((rows.size, self.popularity.size)))
            return self.scores(histories, rows) if rank_by == "stars" else self.worth(histories, rows)
        return Scorer.worth_by(self, histories, rows, rank_by)

    def score_parts(self, histories: Interactions, rows: Indices) -> dict[str, Floats]:
        """Return popularity, and what expected stars add to it."""
        return parts_by_counts(self, self.popularity, "expected stars", histories, rows)


def by_counts(popularity: Floats, liking: float, above: Floats | Singles) -> Singles:
    """Return the logarithm of the counts, plus `liking` times that of the chance to lie `above` the usual."""
    liked = -np.logaddexp(0.0, -_LOGISTIC * above)
    return np.asarray(np.log(popularity) + liking * liked, dtype=np.float32)


def parts_by_counts(
    scorer: Scorer, popularity: Floats, liked: str, histories: Interactions, rows: Indices
) -> dict[str, Floats]:
    """Return the parts of a list's order: the counts, and what liking adds; without counts those of all."""
    if not popularity.size:
        return Scorer.score_parts(scorer, histories, rows)
    worth = scorer.worth(histories, rows).astype(np.float64)
    base = np.broadcast_to(np.log(popularity), worth.shape)
    return {"popularity": base, liked: worth - base}
