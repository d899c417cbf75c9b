"""Compute how much of a contribution that entered at release s is in release t, and undo it in the estimates.

Release t publishes sum over s <= t of C[t, s] x_s plus fresh noise, x_s being the exact sums of what entered
at release s. C is the square root of the matrix of (decayed) prefix sums, with columns of norm at most 1:
noise of later releases then cancels most of that of earlier ones. Entries of C are whole multiples of 2^-16,
cut toward zero, so that the bound has in whole numbers (proofs/follow.md).

References:
    Henzinger, Upadhyay and Upadhyay, "A unifying framework for differentially private sums under continual
    observation", 2024; columns are normalized as the tight noise of a single participation asks for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular, toeplitz

from discreet.core import Floats, integer, positive_finite

#: C is kept in whole multiples of 2^-FACTOR_BITS.
FACTOR_BITS = 16
#: A year of releases three times a day; C then has a million entries.
MOST_RELEASES = 1100
# Estimates of a contribution that decays faster than this would be of one release alone.
_LEAST_HALF_LIFE = 0.05


@final
@dataclass(frozen=True, kw_only=True)
class Factorization:
    """C for so many releases; `half_life`, in releases, states for which sums it is best (None: of all).

    Example:
        >>> year = Factorization(releases=52)
        >>> round(year.deviation(52), 2)
        1.95
    """

    releases: int
    half_life: float | None = None

    def __post_init__(self) -> None:
        integer("releases", self.releases, least=1, most=MOST_RELEASES)
        if self.half_life is not None:
            positive_finite("half_life", self.half_life)

    @property
    def whole(self) -> npt.NDArray[np.int64]:
        """Return C in multiples of 2^-16; no column's squares add up to more than 2^32."""
        return _whole(self.releases, self.half_life)

    def estimator(self, released: int, half_life: float | None) -> Floats:
        """Return the weights b with which b . y estimates the sum of x_s 2^-((t - s) / half_life).

        t is the latest of so many releases. The expectation of b . y is that sum exactly, whatever C is.
        """
        integer("released", released, least=1, most=self.releases)
        known = np.ldexp(self.whole[:released, :released].astype(np.float64), -FACTOR_BITS)
        wanted = decay(released, half_life)[::-1]
        weights: Floats = solve_triangular(known, wanted, lower=True, trans="T")
        return weights

    def steady_estimator(self, released: int, part: float) -> Floats:
        """Return weights that estimate the sum of everything with less noise than `estimator` does.

        They are a mean of its weights and, with `part`, of those with the least noise among all that are
        right where as much enters at every release. Where it does not, contributions of some releases count
        more than others: about 1.1 in the middle, a half in the latest. That matters to no ratio of two sums.
        """
        integer("released", released, least=1, most=self.releases)
        flow = np.ldexp(self.whole[:released, :released].sum(axis=1).astype(np.float64), -FACTOR_BITS)
        steady: Floats = released * flow / (flow @ flow)
        return part * steady + (1 - part) * self.estimator(released, None)

    def deviation(self, released: int, half_life: float | None = None) -> float:
        """Return the noise of that estimate, in units of what one batch with the whole budget would have."""
        return float(np.linalg.norm(self.estimator(released, half_life)))


@lru_cache(maxsize=8)
def _whole(releases: int, half_life: float | None) -> npt.NDArray[np.int64]:
    root = _square_root(releases) * decay(releases, half_life)
    plain = toeplitz(root, np.zeros(releases))
    # Entry by entry from the same numbers, so a column's norm is that of its own entries.
    normal = plain / np.sqrt((plain**2).sum(axis=0))
    whole: npt.NDArray[np.int64] = np.floor(np.ldexp(normal, FACTOR_BITS)).astype(np.int64)
    _shorten(whole)
    whole.flags.writeable = False
    return whole


def decay(count: int, half_life: float | None) -> Floats:
    """Return what is left of a contribution after 0, 1, 2, ... releases."""
    if half_life is None:
        return np.ones(count)
    return np.exp2(-np.arange(count) / max(half_life, _LEAST_HALF_LIFE))


def _square_root(count: int) -> Floats:
    """Return the coefficients binom(2k, k) / 4^k of (1 - x)^(-1/2), whose square is 1 / (1 - x)."""
    k = np.arange(1, count)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def _shorten(whole: npt.NDArray[np.int64]) -> None:
    """Lower the largest entry of a column whose floats were rounded up so far that its norm exceeds 1.

    Squares are added as Python's integers: nothing about the bound is left to floats.
    """
    bound = 1 << (2 * FACTOR_BITS)
    for column in range(whole.shape[1]):
        while sum(int(entry) ** 2 for entry in whole[:, column]) > bound:
            whole[int(np.argmax(whole[:, column])), column] -= 1
