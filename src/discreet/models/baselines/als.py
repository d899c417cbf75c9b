"""Factor ratings, or implicit feedback, by alternating least squares; the data set what can be tuned.

Ratings may also be described by co-raters, who say where an item with few ratings belongs. These features are
principal directions of the matrix of who rated what, scaled so that neither active users nor popular items
dominate. Of an item with few ratings they are noise, so they are shrunk by its count. How much, and whether
features help at all, is chosen on hidden ratings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from discreet.core import Floats, Progress, Rows, integer, one_algebra_thread, positive_finite
from discreet.data import Interactions
from discreet.models.baselines.tuning import (
    Baseline,
    HiddenInteractions,
    Point,
    SearchDirection,
    hide_interactions,
    interaction_draws,
    sample_users,
    walk,
)
from discreet.models.scorers.factors import ImplicitFactorScorer, UnsureRatingScorer, counted
from discreet.models.scorers.scorer import Scorer
from discreet.privacy import Session
from discreet.solvers import Beliefs, Confidence, believe, implicit_als, settle, spreads_of, start, sweep
from discreet.statistics import rows_of

#: Counts at which features are halved, tried in this order; None leaves features out.
SHRINKAGES = (None, 5.0, 20.0, 80.0)
_CO_RATER_DIRECTIONS = 64
# Directions and the choice use about this many ratings at most: their time is bounded.
_MOST_DESCRIBED, _MOST_TO_CHOOSE = 1_000_000, 200_000
# One of so many ratings is hidden; fewer than these cannot show what is better.
_HIDDEN, _FEWEST_HIDDEN = 10, 100

Fit = Callable[[Interactions, Floats | None], Beliefs]


def choose_features(data: Interactions, fit: Fit, seed: int) -> tuple[Floats | None, float | None]:
    """Return the features of items that predict hidden ratings best, and their shrinkage; None for none."""
    part = sample_users(data, _MOST_TO_CHOOSE, seed)
    hidden = interaction_draws(part, seed) % np.uint64(_HIDDEN) == 0
    if np.count_nonzero(hidden) < _FEWEST_HIDDEN:
        return None, None
    train, held = part.where(~hidden), part.where(hidden)
    tried = directions(train)
    losses = [_loss(fit(train, shrunk(train, tried, one)), train, held) for one in SHRINKAGES]
    best = SHRINKAGES[int(np.argmin(losses))]
    if best is None:
        return None, None
    part = sample_users(data, _MOST_DESCRIBED, seed)
    return shrunk(part, directions(part), best), best


def _loss(known: Beliefs, train: Interactions, held: Interactions) -> float:
    """Return the mean squared error of predictions for hidden ratings."""
    own: Rows = rows_of(train)
    people = believe(own, 0, own.n_rows, known)[held.rows()].astype(np.float64)
    items = known.lines[held.items].astype(np.float64)
    size = known.factors + 2
    found = known.mean + people[:, 0] + items[:, 0] + (people[:, 2:size] * items[:, 2:size]).sum(axis=1)
    found = np.clip(found, train.facts.low, train.facts.high)
    return float(np.mean((found - held.values) ** 2))


def directions(data: Interactions) -> Floats:
    """Return the principal directions of who rated what, without the first, which is popularity."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import svds

    from discreet.solvers import REPEATABLE

    counts = _counts(data)
    active = np.maximum(np.diff(data.indptr), 1)
    rated = data.to_scipy().astype(np.float64)
    rated.data[:] = 1.0
    scaled = sp.diags_array(active**-0.5) @ rated @ sp.diags_array(counts**-0.5)
    wanted = min(_CO_RATER_DIRECTIONS + 1, min(scaled.shape) - 1)
    if wanted < 2:
        return np.zeros((data.n_items, 0))
    # A start that depends on nothing but the size: the same data give the same directions.
    _, strengths, found = svds(scaled, k=wanted, v0=np.ones(min(scaled.shape)), **REPEATABLE)
    order = np.argsort(-strengths, kind="stable")[1:]
    vectors: Floats = found[order].T / np.sqrt(counts)[:, None]
    return vectors


def shrunk(data: Interactions, vectors: Floats, half: float | None) -> Floats | None:
    """Return features of unit mean square: the logarithm of popularity, and directions shrunk by counts."""
    if half is None:
        return None
    counts = _counts(data)
    weights = counts / counts.sum()
    near = vectors * np.sqrt(counts / (counts + half))[:, None]
    popular = np.log(counts)[:, None]
    near, popular = near - weights @ near, popular - weights @ popular
    return np.column_stack([_unit(popular, weights), _unit(near, weights)])


