"""Shrink noisy averages and co-occurrences by empirical Bayes, and merge several noisy counts of items.

In a released matrix of directed co-occurrences, directions above the edge of the noise hold what many pairs
have in common. What they leave is shrunk entry by entry: most pairs of items are as frequent as popularity
implies, and a few are far more frequent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Self, final

import numpy as np

from discreet.core import Floats, Indices
from discreet.solvers.spectrum import outstanding

_STEPS = 50
_SPREAD_AT_START = 0.1
_SMALLEST_SPREAD = 1e-4
_RIDGE = 1e-6
_VECTOR_STEPS = 30
_VECTOR_SPREAD_AT_START = 0.01
_SMALLEST_VECTOR_SPREAD = 1e-6
_COORDINATE_SPREAD_AT_START = 0.3
# Vectors of so many items at a time stay in the processor's cache.
_ITEMS_AT_A_TIME = 512


class EmpiricalBayes(NamedTuple):
    """The posterior mean and variance of every effect, and the share of its spread that is known."""

    mean: Floats
    variance: Floats
    known: Floats


def shrink(sums: Floats, counts: Floats, variance: Floats | float, features: Floats) -> EmpiricalBayes:
    """Estimate effects b from sums = counts * b + noise, with b spread normally around features @ theta.

    Theta and the spread are fitted by expectation-maximization in which every item is weighted by the share
    of signal in its sum's variance: in the plain likelihood a long tail of items without signal would decide
    the spread of the others.
    """
    variance = np.broadcast_to(np.asarray(variance, dtype=np.float64), sums.shape)
    squares, ridge = counts**2, _RIDGE * np.eye(features.shape[1])
    prior: Floats = features @ np.zeros(features.shape[1])
    spread = _SPREAD_AT_START

    def posterior() -> EmpiricalBayes:
        signal = squares * spread
        total = signal + variance
        mean = prior + spread * counts * (sums - counts * prior) / total
        return EmpiricalBayes(mean=mean, variance=spread * variance / total, known=signal / total)

    for _ in range(_STEPS):
        mean, left, known = posterior()
        weighted = features * known[:, None]
        theta = np.linalg.solve(weighted.T @ features + ridge, weighted.T @ mean)
        prior = features @ theta.astype(np.float64, copy=False)
        off = (mean - prior) ** 2 + left
        spread = max(float(known @ off) / max(float(known.sum()), _RIDGE), _SMALLEST_SPREAD)
    return posterior()


class VectorEstimate(NamedTuple):
    """The posterior mean of every vector, and the variance of its first coordinate."""

    mean: Floats
    first_variance: Floats


def shrink_vectors(
    sums: Floats, counts: Floats, moment: Floats, variance: Floats, center: Floats, first: Floats
) -> VectorEstimate:
    """Estimate vectors z from sums = counts * z @ moment + noise, with z spread around `center`.

    Each coordinate has its own spread, fitted as in `shrink`; that of the first is multiplied by `first` for
    each item, since first coordinates may be known more or less well beforehand. The other normal matrices
    of all items are diagonal in one basis, so a step costs the number of items times the square of the number
    of factors.
    """
    residuals = sums - counts[:, None] * (center @ moment)
    precision = counts**2 / variance
    right = (counts / variance)[:, None] * (residuals @ moment)
    spread = np.full(sums.shape[1], _VECTOR_SPREAD_AT_START)
    for _ in range(_VECTOR_STEPS):
        offset, left = _vector_posterior(precision, right, moment, spread, first)
        share = 1 - left / spread
        share[:, 0] = 1 - left[:, 0] / (spread[0] * first)
        found = share * (offset**2 + left)
        found[:, 0] /= first
        seen = found.sum(axis=0) / np.maximum(share.sum(axis=0), 1e-9)
        spread = np.maximum(seen, _SMALLEST_VECTOR_SPREAD)
    offset, left = _vector_posterior(precision, right, moment, spread, first)
    return VectorEstimate(center + offset, left[:, 0])


def _vector_posterior(
    precision: Floats, right: Floats, moment: Floats, spread: Floats, first: Floats
) -> tuple[Floats, Floats]:
    """Return the posterior offsets from the center and their variances, coordinate by coordinate."""
    root = np.sqrt(spread)
    values, basis = np.linalg.eigh(root[:, None] * (moment @ moment) * root)
    values, turned = np.maximum(values, 0.0), root[:, None] * basis
    # Another spread of the first coordinate changes one entry of the normal matrix: an update of rank one.
    change = (1 / first - 1) / spread[0]
    offsets, variances = np.empty_like(right), np.empty_like(right)
    for start in range(0, len(right), _ITEMS_AT_A_TIME):
        some = slice(start, start + _ITEMS_AT_A_TIME)
        shrunk = 1 / (1 + precision[some, None] * values)
        mean, left = ((right[some] @ turned) * shrunk) @ turned.T, shrunk @ (turned**2).T
        column = (shrunk * turned[0]) @ turned.T
        factor = change[some] / (1 + change[some] * column[:, 0])
        offsets[some] = mean - (factor * mean[:, 0])[:, None] * column
        variances[some] = left - factor[:, None] * column**2
    return offsets, variances


def shrink_coordinates(sums: Floats, counts: Floats, variance: Floats) -> Floats:
    """Estimate vectors z from sums = counts * z + noise; each coordinate has its own spread around 0."""
    precision = (counts**2 / variance)[:, None]
    means = sums / counts[:, None]
    spread = np.full(sums.shape[1], _COORDINATE_SPREAD_AT_START)
    for _ in range(_VECTOR_STEPS):
        share = precision / (precision + 1 / spread)
        seen = (share * ((share * means) ** 2 + spread * (1 - share))).sum(axis=0)
        spread = np.maximum(seen / np.maximum(share.sum(axis=0), 1e-9), _SMALLEST_SPREAD)
    shrunk: Floats = precision / (precision + 1 / spread) * means
    return shrunk


_LEAST_VOTES = 0.05
_LEAST_VARIANCE = 1e-9
# A weighted sum of votes that is mostly noise is raised to this share of the sum of `raised` votes.
_LEAST_PART = 0.05


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VoteEstimate:
    """Items' votes (a user's votes have norm 1) and the variance of their noise."""

    votes: Floats
    variance: Floats
    #: The votes, each raised to at least its own noise.
    raised: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        raised = np.maximum(self.votes, np.maximum(self.error, _LEAST_VOTES))
        object.__setattr__(self, "raised", raised)

    @classmethod
    def of(cls, votes: Floats, noise: float) -> Self:
        """Return one release with this noise on every item."""
        return cls(votes=votes, variance=np.full(votes.size, max(noise**2, _LEAST_VARIANCE)))

    def with_more(self, counted: Floats, noise: float, item_weights: Floats) -> VoteEstimate:
        """Merge a release of votes weighted by `item_weights`, up to one factor estimated from the sums."""
        return self._merged(counted, noise, self._factor(counted, noise, item_weights) * item_weights)

    def with_again(self, votes: Floats, noise: float) -> VoteEstimate:
        """Merge a second release of the same votes, whose scale need not be estimated."""
        return self._merged(votes, noise, np.ones(votes.size))

    def _merged(self, counted: Floats, noise: float, factor: Floats) -> VoteEstimate:
        variance = np.maximum((noise / factor) ** 2, _LEAST_VARIANCE)
        together = 1 / (1 / self.variance + 1 / variance)
        votes = together * (self.votes / self.variance + counted / factor / variance)
        return VoteEstimate(votes=votes, variance=together)

    @property
    def error(self) -> Floats:
        """Return the standard deviation of the noise on each item."""
        return np.sqrt(self.variance)

    @property
    def likely(self) -> Floats:
        """Return votes above zero in the same order: clipping would make ties."""
        width = np.maximum(self.error, 0.1)
        raised: Floats = width * np.logaddexp(0, self.votes / width)
        # Far below zero the soft floor is smaller than the smallest number.
        return np.maximum(raised, 1e-150)

    def with_some(self, chosen: Indices, votes: Floats, noise: float, rest: VoteEstimate) -> VoteEstimate:
        """Merge a further release of the `chosen` items' votes; all others get what `rest` has for them."""
        again = VoteEstimate(votes=self.votes[chosen], variance=self.variance[chosen]).with_again(
            votes, noise
        )
        found, variance = rest.votes.copy(), rest.variance.copy()
        found[chosen], variance[chosen] = again.votes, again.variance
        return VoteEstimate(votes=found, variance=variance)

    def expected(self, counted: Floats, noise: float, item_weights: Floats) -> Floats:
        """Return items' expected counts in a release weighted by `item_weights`, from the merged votes."""
        return self.raised * item_weights * self._factor(counted, noise, item_weights)

    def _factor(self, counted: Floats, noise: float, item_weights: Floats) -> float:
        """Return the sum of the counts over that of weighted votes; both are raised to at least their noise.

        Noise can make the sum of many counts negative. Counts of nearly zero would make every mean per count
        as large as one likes.
        """
        own = max(float(self.votes @ item_weights), _LEAST_PART * float(self.raised @ item_weights))
        least = max(float(noise * np.sqrt(counted.size)), _LEAST_VARIANCE)
        return max(float(counted.sum()), least) / own


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
