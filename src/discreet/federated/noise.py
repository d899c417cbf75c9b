"""Set who adds how much noise: each party enough for its own people, or all parties together enough for all.

Two classes, two promises; docs/federated.md has the table of who may be hostile. With `OwnNoise` a party's
people are protected from everybody who sees its answers, whatever the others do. With `SharedNoise` each
party adds a share and nobody may see an answer alone, which is what the masks and the keeper in `keeper.py`
are for. Both are proved in proofs/federated.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.checks import DataError, integer, require
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.accounting.rounding import round_up
from discreet.privacy.assumptions import Assumption, Fact, Kind
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.mechanisms.fixed_point import FixedPoint
from discreet.privacy.sampling.draws import LARGEST_SCALE, add_discrete_gaussian
from discreet.statistics.fixed_point import PRODUCT_BITS

Numbers = npt.NDArray[Any]
#: Every statistic is a whole number of fixed-point units 2^-STEP_BITS (proofs/exact_sums.md).
STEP_BITS = PRODUCT_BITS
# The numbers to send, and the standard deviation of the noise on them.
Noisy = tuple[Numbers, float]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNoise:
    """Let every party add all the noise that its own promise needs."""

    masked: ClassVar[bool] = False
    number_type: ClassVar[str] = "<f8"

    @property
    def least_parties(self) -> int:
        """Return the fewest answers that a round needs."""
        return 1

    def assumes(self, epsilon: float, delta: float) -> tuple[Assumption, ...]:
        """Return what the guarantee assumes in addition to the public facts."""
        return ()

    def protect(
        self, statistic: Floats, noise: Gaussian | Laplace, symmetric: bool, random: PrivacyRandom
    ) -> Noisy:
        """Return the numbers to send and the standard deviation of the noise on them."""
        released = (
            upper(noise.release_symmetric(statistic, random))
            if symmetric
            else noise.release(statistic, random).ravel()
        )
        return released, math.sqrt(noise.variance)

    def read(self, total: Numbers) -> Floats:
        """Return the sum of answers as numbers."""
        return np.asarray(total, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNoise:
    """Let every party add a share of the noise; only sums over enough parties are ever seen.

    Parameters:
        parties: The number of parties.
        missing: How many of them, together, may be absent or reveal their noise. The others add enough. A
            coordinator can leave parties out: the label says what is left if it works with one of them.
    """

    masked: ClassVar[bool] = True
    number_type: ClassVar[str] = "<u8"

    parties: int
    missing: int = 2

    def __post_init__(self) -> None:
        integer("parties", self.parties, least=2, most=2**20)
        integer("missing", self.missing, least=0)
        require(
            self.missing <= self.parties - 2,
            "missing",
            self.missing,
            f"must be at most {self.parties - 2}, so that two parties are left to hide behind each other",
        )

    @property
    def least_parties(self) -> int:
        """Return the fewest answers that a round needs."""
        return self.parties - self.missing

    def assumes(self, epsilon: float, delta: float) -> tuple[Assumption, ...]:
        """Return what the guarantee assumes, and the guarantee that is left if that is false."""
        trusted = self.least_parties
        always = (
            Assumption.of(Kind.PARTY, Fact.COLLUSION),
            Assumption.of(Kind.PARTY, Fact.NOISE_SHARES, parties=trusted),
        )
        if math.isinf(epsilon):
            return always
        curious, alone = (self._left(epsilon, delta, shares) for shares in (trusted - 1, 1))
        # A coordinator chooses the parties that it skips: those that it works with are never among them.
        coordinator = self.missing > 0
        return (
            *always,
            Assumption.of(Kind.PARTY, Fact.KNOWN_SHARE, epsilon=curious, coordinator=coordinator),
            Assumption.of(Kind.PARTY, Fact.ONE_SHARE, epsilon=alone),
        )

    def _left(self, epsilon: float, delta: float, shares: int) -> float | None:
        """Return the epsilon that `shares` shares of the noise guarantee, rounded up; None if it is none."""
        multiplier = gaussian_multiplier(epsilon, delta) * math.sqrt(shares / self.least_parties)
        left = gaussian_epsilon(multiplier, delta)
        return math.ceil(100 * left) / 100 if math.isfinite(100 * left) else None

    def protect(
        self, statistic: Floats, noise: Gaussian | Laplace, symmetric: bool, random: PrivacyRandom
    ) -> Noisy:
        """Return fixed-point units with a share of the noise, not yet masked, and that share's deviation."""
        if not isinstance(noise, Gaussian):
            raise DataError("Shares of noise add up for Gaussian noise only: pass a delta above 0.")
        return self.share(FixedPoint(_fixed_point(statistic), STEP_BITS), noise, symmetric, random)

    def share(self, sums: FixedPoint, noise: Gaussian, symmetric: bool, random: PrivacyRandom) -> Noisy:
        """Return exact sums with a share of the noise, not yet masked, and that share's deviation."""
        counts = upper(sums.counts) if symmetric else sums.counts.ravel()
        units = counts.astype(np.int64) << (STEP_BITS - sums.bits)
        if not symmetric:
            return units.view(np.uint64), self._add(units, noise.sigma, Fraction(1), random)
        diagonal = upper(np.eye(len(sums.counts), dtype=np.bool_))
        on, off = units[diagonal], units[~diagonal]
        deviation = self._add(on, noise.sigma, Fraction(1), random)
        # An entry off the diagonal counts twice in the Frobenius norm.
        self._add(off, noise.sigma, Fraction(1, 2), random)
        units[diagonal], units[~diagonal] = on, off
        return units.view(np.uint64), deviation

    def _add(
        self, units: npt.NDArray[np.int64], sigma: float, part: Fraction, random: PrivacyRandom
    ) -> float:
        """Add in place this party's share of `part` of the variance; return its deviation."""
        width = self._width(sigma, part)
        if width:
            add_discrete_gaussian(units, width, random)
        return math.ldexp(width, -STEP_BITS)

    def can_draw(self, sigma: float) -> bool:
        """Return whether the sampler draws shares of noise with this deviation in all."""
        return self._width(sigma, Fraction(1)) <= LARGEST_SCALE

    def deviation(self, sigma: float) -> float:
        """Return the deviation of a party's share of noise with this deviation in all."""
        return math.ldexp(self._width(sigma, Fraction(1)), -STEP_BITS)

    def _width(self, sigma: float, part: Fraction) -> float:
        """Return the deviation of a share of `part` of the variance, in fixed-point units."""
        if sigma == 0:
            return 0.0
        variance = part * Fraction(sigma) ** 2 * 4**STEP_BITS / self.least_parties + 4
        return round_up(Fraction(math.isqrt(math.ceil(variance)) + 1))

    def read(self, total: Numbers) -> Floats:
        """Return the unmasked sum of answers as numbers; the upper half of the ring is negative."""
        signed = np.asarray(total, dtype=np.uint64).view(np.int64)
        return np.ldexp(signed.astype(np.float64), -STEP_BITS)


def _fixed_point(statistic: Floats) -> npt.NDArray[np.int64]:
    scaled = np.ldexp(statistic, STEP_BITS)
    units = scaled.astype(np.int64)
    if not np.array_equal(units, scaled):
        raise DataError("A statistic is not a whole number of fixed-point units, which shared noise needs.")
    return units


def upper(matrix: Numbers) -> Numbers:
    """Return the upper triangle with the diagonal, row by row."""
    return np.asarray(matrix)[np.triu_indices(len(matrix))]


def symmetric_from(triangle: Floats) -> Floats:
    """Return the symmetric matrix with this upper triangle."""
    size = (math.isqrt(8 * triangle.size + 1) - 1) // 2
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return matrix + np.triu(matrix, 1).T


def total_deviation(deviations: Sequence[float]) -> float:
    """Return the standard deviation of a sum of independent noises."""
    return math.sqrt(math.fsum(value**2 for value in deviations))
