"""The poster's two other methods without item biases, and McSherry and Mironov as the poster ran them.

The package's `covariance-svd` and `projected-gradient` release item biases first; the printed Frank-Wolfe has
none. An order of methods is fair only if all have biases or none has. All is dense: n x d numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.core.randomness import PrivacyRandom
from discreet.data.splits import Split
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.experiments import simulated_gaussian

Floats = npt.NDArray[np.float64]
PER_USER, FACTORS, DELTA = 80, 20, 1e-6
# Residuals are clamped to this before they are released, as McSherry and Mironov do.
_CLAMP = 1.0
# One rating moves their weighted covariance by at most this, in units of the squared clamp.
_ONE_RATING = 1 + 2 * math.sqrt(2)
# What they spend on the overall mean, on item means and on the covariance, and their pull of item means.
_SHARES, _PULL = (0.02, 0.19, 0.79), 15.0
# The assumed variance of what no method explains, for the ridge of a person's own fit.
_UNEXPLAINED = 0.8
_ROUNDS = 5


@dataclass(frozen=True)
class Table:
    """Hold ratings in a dense table: zero where nothing was rated, people's own means, and who rated what."""

    values: Floats
    seen: Floats
    means: Floats

    @classmethod
    def of(cls, split: Split) -> Table:
        """Return the training ratings with each person's mean taken off."""
        train = split.train
        values, seen = (np.zeros((train.n_users, train.n_items)) for _ in range(2))
        values[train.rows(), train.items] = train.values
        seen[train.rows(), train.items] = 1.0
        counts = seen.sum(axis=1, keepdims=True)
        middle = (train.facts.low + train.facts.high) / 2
        means = np.where(counts > 0, values.sum(axis=1, keepdims=True) / np.maximum(counts, 1), middle)
        return cls((values - means) * seen, seen, means)


def svd_without_biases(split: Split, epsilon: float, seed: int) -> float:
    """Release one covariance of residuals from people's own means, at the level of people."""
    table = Table.of(split)
    noise = gaussian_multiplier(epsilon, DELTA) * _CLAMP**2
    return _error(split, table, _svd(table, noise, PrivacyRandom.simulate(seed)))


def mcsherry_mironov(split: Split, epsilon: float, seed: int) -> float:
    """Release means and covariance for one rating at epsilon / 80, as the poster's comparison does."""
    table, random = Table.of(split), PrivacyRandom.simulate(seed)
    each = epsilon / PER_USER
    delta = DELTA * math.expm1(each) / math.expm1(epsilon)
    multiplier = gaussian_multiplier(each, delta)
    # The three releases share one budget: shares of 1 / multiplier^2 add up.
    noises = [multiplier / math.sqrt(share) for share in _SHARES]
    width = split.train.facts.high - split.train.facts.low
    sums, counts = table.values.sum(axis=0), table.seen.sum(axis=0)
    overall = float(sums.sum() + random_normal(noises[0] * width, 1, random)[0]) / counts.sum()
    noisy = sums + random_normal(noises[1] * width, sums.size, random)
    # How often an item was rated is taken without noise: a gift to this method.
    biases = (noisy + _PULL * overall) / (counts + _PULL)
    rest = Table((table.values - biases * table.seen), table.seen, table.means)
    matrix = _svd(rest, noises[2] * _ONE_RATING * _CLAMP**2, random)
    return _error(split, rest, matrix, biases)


def gradient_without_biases(split: Split, epsilon: float, seed: int) -> float:
    """Alternate own gradient steps with a projection onto the nuclear ball by a noisy Y'Y of all people."""
    table, random = Table.of(split), PrivacyRandom.simulate(seed)
    bound = _CLAMP * math.sqrt(PER_USER)
    noise = gaussian_multiplier(epsilon, DELTA) * math.sqrt(_ROUNDS) * bound**2
    people, items = table.values.shape
    radius = 0.6 * math.sqrt(people * items)
    matrix = np.zeros_like(table.values)
    for _ in range(_ROUNDS):
        matrix = matrix - table.seen * matrix + np.clip(table.values, -_CLAMP, _CLAMP)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        moment = matrix.T @ (matrix * np.minimum(1, bound / np.maximum(lengths, 1e-12)) ** 2)
        released = simulated_gaussian(moment, sigma=noise, bound=bound**2, random=random, symmetric=True)
        values, vectors = np.linalg.eigh(released)
        # Below this the spectrum of the noise alone would lie.
        sizes = np.sqrt(np.maximum(values - 2 * noise * math.sqrt(items), 0.0))
        kept = _onto_simplex(sizes, radius) / np.maximum(np.sqrt(np.maximum(values, 1e-12)), 1e-12)
        matrix = matrix @ (vectors * np.minimum(kept, 1.0)) @ vectors.T
    return _error(split, table, matrix)


def random_normal(sigma: float, size: int, random: PrivacyRandom) -> Floats:
    """Return noise as the package draws it."""
    return simulated_gaussian(np.zeros(size), sigma=sigma, bound=1.0, random=random)


def _svd(table: Table, noise: float, random: PrivacyRandom) -> Floats:
    """Release the weighted covariance, and fit every person to its leading directions."""
    counts = np.maximum(table.seen.sum(axis=1, keepdims=True), 1.0)
    rows = np.clip(table.values, -_CLAMP, _CLAMP)
    moment = (rows / counts).T @ rows
    released = simulated_gaussian(moment, sigma=noise, bound=_CLAMP**2, random=random, symmetric=True)
    values, vectors = np.linalg.eigh(released)
    items = len(values)
    # A person with c of d items adds about c / d^2 of their covariance; noise has eigenvalues up to the edge.
    scale = float(counts.sum()) / items**2
    spread = np.maximum(values[-FACTORS:] - 2 * noise * math.sqrt(items), 0.0) / scale
    factors = vectors[:, -FACTORS:] * np.sqrt(spread)
    return _own_fits(table, rows, factors[:, spread > 0])


def _own_fits(table: Table, rows: Floats, factors: Floats) -> Floats:
    """Return every person's ridge fit of their own residuals on public factors."""
    size = factors.shape[1]
    found = np.zeros_like(rows)
    if size == 0:
        return found
    products = (factors[:, :, None] * factors[:, None, :]).reshape(len(factors), -1)
    gram = (table.seen @ products).reshape(-1, size, size) + _UNEXPLAINED * np.eye(size)
    weights = np.linalg.solve(gram, (rows @ factors)[:, :, None])[:, :, 0]
    return weights @ factors.T


def _onto_simplex(sizes: Floats, radius: float) -> Floats:
    """Shrink nonnegative singular values by one amount so that they add up to at most the radius."""
    if sizes.sum() <= radius:
        return sizes
    falling = np.sort(sizes)[::-1]
    excess = (np.cumsum(falling) - radius) / np.arange(1, sizes.size + 1)
    shrink = excess[np.flatnonzero(falling > excess)[-1]]
    return np.maximum(sizes - shrink, 0.0)


def _error(split: Split, table: Table, matrix: Floats, biases: Floats | float = 0.0) -> float:
    facts, test = split.train.facts, split.test
    guess = np.clip(table.means + biases + matrix, facts.low, facts.high)[test.rows(), test.items]
    return float(np.sqrt(np.mean((guess - test.values) ** 2)))
