"""Factor ratings by alternating least squares; the data set the number of factors and the ridge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.checks import integer
from discreet.core.progress import Progress
from discreet.core.rows import Rows, one_algebra_thread
from discreet.data.interactions import Interactions
from discreet.models.baselines.rated_together import choose_features
from discreet.models.baselines.tuning import Baseline, sample_users
from discreet.models.scorers.counts import counted
from discreet.models.scorers.factors import UnsureRatingScorer
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.session import Session
from discreet.solvers.bayesian_als import Beliefs, settle, spreads_of, start, sweep
from discreet.statistics.blocks import rows_of

# From so many ratings on: the initial number of factors, and the fraction by which the noise must change in a
# sweep for another one. Unused factors vanish; more would only cost time. On small data later sweeps fit the
# noise; on the largest data they still find factors.
_BY_SIZE = ((2_000_000, 48, 3e-5), (500_000, 24, 3e-4), (0, 16, 1e-3))
# The same where items have so many ratings each that even weak factors are known well.
_MANY_PER_ITEM, _WELL_KNOWN = 10_000, (64, 1e-5)
# With more ratings than this, factors are fitted on a sample of users; only the last sweeps use all users.
_MOST_RATINGS = 2_000_000
_LAST_SWEEPS = 2
_FEWEST_SWEEPS = 10
# Vanished factors are dropped every so many sweeps.
_SWEEPS_BETWEEN_DROPS = 5
# Sweeps of the fits that features are chosen by. With 15 of them, six data sets choose the same features.
_SWEEPS_TO_COMPARE = 7


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Als(Baseline):
    """Alternating least squares for ratings, without privacy: the baseline for explicit ratings.

    Vectors have posterior covariances, and ridges are estimated from the vectors (see
    `solvers/bayesian_als.py`). Items are shrunk toward what their co-raters predict (`rated_together.py`) if
    that predicts hidden ratings better. The fit starts with `factors` factors (default: 16, 24
    from half a million ratings on, 48 from two million on, 64 where there are 10,000 for each item); those
    that explain nothing vanish. Sweeps stop when the estimated noise hardly changes, at the latest after
    `iterations`. With more than two million ratings, all but the last two sweeps use a sample of users.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import Als, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = Als().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3
    """

    name: ClassVar[str] = "als"
    source: ClassVar[str] = "baseline, Lim and Teh 2007"

    factors: int | None = None
    iterations: int = 60
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_budget()
        integer("iterations", self.iterations, least=1)
        if self.factors is not None:
            integer("factors", self.factors, least=0)

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data: Interactions = session.rows()
        with one_algebra_thread():
            features, half = choose_features(data, self._few_sweeps, self.seed)
            known, sweeps = self._sweeps(data, features, progress)
        return UnsureRatingScorer(
            mean=known.mean,
            item_bias=known.item_biases,
            item_factors=known.item_factors,
            item_spreads=spreads_of(known.lines, known.factors).astype(np.float32, order="C"),
            ridge=known.noise * np.diag(known.people),
            low=data.facts.low,
            high=data.facts.high,
            **counted(np.bincount(data.items, minlength=data.n_items), data.n_users),
            decisions={
                "factors": known.factors,
                "iterations": sweeps,
                "features shrunk by": half or "not used",
                "noise": round(math.sqrt(known.noise), 4),
            },
        )

    def _few_sweeps(self, data: Interactions, features: Floats | None) -> Beliefs:
        """Return a posterior that is good enough to compare features."""
        sides = both_ways(data)
        factors = _by_size(data)[0] if self.factors is None else self.factors
        known = start(sides[0], data.n_items, factors, self.seed)
        for _ in range(min(self.iterations, _SWEEPS_TO_COMPARE)):
            known = sweep(*sides, known, features)
        return known

    def _sweeps(self, data: Interactions, features: Floats | None, progress: Progress) -> tuple[Beliefs, int]:
        """Return the fitted posterior and the number of sweeps."""
        part = sample_users(data, _MOST_RATINGS, self.seed)
        last = min(_LAST_SWEEPS, self.iterations - 1) if part is not data else 0
        sides, done = both_ways(part), 0
        factors, enough = _by_size(data)
        factors = factors if self.factors is None else self.factors
        known = start(sides[0], data.n_items, factors, self.seed)
        for done in range(1, self.iterations - last + 1):
            before, known = known.noise, sweep(*sides, known, features)
            if done % _SWEEPS_BETWEEN_DROPS == 0:
                known = settle(known, np.diff(sides[1].indptr))
            progress("als", done, self.iterations)
            if done >= _FEWEST_SWEEPS and abs(known.noise - before) < enough * before:
                break
        for more in range(last):
            known = sweep(*both_ways(data), known, features)
            progress("als", done + more + 1, self.iterations)
        return settle(known, np.diff(data.by_item.indptr)), done + last


def _by_size(data: Interactions) -> tuple[int, float]:
    """Return the initial number of factors, and when sweeps stop."""
    if data.n_ratings >= _MANY_PER_ITEM * data.n_items:
        return _WELL_KNOWN
    return next((factors, enough) for least, factors, enough in _BY_SIZE if data.n_ratings >= least)


def both_ways(data: Interactions) -> tuple[Rows, Rows]:
    """Return the data by user and by item."""
    by_item = data.by_item
    return rows_of(data), Rows(by_item.indptr, by_item.users, by_item.values)
