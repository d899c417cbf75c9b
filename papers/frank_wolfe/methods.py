"""Score every method of the comparison on one split."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from discreet.data.splits import Split
from discreet.evaluation.scoring import measure
from discreet.models.biases import Biases
from discreet.models.estimator import Estimator
from discreet.models.low_rank.covariance_svd import CovarianceSvd
from discreet.models.low_rank.frank_wolfe import FrankWolfe
from discreet.models.low_rank.projected_gradient import ProjectedGradient
from discreet.privacy.accounting.gaussian import gaussian_epsilon
from discreet.randomness import PrivacyRandom

from .poster import Poster

DELTA = 1e-6
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
PRIVATE = {
    "frank-wolfe": FrankWolfe,
    "covariance-svd": CovarianceSvd,
    "projected-gradient": ProjectedGradient,
    "biases": Biases,
}
MEAN = "user mean"
CLEAR = "frank-wolfe without privacy"
HONEST = "the poster's steps at honest noise"
THEIRS = "the poster's steps at their noise (NOT PRIVATE)"
# Settled on a validation part of ML-1M and used everywhere: rounds, nuclear norm, row bound.
POSTER_ROUNDS = 5
POSTER_ENTRY = 0.6
POSTER_RESIDUAL = 0.45


def score(estimator: Estimator, split: Split, seed: int) -> float:
    model = estimator.fit(split.train, random=PrivacyRandom.simulate(seed))
    return measure(model, split.train, split.test, "rmse")["rmse"]


def their_epsilon(epsilon: float) -> float:
    """Return the epsilon that the noise of the poster's experiments really costs.

    The stated deviation over the sensitivity 4 L^2, all rounds together, is 2 sqrt(ln(1/delta)) / epsilon.
    """
    return gaussian_epsilon(2 * math.sqrt(math.log(1 / DELTA)) / (8 * epsilon), DELTA)


def own_means(split: Split) -> np.ndarray:
    """Return each person's mean of their own training ratings; the overall mean for those without any."""
    train = split.train
    counts = np.diff(train.indptr)
    sums = np.bincount(train.rows(), train.values.astype(np.float64), minlength=train.n_users)
    return np.where(counts > 0, sums / np.maximum(counts, 1), train.values.mean(dtype=np.float64))


def user_mean(split: Split) -> float:
    return rmse(split, own_means(split)[split.test.rows()])


def rmse(split: Split, predicted: np.ndarray) -> float:
    facts = split.train.facts
    clipped = np.clip(predicted, facts.low, facts.high)
    return float(np.sqrt(np.mean((clipped - split.test.values) ** 2)))


def poster(split: Split, epsilon: float, seed: int, *, theirs: bool) -> float:
    """Score the poster's steps: user means taken off, the noise honest or theirs."""
    train, test = split.train, split.test
    half = (train.facts.high - train.facts.low) / 2
    means = own_means(split)
    values = np.zeros((train.n_users, train.n_items), dtype=np.float32)
    seen = np.zeros_like(values)
    rows = train.rows()
    values[rows, train.items] = train.values - means[rows]
    seen[rows, train.items] = 1
    settings = Poster(
        row_bound=POSTER_RESIDUAL * half * math.sqrt(train.facts.max_per_user),
        radius=POSTER_ENTRY * half * math.sqrt(values.size),
        rounds=POSTER_ROUNDS,
        delta=DELTA,
    )
    noise = settings.their_noise(epsilon) if theirs else settings.honest_noise(epsilon)
    matrix = settings.complete(values, seen, noise, seed)
    cells = test.rows()
    return rmse(split, means[cells] + matrix[cells, test.items])


def curves(
    split: Split, seed: int, names: Sequence[str], epsilons: Sequence[float], say: Callable[[str], None]
) -> dict[str, list[float]]:
    """Return the error of each method at each epsilon; flat ones once for all."""
    by_epsilon: dict[str, Callable[[float], float]] = {
        name: partial(_private, kind, split, seed) for name, kind in PRIVATE.items()
    }
    by_epsilon[HONEST] = partial(_poster, split, seed, False)
    by_epsilon[THEIRS] = partial(_poster, split, seed, True)
    found = {}
    for name in names:
        if name == MEAN:
            found[name] = [user_mean(split)] * len(epsilons)
        elif name == CLEAR:
            found[name] = [_private(FrankWolfe, split, seed, math.inf)] * len(epsilons)
        else:
            found[name] = [by_epsilon[name](epsilon) for epsilon in epsilons]
        say(f"  {name}: {' '.join(f'{value:.4f}' for value in found[name])}")
    return found


def _private(kind: type[Estimator], split: Split, seed: int, epsilon: float) -> float:
    return score(kind(epsilon=epsilon, delta=DELTA), split, seed)


def _poster(split: Split, seed: int, theirs: bool, epsilon: float) -> float:
    return poster(split, epsilon, seed, theirs=theirs)
