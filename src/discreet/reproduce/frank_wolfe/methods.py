"""Score every method of the comparison on one split."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from discreet.core.randomness import PrivacyRandom
from discreet.data.splits import Split
from discreet.evaluation.scoring import measure
from discreet.models.biases import Biases
from discreet.models.estimator import Estimator
from discreet.papers.frank_wolfe.covariance_svd import CovarianceSvd
from discreet.papers.frank_wolfe.frank_wolfe import FrankWolfe
from discreet.papers.frank_wolfe.printed_frank_wolfe import PrintedFrankWolfe
from discreet.papers.frank_wolfe.projected_gradient import ProjectedGradient
from discreet.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon
from discreet.reproduce.frank_wolfe.one_frame import (
    gradient_without_biases,
    mcsherry_mironov,
    svd_without_biases,
)

DELTA = 1e-6
_LARGEST = 20.0
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
PLAN = "frank-wolfe"
ONE = "frank-wolfe, one round"
TWO = "frank-wolfe, two rounds"
SVD = "covariance-svd"
PGD = "projected-gradient"
BIASES = "biases"
MEAN = "user mean"
CLEAR = "frank-wolfe without privacy"
HONEST = "as printed, honest noise"
OJA = "as printed with Oja, honest noise"
THEIRS = "as printed, their noise (NOT PRIVATE)"
TEN = "as printed, T = 10, honest noise"
# Without item biases, as the printed Frank-Wolfe is; and McSherry and Mironov for one rating at epsilon / 80.
SVD_PLAIN = "covariance-svd without item biases"
PGD_PLAIN = "projected-gradient without item biases"
MCSHERRY = "McSherry-Mironov as the poster ran it, epsilon / 80 a rating"
# The nuclear norm that was printed for all of Jester, scaled by the square root of the people at hand.
SCALED_K = "as printed, their k, honest noise"
THEIR_K_ON_JESTER = 11_667.0


def their_multiplier(epsilon: float) -> float:
    """Return the noise of the poster's experiments over the sensitivity 4 L^2, all rounds together.

    Stated are 2 sqrt(ln(1/delta)) / epsilon; the experiments drew an eighth of it.
    """
    return 2 * math.sqrt(math.log(1 / DELTA)) / (8 * epsilon)


def their_epsilon(epsilon: float) -> float:
    """Return the epsilon that the noise of the poster's experiments really costs."""
    return gaussian_epsilon(their_multiplier(epsilon), DELTA)


def at_their_noise(epsilon: float) -> Estimator:
    """Return the printed method with a budget that buys exactly their noise.

    A large epsilon is the same noise as a smaller one with another delta, and estimators refuse large ones.
    """
    told = min(their_epsilon(epsilon), _LARGEST)
    return PrintedFrankWolfe(epsilon=told, delta=gaussian_delta(their_multiplier(epsilon), told))


def _at(kind: Callable[..., Estimator], epsilon: float, **settings: object) -> Estimator:
    return kind(epsilon=epsilon, delta=DELTA, **settings)


MAKERS: dict[str, Callable[[float], Estimator]] = {
    PLAN: partial(_at, FrankWolfe),
    ONE: partial(_at, FrankWolfe, rounds=1),
    TWO: partial(_at, FrankWolfe, rounds=2),
    SVD: partial(_at, CovarianceSvd),
    PGD: partial(_at, ProjectedGradient),
    BIASES: partial(_at, Biases),
    CLEAR: lambda epsilon: _at(FrankWolfe, math.inf),
    HONEST: partial(_at, PrintedFrankWolfe),
    OJA: partial(_at, PrintedFrankWolfe, solver="oja"),
    THEIRS: at_their_noise,
    TEN: partial(_at, PrintedFrankWolfe, rounds=10),
    SCALED_K: partial(_at, PrintedFrankWolfe, radius=THEIR_K_ON_JESTER),
}
DENSE: dict[str, Callable[[Split, float, int], float]] = {
    SVD_PLAIN: svd_without_biases,
    PGD_PLAIN: gradient_without_biases,
    MCSHERRY: mcsherry_mironov,
}
ALL = (PLAN, ONE, SVD, PGD, BIASES, MEAN, CLEAR, HONEST, OJA, THEIRS)
ONE_FRAME = (*ALL, *DENSE)
NETFLIX = (HONEST, TEN, SVD_PLAIN, MCSHERRY, MEAN)
FOR_FULL_SIZE = (HONEST, THEIRS, TWO, MEAN)


def score(split: Split, name: str, epsilon: float, seed: int) -> float:
    """Return a method's RMSE on the held-out ratings."""
    if name == MEAN:
        return user_mean(split)
    if name in DENSE:
        return DENSE[name](split, epsilon, seed)
    model = MAKERS[name](epsilon).fit(split.train, random=PrivacyRandom.simulate(seed))
    return measure(model, split.train, split.test, "rmse")["rmse"]


def curve(load: Callable[[], Split], name: str, epsilons: Sequence[float], seed: int) -> list[float]:
    """Return a method's errors; one that does not depend on epsilon is fitted once."""
    if name in (MEAN, CLEAR):
        return [score(load(), name, math.inf, seed)] * len(epsilons)
    return [score(load(), name, epsilon, seed) for epsilon in epsilons]


def user_mean(split: Split) -> float:
    """Return the error of each person's mean of their own training ratings."""
    train, test = split.train, split.test
    sums = np.add.reduceat(np.append(train.values, 0.0), train.indptr[:-1])
    counts = np.diff(train.indptr)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), train.values.mean(dtype=np.float64))
    predicted = np.clip(means[test.rows()], train.facts.low, train.facts.high)
    return float(np.sqrt(np.mean((predicted - test.values) ** 2)))
