"""Denoise a released matrix of directed co-occurrences: a low-rank part, and each entry by empirical Bayes.

Directions above the edge of the noise hold what many pairs have in common. What they leave is shrunk entry by
entry: most pairs of items are as frequent as popularity implies, and a few are far more frequent.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.solvers.spectrum import outstanding

# Entries are shrunk in this many groups of about equal size, by their expected size.
_BINS = 16
# Variances of the prior, relative to that of the noise.
_SCALES = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0])
# The prior of a group is fitted to at most so many entries, starting with so many at zero.
_MOST_FITTED, _AT_ZERO = 8192, 10.0
_ROUNDS = 30
# Posterior means are computed for so many values at once: what that needs stays in the processor's cache.
_AT_ONCE = 4096


def denoised_pairs(pairs: Floats, noise: float, users: float, expected: Floats, *, most: int) -> Floats:
    """Return the posterior mean of `pairs`, to whose every entry noise of this deviation was added.

    `expected` is proportional to the size that an item's pairs have if items are chosen independently. At
    most `most` directions are used. The diagonal is ignored and comes out empty. Without noise nothing else
    changes.
    """
    clean = pairs.copy()
    np.fill_diagonal(clean, 0.0)
    if not noise:
        return clean
    # Either half of the matrix has half of the variance.
    even, odd, variance = (clean + clean.T) / 2, (clean - clean.T) / 2, noise**2 / 2
    found = outstanding(even, noise, users, most=most, above_edge=1.0)
    common: Floats = (found.vectors * found.strengths) @ found.vectors.T
    upper = np.triu_indices(len(pairs), 1)
    groups = _groups((expected[:, None] * expected)[upper])
    rest = _means_by_group((even - common)[upper], variance, groups)
    ahead = _means_by_group(odd[upper], variance, groups)
    np.fill_diagonal(common, 0.0)
    common[upper] += rest + ahead
    common.T[upper] += rest - ahead
    return common


def posterior_means(values: Floats, variance: float, sizes: Floats) -> Floats:
    """Return the posterior means of numbers seen with normal noise of this variance.

    Their prior is a mixture of normals around zero, fitted by expectation-maximization to each group of
    numbers with similar `sizes`.
    """
    return _means_by_group(values, variance, _groups(sizes))


def _groups(sizes: Floats) -> list[Indices]:
    return np.array_split(np.argsort(sizes, kind="stable"), _BINS)


def _means_by_group(values: Floats, variance: float, groups: list[Indices]) -> Floats:
    means = np.zeros_like(values)
    for group in groups:
        if group.size:
            shares = _mixture(values[group[:: group.size // _MOST_FITTED + 1]], variance)
            for start in range(0, group.size, _AT_ONCE):
                few = group[start : start + _AT_ONCE]
                means[few] = _means(values[few], variance, shares)
    return means


def _mixture(values: Floats, variance: float) -> Floats:
    """Return the shares of the prior's parts."""
    likely, shares = _likelihood(values, variance), np.full(_SCALES.size, 1 / _SCALES.size)
    for _ in range(_ROUNDS):
        parts = likely * shares
        shares = (parts / parts.sum(axis=1, keepdims=True)).sum(axis=0)
        shares[0] += _AT_ZERO
        shares /= values.size + _AT_ZERO
    return shares


def _means(values: Floats, variance: float, shares: Floats) -> Floats:
    parts = _likelihood(values, variance) * shares
    kept: Floats = (parts @ (_SCALES / (1 + _SCALES))) / parts.sum(axis=1)
    return values * kept


def _likelihood(values: Floats, variance: float) -> Floats:
    """Return the likelihood of each value under each part of the prior, up to one factor for each value."""
    squares = (np.minimum(np.abs(values) / np.sqrt(variance), 1e100) ** 2)[:, None]
    spread = 1 + _SCALES
    logarithm = -0.5 * (squares / spread + np.log(spread))
    likely: Floats = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    return likely
