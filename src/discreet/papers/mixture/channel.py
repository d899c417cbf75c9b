"""Fit biases and factors to perturbed reports by maximum likelihood under the known noise channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.collect.estimate import Collected
from discreet.core import Progress, integer, positive_finite
from discreet.models import LocalEstimator, LocalScorer, RatingScorer, Scorer, check_local, counted
from discreet.solvers import SPREAD, ChannelFit, Reports, fit_channel, pattern_features


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalChannel(LocalEstimator):
    """Each device adds noise to its ratings, and the model corrects for the known noise.

    The fit estimates the strength of shrinkage from the reports and the channel. If the reports don't
    distinguish users, the debiased item means remain. The rated items are public here, so the fit computes
    features of users and items from them (`directions`) before it uses any report.

    Guarantee
        Pure `epsilon` for the value of one rating against anyone, the collector included; which items were
        rated is public (proofs/local_collection.md). n ratings of one user cost n times epsilon.

    Noise
        A rating r becomes a report with density proportional to exp(-|report - r| / b) on the scale itself; b
        is the smallest for which no two ratings differ by more than e^epsilon (proofs/bounded_laplace.md).

    Parameters:
        epsilon: The loss of one rating.
        factors: The largest number of factors. The fit drops factors that the reports don't support.
        iterations: Passes over the reports; the first six fit biases only.
        directions: The number of public features of users and items, from which items each user rated.
        spread: The standard deviation of ratings around their expectation, as a fraction of the scale.
        ratings_per_user: A public number of ratings for which the label spells out the guarantee for a user.

    Example:
        >>> from discreet import LocalChannel, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = LocalChannel(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('value', 'proofs/local_collection.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "local-channel"
    source: ClassVar[str] = "ours"

    epsilon: float
    factors: int = 8
    iterations: int = 25
    directions: int = 4
    spread: float = SPREAD
    ratings_per_user: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_local(self)
        integer("factors", self.factors, least=0)
        integer("iterations", self.iterations, least=1)
        integer("directions", self.directions, least=0)
        positive_finite("spread", self.spread)

    def _accept(self, collected: Collected) -> None:
        """Accept every mechanism, since only its channel is needed."""

    def _learn(self, collected: Collected, progress: Progress) -> Scorer:
        reports, turned = collected.reports, collected.reports.by_item
        people, items = pattern_features(reports.indptr, reports.items, reports.n_items, self.directions)
        fit = fit_channel(
            Reports(reports.indptr, reports.items, collected.codes),
            Reports(turned.indptr, turned.users, collected.codes[turned.order]),
            collected.response(spread=self.spread),
            factors=self.factors,
            iterations=self.iterations,
            seed=self.seed,
            user_features=people,
            item_features=items,
            report=lambda done: progress(self.name, done, self.iterations),
        )
        return self._scorer(collected, fit)

    def _scorer(self, collected: Collected, fit: ChannelFit) -> Scorer:
        """Return the fit in units of the scale; the ridge is the noise spread over the spread of users."""
        width, low = collected.width, collected.mechanism.low
        people, items = fit.people.means, fit.items.means
        keep = np.delete(np.arange(people.shape[1]), 1)
        ridge = (self.spread / fit.people.spreads[keep]) ** 2
        ridge[1:] *= width**2
        vectors = people[:, keep].copy()
        vectors[:, 0] *= width
        device = RatingScorer(
            mean=low + width / 2,
            item_bias=width * items[:, 1],
            item_factors=width * items[:, 2:],
            ridge=ridge,
            low=collected.mechanism.low,
            high=collected.mechanism.high,
            **counted(collected.item_counts, collected.reports.n_users),
        )
        return LocalScorer.of(collected.reports.users, vectors, device)
