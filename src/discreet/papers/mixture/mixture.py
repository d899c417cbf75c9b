"""Factor perturbed reports with a mixture of Gaussians as noise model, as in its paper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from discreet.collect.estimate import Collected
from discreet.collect.mechanisms import RatingMechanism
from discreet.core.checks import integer, one_of, positive_finite
from discreet.core.progress import Progress
from discreet.core.rows import Rows
from discreet.data.facts import PublicFacts
from discreet.models.local.estimator import POINTS, LocalEstimator, check_local, exact_for
from discreet.models.scorers.local import factor_scorer
from discreet.models.scorers.scorer import Scorer
from discreet.papers.mixture.weighted_pca import weighted_pca
from discreet.privacy.mechanisms.local import rating_mechanism
from discreet.solvers.mixture import fit_mixture

Solver = Literal["als", "weighted-pca"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMixture(LocalEstimator):
    """Perturb each rating on its own device, then factor the reports with a mixture of Gaussians as noise.

    The Gaussians have mean zero although bounded noise moves reports to the middle of the scale, and the fit
    has no biases: both are as printed. local-channel corrects both. Each step fits factors by one sweep of
    ridge-regularized alternating least squares, where the paper has a weighted PCA; at rank 1 the two agree.

    Guarantee
        Pure `epsilon` for the value of one rating against anyone, the collector included; which items were
        rated is public (proofs/local_collection.md). n ratings of one user cost n times epsilon.

    Noise
        A rating r becomes a report with density proportional to exp(-|report - r| / b) on the scale itself; b
        is the smallest for which no two ratings differ by more than e^epsilon (proofs/bounded_laplace.md).

    Parameters:
        epsilon: The loss of one rating.
        factors: The rank; the paper does not print its own. One factor was best on validation data.
        components: The number of Gaussians at the start.
        regularization: Precision of the factors' prior; the paper has none, so it is small.
        iterations: The most steps of expectation-maximization.
        solver: The factor step: `als`, one sweep of alternating least squares, or `weighted-pca` as printed.
        ratings_per_user: A public number of ratings for which the label spells out the guarantee for a user.

    References:
        Neera, Chen, Aslam and Shu, Local Differentially Private Matrix Factorization with MoG for
        Recommendations (2020).

    Example:
        >>> from discreet import LocalMixture, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = LocalMixture(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('value', 'proofs/local_collection.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3
    """

    name: ClassVar[str] = "local-mixture"
    source: ClassVar[str] = "Neera et al. 2020"

    epsilon: float
    factors: int = 1
    components: int = 3
    regularization: float = 0.1
    iterations: int = 30
    ratings_per_user: int | None = None
    seed: int = 0
    solver: Solver = "als"

    def __post_init__(self) -> None:
        check_local(self)
        one_of("solver", self.solver, ("als", "weighted-pca"))
        integer("factors", self.factors, least=1)
        integer("components", self.components, least=1)
        integer("iterations", self.iterations, least=1)
        positive_finite("regularization", self.regularization)

    def mechanism(self, facts: PublicFacts) -> RatingMechanism:
        """Return bounded Laplace noise over the scale."""
        if math.isinf(self.epsilon):
            return exact_for(facts)
        return rating_mechanism(
            "bounded-laplace", epsilon=self.epsilon, low=facts.low, high=facts.high, points=POINTS
        )

    def _learn(self, collected: Collected, progress: Progress) -> Scorer:
        reports, turned = collected.reports, collected.reports.by_item
        low, width = collected.mechanism.low, collected.width
        values = ((reports.values - low) / width).astype(np.float32)
        fit = fit_mixture(
            Rows(reports.indptr, reports.items, values),
            Rows(turned.indptr, turned.users, values[turned.order]),
            turned.order,
            factors=self.factors,
            components=self.components,
            regularization=self.regularization,
            iterations=self.iterations,
            seed=self.seed,
            step=weighted_pca(self.factors) if self.solver == "weighted-pca" else None,
        )
        progress(self.name, 1, 1)
        noise = float(fit.mixture.shares @ fit.mixture.variances)
        return factor_scorer(collected, fit.user_factors, fit.item_factors, self.regularization * noise)