def _unit(columns: Floats, weights: Floats) -> Floats:
    size = np.sqrt((weights @ columns**2).mean()) if columns.shape[1] else 1.0
    scaled: Floats = columns / max(float(size), 1e-150)
    return scaled


def _counts(data: Interactions) -> Floats:
    return np.maximum(np.bincount(data.items, minlength=data.n_items), 1).astype(np.float64)


_START = {"alpha": 4.0, "regularization": 8.0, "factors": 32.0}
_DIRECTIONS = {
    "regularization": SearchDirection(4.0, 0.5, 1024.0),
    "alpha": SearchDirection(4.0, 0.25, 64.0),
    "factors": SearchDirection(2.0, 8.0, 128.0),
}
_SEARCH_ITERATIONS = 6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitAls(Baseline):
    """Weighted alternating least squares for interactions, without privacy: an implicit baseline.

    A small search finds settings that are None. It hides one interaction of each of some users (from a
    sample of at most about a million interactions) and compares NDCG@10 on the whole catalog.

    Guarantee
        NOT PRIVATE: it runs at `epsilon=inf` only.

    Example:
        >>> from discreet import ImplicitAls, PrivacyRandom
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = ImplicitAls().fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.is_private
        False
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend([film], k=3))
        3

    Stability
        Stable.
    """

    name: ClassVar[str] = "implicit-als"
    feedback = "implicit"
    source: ClassVar[str] = "baseline, Hu et al. 2008"

    factors: int | None = None
    iterations: int = 15
    alpha: float | None = None
    regularization: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._check_budget()
        integer("iterations", self.iterations, least=1)
        if self.factors is not None:
            integer("factors", self.factors, least=1)
        for name in ("alpha", "regularization"):
            if getattr(self, name) is not None:
                positive_finite(name, getattr(self, name))

    def _train(self, session: Session, progress: Progress) -> Scorer:
        data: Interactions = session.rows()
        clicks = data.with_values(np.ones(data.n_ratings, dtype=np.float32))
        point = self._settings(clicks)
        sides, fitted = both_ways(clicks), None
        for done in range(self.iterations):
            fitted = implicit_als(
                *sides,
                factors=int(point["factors"]),
                iterations=1,
                confidence=_confidence(point),
                seed=self.seed,
                initial=fitted,
            )
            progress("implicit-als", done + 1, self.iterations)
        assert fitted is not None
        return ImplicitFactorScorer(
            item_factors=fitted.item_factors, alpha=point["alpha"], regularization=point["regularization"]
        )

    def _settings(self, clicks: Interactions) -> Point:
        given = {"alpha": self.alpha, "regularization": self.regularization, "factors": self.factors}
        known = {name: float(value) for name, value in given.items() if value is not None}
        directions = {name: way for name, way in _DIRECTIONS.items() if name not in known}
        hidden = hide_interactions(clicks, self.seed) if directions else None
        start = {**_START, **known}
        return start if hidden is None else _search(hidden, start, directions, self.seed)


def _search(
    hidden: HiddenInteractions, start: Point, directions: dict[str, SearchDirection], seed: int
) -> Point:
    sides = both_ways(hidden.train)

    def loss(point: Point) -> float:
        fitted = implicit_als(
            *sides,
            factors=int(point["factors"]),
            iterations=_SEARCH_ITERATIONS,
            confidence=_confidence(point),
            seed=seed,
        )
        return hidden.loss(fitted.user_factors[hidden.people] @ fitted.item_factors.T)

    return walk(start, directions, loss)


def _confidence(point: Point) -> Confidence:
    return Confidence(alpha=point["alpha"], regularization=point["regularization"])


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

    Vectors have posterior covariances, from which the fit estimates the ridges (see
    `solvers/bayesian_als.py`). The fit shrinks items toward what their co-raters predict, if that predicts
    hidden ratings better. It starts with `factors` factors and drops factors that explain nothing. The
    default is 16 factors, 24 above half a million ratings, 48 above two million, and 64 if items have 10,000
    ratings each. Sweeps stop when the estimated noise hardly changes, or after `iterations`. With more than
    two million ratings, all but the last two sweeps use a sample of users.

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

    Stability
        Stable.
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
