"""Shares of noise: each of several parties adds a part, and even the fewest parties of a sum add enough.

Numbers are whole multiples of 2^-bits in a ring of 64 bits, so that masks can hide them. A sum of discrete
Gaussians hides as much as one Gaussian of their joint variance, less 4 per share (proofs/federated.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core.randomness import PrivacyRandom
from discreet.privacy.accounting.rounding import round_up
from discreet.privacy.mechanisms.fixed_point import FixedPoint
from discreet.privacy.sampling.draws import LARGEST_SCALE, add_discrete_gaussian


class ShareUnits(NamedTuple):
    """How noise is shared: by how many parties at least, in units of 2^-bits."""

    least: int
    bits: int

    def width(self, sigma: float, part: Fraction = Fraction(1)) -> float:
        """Return the deviation of one share of `part` of the variance sigma^2, in units."""
        if sigma == 0:
            return 0.0
        variance = part * Fraction(sigma) ** 2 * 4**self.bits / self.least + 4
        return round_up(Fraction(math.isqrt(math.ceil(variance)) + 1))

    def deviation(self, sigma: float) -> float:
        """Return the deviation of one share of noise with this total deviation."""
        return math.ldexp(self.width(sigma), -self.bits)

    def can_draw(self, sigma: float) -> bool:
        """Return whether the sampler can draw shares of noise with this total deviation."""
        return self.width(sigma) <= LARGEST_SCALE


def with_share(
    sums: FixedPoint, sigma: float, units: ShareUnits, random: PrivacyRandom, *, symmetric: bool
) -> npt.NDArray[np.uint64]:
    """Return exact sums with one share of the noise, in the ring.

    For a symmetric matrix, return one triangle.
    """
    counts = upper(sums.counts) if symmetric else sums.counts.ravel()
    numbers = counts.astype(np.int64) << (units.bits - sums.bits)
    if not symmetric:
        return _added(numbers, units.width(sigma), random).view(np.uint64)
    diagonal = upper(np.eye(len(sums.counts), dtype=np.bool_))
    numbers[diagonal] = _added(numbers[diagonal], units.width(sigma), random)
    # An entry off the diagonal counts twice in the Frobenius norm.
    numbers[~diagonal] = _added(numbers[~diagonal], units.width(sigma, Fraction(1, 2)), random)
    return numbers.view(np.uint64)


def _added(numbers: npt.NDArray[np.int64], width: float, random: PrivacyRandom) -> npt.NDArray[np.int64]:
    """Return the caller's numbers with noise added in place."""
    if width:
        add_discrete_gaussian(numbers, width, random)
    return numbers


def upper(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the upper triangle with the diagonal, row by row."""
    return np.asarray(matrix)[np.triu_indices(len(matrix))]
