"""Learn one bias for each item: the baseline that every private factorization has to beat.

The budget split and the constants were chosen on a validation part of one public dataset; they are public. A
user's whole contribution is scaled to length 1, so nothing is dropped and nothing is clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.core import Progress
from discreet.data import PublicFacts
from discreet.models.estimator import FadingEstimator, check_budget, check_recency, recency_of
from discreet.models.released_items import ItemView, pilot_release, refuse_one_value
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.scorer import Scorer
from discreet.models.tuned_settings import ItemSettings
from discreet.privacy import Session, share
from discreet.solvers import EmpiricalBayes
from discreet.statistics import Recency

# How the budget is shared: overall mean, pilot release of the items, final item effects.
SHARES = (share(0.02), share(0.25), share(0.73))


def release_biases(
    session: Session, progress: Progress, recency: Recency | None = None
) -> tuple[ItemView, EmpiricalBayes]:
    """Release the overall mean and every item's effect, for all of the session (proofs/biases.md)."""
    mean, pilot, final = SHARES
    view = pilot_release(session, (mean, pilot), ItemSettings(), recency)
    progress("biases", 1, 2)
    view = view.with_effects(session, final)
    progress("biases", 2, 2)
    return view, view.effects()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Biases(FadingEstimator):
    """Ratings predicted from the item's noisy bias and the user's own bias.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user,
        against everyone else (proofs/biases.md). Three releases share the budget.

    Noise
        A user's vector in every sum has length at most 1, so release j adds N(0, (M / sqrt(s_j))^2) to each
        entry, with M the multiplier of one Gaussian release that is (`epsilon`, `delta`)-private and shares s
        = (0.02, 0.25, 0.73).

    Parameters:
        half_life: The number of days after which a rating counts half in items' effects (None: no fading).
        now: The public date at which ages are measured, such as "2026-01-31" (default: the present).

    Example:
        >>> from discreet import Biases, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Biases(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/biases.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "biases"
    proof: ClassVar[str] = "proofs/biases.md"
    source: ClassVar[str] = "ours, after McSherry and Mironov 2009"

    epsilon: float
    delta: float = 1e-6
    half_life: float | None = None
    now: str | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        check_recency(self.half_life, self.now)

    def _refuse_facts(self, facts: PublicFacts) -> None:
        refuse_one_value(facts)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        recency = recency_of(self.half_life, self.now)
        seen, effects = release_biases(self.metered(session), progress, recency)
        return RatingScorer(
            mean=seen.middle + seen.half * seen.mean,
            item_bias=seen.half * effects.mean,
            item_factors=np.zeros((session.n_items, 0)),
            ridge=np.array([seen.own_ridge]),
            low=session.facts.low,
            high=session.facts.high,
            **seen.listing(),
        )
