"""How the recovery error falls: log-log slopes to hold against the exponents of the theorems."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.datasets.synthetic import numbered
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.papers.one_bit.estimators import OneBitInput, OneBitObjective
from discreet.privacy.experiments import simulated_laplace

Floats = npt.NDArray[np.float64]
_BOUND = 10.0


def sample(side: int, rank: int, observed: float, seed: int) -> tuple[Interactions, Floats]:
    """Return verdicts on a share of the cells of a matrix of this rank, with entries of mean square 1."""
    draw = experiment_generator(seed, "rates", rank)
    left, right = (draw.uniform(-1, 1, (side, rank)) for _ in range(2))
    truth = 3 * left @ right.T / math.sqrt(rank)
    cells = np.sort(draw.permutation(side * side)[: round(observed * side * side)])
    rows, items = np.divmod(cells, side)
    verdicts = np.where(draw.random(cells.size) < expit(truth[rows, items]), 1, -1)
    facts = PublicFacts(n_items=side, low=-1, high=1, step=2, n_users=side)
    return numbered(np.bincount(rows, minlength=side), items, verdicts, facts=facts, name="rates"), truth


def error(kind: type, epsilon: float, side: int, rank: int, observed: float, seed: int) -> float:
    """Return the mean squared error with the true nuclear norm as radius, as the theorems assume."""
    data, truth = sample(side, rank, observed, seed)
    radius = float(np.linalg.svd(truth, compute_uv=False).sum())
    model = kind(epsilon=epsilon, leveling=0.0, bound=_BOUND, radius=radius)
    fitted = model.fit(data, random=PrivacyRandom.simulate(seed))
    return float(np.mean((fitted.scorer.left @ fitted.scorer.right.T - truth) ** 2))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y over log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def output_excess(epsilon: float, seed: int) -> float:
    """Return what the printed noise adds to the mean squared error."""
    random = PrivacyRandom.simulate(seed)
    noise = simulated_laplace(np.zeros(160_000), epsilon=epsilon, bound=2.0, random=random)
    return float(np.mean(noise**2))


def slopes(seed: int, side: int) -> dict[str, float]:
    """Return one draw's slopes: in the number of verdicts, the rank, and epsilon for three methods."""
    shares, ranks, epsilons = (0.1, 0.2, 0.4, 0.8), (1, 2, 4, 8), (0.25, 0.5, 1.0, 2.0)
    # The input theorem's constant is 1 / (1 - 2p), and 1 - 2p = tanh(epsilon / 2).
    told = [math.tanh(epsilon / 2) for epsilon in epsilons]
    by_share = [error(OneBitInput, math.inf, side, 1, share, seed) for share in shares]
    by_rank = [error(OneBitInput, math.inf, side, rank, 0.5, seed) for rank in ranks]
    inputs = [error(OneBitInput, epsilon, side, 1, 1.0, seed) for epsilon in epsilons]
    tilted = [error(OneBitObjective, epsilon, side, 1, 1.0, seed) for epsilon in epsilons]
    return {
        "n": slope(shares, by_share),
        "rank": slope(ranks, by_rank),
        "input": slope(told, inputs),
        "objective": slope(epsilons, tilted),
        "output": slope(epsilons, [output_excess(epsilon, seed) for epsilon in epsilons]),
    }
