"""Factor ratings by the leading eigenvectors of one noisy covariance between items."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from discreet.core import Progress, integer
from discreet.models import Scorer, SumsEstimator, check_budget
from discreet.papers.frank_wolfe.directions import (
    centered,
    item_factor,
    leading,
    own_means_only,
    usual_length,
)
from discreet.papers.frank_wolfe.frank_wolfe import shared_rounds
from discreet.privacy import Session
from discreet.solvers import outstanding
from discreet.statistics import ScaledMoment

# Residuals are clamped to this, in units of half the scale.
_CLAMP = 0.5


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CovarianceSvd(SumsEstimator):
    """Factor ratings by the leading eigenvectors of one noisy covariance between items.

    Guarantee
        (`epsilon`, `delta`) for a user's whole history, between datasets with and without that user,
        against everyone else (proofs/covariance_svd.md). Three releases of the biases (without biases, the
        number of users) and one matrix.

    Noise
        A row is scaled to length at most 1, so its outer product without the diagonal has Frobenius norm at
        most 1. The four releases add N(0, m_k^2) with sum of 1 / m_k^2 at most 1 / M^2, M the multiplier of
        one (`epsilon`, `delta`)-private release.

    Parameters:
        factors: The largest number of factors. The fit keeps only factors above the noise.
        biases: Whether to release item biases and subtract them first. The poster subtracts only users' own
            means: `false`.

    References:
        McSherry, Mironov. Differentially private recommender systems. KDD 2009. They protect single ratings;
        here rows are scaled to length 1, which protects whole users.

    Example:
        >>> from discreet import CovarianceSvd, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = CovarianceSvd(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/covariance_svd.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "covariance-svd"
    proof: ClassVar[str] = "proofs/covariance_svd.md"
    source: ClassVar[str] = "McSherry and Mironov 2009, at user level"

    epsilon: float
    delta: float = 1e-6
    factors: int = 20
    biases: bool = True

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        integer("factors", self.factors, least=1)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        session, facts = self.metered(session), session.facts
        if self.biases:
            biases, rest = session.split(*shared_rounds([Fraction(1)]))
            view, look = centered(biases, progress)
            moment, noise = rest.release(ScaledMoment(scaling=view.scaling(clamp=_CLAMP)), Fraction(1))
            columns = [item_factor(one, look) for one in leading(moment, noise, look.people, self.factors)]
            factors = np.column_stack([np.zeros((facts.n_items, 0)), *columns])
        else:
            view, rest = own_means_only(session)
            # With equal parts a row of c ratings weighs about 1 / c, as McSherry and Mironov weigh users.
            scaling = view.scaling(clamp=_CLAMP, part=_CLAMP)
            moment, noise = rest.release(ScaledMoment(scaling=scaling), Fraction(1))
            found, d = outstanding(moment, noise, view.people, most=self.factors), facts.n_items
            # A user with c of d items adds about c / d^2 of their covariance, over twice the squared clamp.
            size = view.people * min(usual_length(facts), d) / (d**2 * 2 * _CLAMP**2)
            factors = found.vectors * np.sqrt(found.strengths / size)
        progress("covariance-svd", 1, 1)
        return view.scorer(factors, facts, **{"directions kept": factors.shape[1]})
