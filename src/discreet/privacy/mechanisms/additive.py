"""Add Laplace or Gaussian noise to vectors and symmetric matrices.

Values are rounded to fixed point and integer noise is added there (`fixed_point`). The fixed-point unit
depends on public numbers only: the noise, the sensitivity, and the number of coordinates. Rounding and
discrete noise cost some privacy. The noise scale is raised to cover it, by a share of less than 2^-11,
unless so many coordinates or so much noise is requested that the unit has to be coarser.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from discreet.core.arrays import Floats
from discreet.core.checks import non_negative, positive, positive_finite, require
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.accounting.events import event_types
from discreet.privacy.accounting.rounding import power_of_two, root_above, round_down, round_up
from discreet.privacy.mechanisms.fixed_point import (
    FixedPoint,
    NoiseGrid,
    finite_floats,
    fixed_point_noise,
    grid_exponent,
    square_matrix,
)
from discreet.privacy.sampling.draws import add_discrete_gaussian, add_discrete_laplace

if TYPE_CHECKING:
    from dp_accounting import DpEvent


# A draw's support ends at 89 scales (16 sigma) or more. A secret may move a value by at most this many
# scales, so that the probability outside the common support stays negligible (see the proofs).
MOST_SHIFT_LAPLACE = 32
MOST_SHIFT_GAUSSIAN = 8


class Additive(ABC):
    """Noise on every coordinate in fixed point, with a unit that depends on public numbers only."""

    __slots__ = ()

    def release(self, vector: npt.ArrayLike | FixedPoint, random: PrivacyRandom) -> Floats:
        """Return the values, of any shape, with noise on each of them. Fixed-point sums stay exact.

        Raises:
            DataError: A value isn't finite, or is too large for the fixed point.
        """
        values, bits = _taken(vector)
        if random.recording is not None:
            random.recording.exact(self, values if bits is None else _plain(values, bits))
        grid = self._grid(values.size)
        return _plain(values, bits) if grid is None else grid.release(values, random, bits)

    def release_symmetric(self, matrix: npt.ArrayLike | FixedPoint, random: PrivacyRandom) -> Floats:
        """Return the symmetric matrix that the upper triangle defines, with symmetric noise.

        An entry off the diagonal counts twice in the sensitivity, so it gets less noise: half the scale of a
        Laplace, 1 / sqrt(2) of a Gaussian.

        Raises:
            DataError: A value isn't finite, or is too large for the fixed point.
        """
        values, bits = _taken(matrix)
        grid = self._grid(square_matrix(values).size)
        if random.recording is not None:
            random.recording.exact(self, values if bits is None else _mirrored(_plain(values, bits)))
        if grid is None:
            return _mirrored(_plain(values, bits))
        return grid.release_symmetric(values, random, bits)

    @abstractmethod
    def _grid(self, size: int) -> NoiseGrid | None:
        """Return the fixed-point format for this many coordinates, or None without noise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Additive):
    """Laplace noise on each coordinate of a vector.

    Guarantee
        Pure `l1_sensitivity / scale` for inputs at most `l1_sensitivity` apart in the l1 norm. Under
        composition it costs at most as much as continuous Laplace noise. Rounding to fixed point is included
        (proofs/laplace.md).

    Assumes
        Draws are exact up to 2^-60 each and the bytes behind them are uniform (proofs/sampling.md).

    Parameters:
        scale: The noise has density proportional to exp(-|noise| / scale). 0 means no noise and no privacy.
        l1_sensitivity: The largest l1 distance of the inputs from neighboring datasets. For a symmetric
            matrix, the norm runs over all its entries.

    Example:
        >>> half = Laplace.calibrated(epsilon=0.5, l1_sensitivity=1.0)
        >>> half.release([3.0, 4.0], PrivacyRandom.from_os()).shape
        (2,)
    """

    scale: float
    l1_sensitivity: float

    def __post_init__(self) -> None:
        _check_noise("scale", self.scale, "l1_sensitivity", self.l1_sensitivity, MOST_SHIFT_LAPLACE)

    @classmethod
    def calibrated(cls, *, epsilon: float, l1_sensitivity: float) -> Self:
        """Return the mechanism with the least noise that guarantees pure `epsilon`.

        Infinity means no noise.
        """
        epsilon = positive("epsilon", epsilon)
        l1_sensitivity = positive_finite("l1_sensitivity", l1_sensitivity)
        if math.isinf(epsilon):
            return cls(scale=0.0, l1_sensitivity=l1_sensitivity)
        scale = _least_noise(Fraction(l1_sensitivity) / Fraction(epsilon), epsilon)
        return cls(scale=scale, l1_sensitivity=l1_sensitivity)

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one coordinate, without the addition for rounding."""
        return 2 * self.scale**2

    def event(self) -> DpEvent:
        """Return the event of a release, for the accountant."""
        types = event_types()
        if self.scale == 0:
            return types.NonPrivateDpEvent()
        return types.LaplaceDpEvent(round_down(Fraction(self.scale) / Fraction(self.l1_sensitivity)))

    def cdf(self, noise: npt.ArrayLike) -> Floats:
        """Return the probability that the noise is at most this, without the addition for rounding."""
        x = np.asarray(noise, dtype=np.float64)
        if self.scale == 0:
            return np.asarray(x >= 0, dtype=np.float64)
        tail = np.exp(-np.abs(x) / self.scale) / 2
        return np.where(x < 0, tail, 1 - tail)

    def _grid(self, size: int) -> NoiseGrid | None:
        if self.scale == 0 or size == 0:
            return None
        # One unit per coordinate for rounding, one because the noise itself is discrete.
        units = Fraction(2 * size)
        scale, sensitivity = Fraction(self.scale), Fraction(self.l1_sensitivity)
        exponent = grid_exponent(scale, sensitivity / units)
        noise = scale * (1 / power_of_two(exponent) + units / sensitivity)
        return NoiseGrid(
            exponent=exponent,
            noise=fixed_point_noise(noise),
            off_diagonal=fixed_point_noise(noise / 2),
            add=add_discrete_laplace,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Additive):
    """Gaussian noise on each coordinate of a vector.

    Guarantee
        The guarantee of continuous Gaussian noise of multiplier `sigma / l2_sensitivity`, alone and composed,
        for inputs at most `l2_sensitivity` apart in the l2 norm. Rounding to fixed point is included
        (proofs/gaussian.md).

    Assumes
        Draws are exact up to 2^-60 each and the bytes behind them are uniform (proofs/sampling.md).

    Parameters:
        sigma: The standard deviation of the noise. 0 means no noise and no privacy.
        l2_sensitivity: The largest l2 distance of the inputs from neighboring datasets. For a symmetric
            matrix, this is the Frobenius norm of the whole matrix.

    Example:
        >>> Gaussian.calibrated(epsilon=1.0, delta=1e-6, l2_sensitivity=2.0).sigma > 2
        True
    """

    sigma: float
    l2_sensitivity: float

    def __post_init__(self) -> None:
        _check_noise("sigma", self.sigma, "l2_sensitivity", self.l2_sensitivity, MOST_SHIFT_GAUSSIAN)

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, l2_sensitivity: float) -> Self:
        """Return the mechanism with the least noise that guarantees (epsilon, delta).

        Infinity means no noise.
        """
        from discreet.privacy.accounting.accountant import gaussian_multiplier

        epsilon = positive("epsilon", epsilon)
        l2_sensitivity = positive_finite("l2_sensitivity", l2_sensitivity)
        if math.isinf(epsilon):
            return cls(sigma=0.0, l2_sensitivity=l2_sensitivity)
        multiplier = gaussian_multiplier(epsilon, delta)
        require(
            math.isfinite(multiplier),
            "epsilon",
            epsilon,
            must="be larger: a float can't represent so much noise",
        )
        sigma = _least_noise(Fraction(multiplier) * Fraction(l2_sensitivity), epsilon)
        return cls(sigma=sigma, l2_sensitivity=l2_sensitivity)

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one coordinate, without the addition for rounding."""
        return self.sigma**2

    def event(self) -> DpEvent:
        """Return the event of a release, for the accountant."""
        types = event_types()
        if self.sigma == 0:
            return types.NonPrivateDpEvent()
        return types.GaussianDpEvent(round_down(Fraction(self.sigma) / Fraction(self.l2_sensitivity)))

    def cdf(self, noise: npt.ArrayLike) -> Floats:
        """Return the probability that the noise is at most this, without the addition for rounding."""
        x = np.asarray(noise, dtype=np.float64)
        if self.sigma == 0:
            return np.asarray(x >= 0, dtype=np.float64)
        return np.asarray(ndtr(x / self.sigma), dtype=np.float64)

    def _grid(self, size: int) -> NoiseGrid | None:
        if self.sigma == 0 or size == 0:
            return None
        exponent, noise, off_diagonal = _gaussian_scales(self.sigma, self.l2_sensitivity, size)
        return NoiseGrid(exponent=exponent, noise=noise, off_diagonal=off_diagonal, add=add_discrete_gaussian)


