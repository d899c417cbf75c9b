"""Recommend the most popular items: the private baseline that every list has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from discreet.core import Progress
from discreet.models.estimator import FadingEstimator, check_budget, check_recency, recency_of
from discreet.models.scorers.item_item import PopularityScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy import Session
from discreet.statistics import ItemVotes, Norm, RecentVotes, Statistic


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Popularity(FadingEstimator):
    """The most popular items, from noisy counts.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history against everyone else; pure when `delta` is 0
        (proofs/popularity.md). Each user's contribution is scaled to length 1, so one user moves the
        counts by at most 1, for any number of items.

    Noise
        A user with n items adds 1 / sqrt(n) to each (l2 sensitivity 1, Gaussian noise), or 1 / n where
        `delta` is 0 (l1 sensitivity 1, Laplace noise of scale 1 / epsilon).

    Parameters:
        half_life: The number of days after which an interaction counts half (None: no fading). A user's
            votes are then scaled to length 1 at most. Times in the data are seconds since 1970, or dates.
        now: The public date at which ages are measured, such as "2026-01-31" (default: the present).

    Example:
        >>> from discreet import Popularity, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Popularity(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/popularity.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "popularity"
    proof: ClassVar[str] = "proofs/popularity.md"
    feedback = "implicit"
    weighs: ClassVar[bool] = True
    source: ClassVar[str] = "baseline"

    epsilon: float
    delta: float = 1e-6
    half_life: float | None = None
    now: str | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=False)
        check_recency(self.half_life, self.now)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        norm: Norm = "l1" if self.is_pure else "l2"
        asked: Statistic = ItemVotes(n_items=session.n_items, norm=norm)
        recency = recency_of(self.half_life, self.now)
        if recency is not None:
            asked = RecentVotes(n_items=session.n_items, norm=norm, recency=recency)
        return PopularityScorer(popularity=self.metered(session).release(asked, Fraction(1)).values)