@lru_cache(maxsize=256)
def _gaussian_scales(sigma: float, l2_sensitivity: float, size: int) -> tuple[int, float, float]:
    """Return the exponent of the unit, and the noise in units: of an entry, and of one off a diagonal."""
    # Rounding moves each coordinate's difference by at most one unit.
    units = root_above(Fraction(size))
    exact, sensitivity = Fraction(sigma), Fraction(l2_sensitivity)
    exponent = grid_exponent(exact, sensitivity / units)
    noise = exact * (1 / power_of_two(exponent) + units / sensitivity)
    # Discrete noise of variance s^2 + 4 protects as much as continuous noise of variance s^2.
    alone, paired = root_above(noise**2 + 4), root_above(noise**2 / 2 + 4)
    return exponent, fixed_point_noise(alone), fixed_point_noise(paired)


def _check_noise(
    noise_name: str, noise: float, sensitivity_name: str, sensitivity: float, most_shift: int
) -> None:
    non_negative(noise_name, noise)
    positive_finite(sensitivity_name, sensitivity)
    require(
        noise == 0 or Fraction(sensitivity) <= most_shift * Fraction(noise),
        noise_name,
        noise,
        must=f"be at least 1/{most_shift} of {sensitivity_name}={sensitivity!r}",
        do="Lower epsilon; for a release without privacy pass math.inf.",
    )
    ok = Fraction(noise) / Fraction(sensitivity) < 2**1000
    require(ok, noise_name, noise, must=f"be in proportion to {sensitivity_name}={sensitivity!r}")


def _least_noise(exact: Fraction, epsilon: float) -> float:
    """Return the noise as a float that suffices when the event rounds down and the accountant up."""
    require(exact < 2**1000, "epsilon", epsilon, must="be larger: a float can't represent so much noise")
    return round_up(exact * (1 + Fraction(1, 2**40)))


def _taken(numbers: npt.ArrayLike | FixedPoint) -> tuple[npt.NDArray[Any], int | None]:
    return numbers if isinstance(numbers, FixedPoint) else (np.asarray(numbers), None)


def _plain(values: npt.NDArray[Any], bits: int | None) -> Floats:
    """Return the values as floats, for a release without noise."""
    return finite_floats(values) if bits is None else np.ldexp(values.astype(np.float64), -bits)


def _mirrored(matrix: Floats) -> Floats:
    upper = np.triu(matrix)
    return upper + np.triu(matrix, 1).T
