"""Add Laplace or Gaussian noise to vectors and symmetric matrices.

Values are rounded to fixed point, with a power of two as unit, and integer noise is added there. Every
output is a whole number of units, and the set of possible outputs doesn't depend on the data. So no
floating-point artifact of the noise can reveal the input.

The unit depends on public numbers only: the noise, the sensitivity, and the number of coordinates. Rounding
and discrete noise cost some privacy. The noise scale is raised to cover it, by a share of less than 2^-11,
unless so many coordinates or so much noise is requested that the unit has to be coarser. Arrays are processed
in chunks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from discreet.core import (
    Floats,
    NotFiniteArray,
    PrivacyRandom,
    non_negative,
    positive,
    positive_finite,
    require,
)
from discreet.privacy.accounting.events import event_types
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.accounting.rounding import (
    exact,
    floor_log2,
    power_of_two,
    root_above,
    round_down,
    round_up,
)
from discreet.privacy.errors import NotCertified, OffGrid, SumTooLarge
from discreet.privacy.sampling.draws import LARGEST_SCALE, add_discrete_gaussian, add_discrete_laplace

if TYPE_CHECKING:
    from dp_accounting import DpEvent


Integers = npt.NDArray[np.int64]
# Adds noise of a given scale, in fixed-point units, to integers in place.
Adder = Callable[[Integers, float, PrivacyRandom], None]

# The share of the noise that rounding may cost. A finer unit costs less and overflows sooner.
_ROUNDING_COST = Fraction(1, 2**12)
# Units in the noise scale: at least this many, so that rounding is negligible; at most this many, for int64.
_LEAST_UNITS, _MOST_UNITS = 2**10, 2**50
_TOO_FAR = 2.0**62
_CHUNK = 1 << 16
_BLOCK_ROWS = 64


class FixedPoint(NamedTuple):
    """Exact numbers: integers in units of 2^-bits, even beyond the 53 bits of a float."""

    counts: Integers
    bits: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseGrid:
    """A fixed-point format of unit 2^exponent, and the scale of the noise in these units.

    `off_diagonal` is the noise scale off the diagonal of a symmetric matrix.
    """

    exponent: int
    noise: float
    off_diagonal: float
    add: Adder

    def release(self, values: npt.NDArray[Any], random: PrivacyRandom, bits: int | None = None) -> Floats:
        """Return the values with noise. The result is the only array of their size that is allocated.

        With `bits` the values are integers in units of 2^-bits.
        """
        out = np.empty(values.shape, dtype=np.float64)
        source, target = values.reshape(-1), out.reshape(-1)
        for start in range(0, source.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            target[part] = self._noisy(source[part], self.noise, random, bits)
        return out

    def release_symmetric(
        self, values: npt.NDArray[Any], random: PrivacyRandom, bits: int | None = None
    ) -> Floats:
        """Return the symmetric matrix that the upper triangle defines, with symmetric noise."""
        size = values.shape[0]
        out = np.empty((size, size), dtype=np.float64)
        for start in range(0, size, _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, size)
            rows = slice(start, stop)
            exact = values[rows, start:].copy() if bits is not None else finite_floats(values[rows, start:])
            # Only the upper half of the left square is used. The rest is set to zero first, so that even the
            # noisy entries that are discarded do not depend on the values.
            exact[:, : stop - start] = np.triu(exact[:, : stop - start], 1)
            block = self._noisy(exact, self.off_diagonal, random, bits)
            upper = np.triu(block[:, : stop - start], 1)
            out[rows, rows] = upper + upper.T
            out[rows, stop:] = block[:, stop - start :]
            out[stop:, rows] = block[:, stop - start :].T
        np.fill_diagonal(out, self.release(values.diagonal(), random, bits))
        return out

    def _noisy(
        self, values: npt.NDArray[Any], noise: float, random: PrivacyRandom, bits: int | None
    ) -> Floats:
        """Return the values rounded, with noise, and scaled back. Scaling by a power of two is exact."""
        units = self._nearest(finite_floats(values)) if bits is None else self._shifted(values, bits)
        self.add(units, noise, random)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(units.astype(np.float64), self.exponent)

    def _nearest(self, values: Floats) -> Integers:
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.rint(np.ldexp(values, -self.exponent))
            self._refuse_far(bool(np.any(np.abs(scaled) >= _TOO_FAR)))
            return scaled.astype(np.int64, order="C")

    def _shifted(self, counts: Integers, bits: int) -> Integers:
        """Round integers in units of 2^-bits to units of 2^exponent, halves to even, as `rint` does."""
        coarser = bits + self.exponent
        if coarser <= 0:
            most = int(_TOO_FAR) >> min(-coarser, 62)
            self._refuse_far(bool(np.any((counts >= most) | (counts <= -most))))
            return np.left_shift(counts, -coarser, order="C", dtype=np.int64)
        if coarser > 62:
            return np.zeros(counts.shape, dtype=np.int64)
        down = np.right_shift(counts, coarser, order="C", dtype=np.int64)
        rest, half = counts - (down << coarser), 1 << (coarser - 1)
        down += (rest > half) | ((rest == half) & (down & 1 == 1))
        return down

    def _refuse_far(self, beyond: bool) -> None:
        if beyond:
            raise SumTooLarge(exponent=62 + self.exponent)


def grid_exponent(noise: Fraction, finest_needed: Fraction) -> int:
    """Return the exponent of a unit that is small against the noise and adds little to the sensitivity.

    A unit of `finest_needed` would double the sensitivity.
    """
    fine = floor_log2(min(noise / _LEAST_UNITS, finest_needed * _ROUNDING_COST))
    return max(fine, floor_log2(noise / _MOST_UNITS) + 1)


def fixed_point_noise(noise: Fraction) -> float:
    """Return the noise scale in fixed-point units as a float, rounded up."""
    require(
        noise <= LARGEST_SCALE,
        "noise",
        float(noise),
        must="be at most 2^55 units",
        do="Release fewer values.",
    )
    return round_up(noise)


def finite_floats(values: npt.NDArray[Any]) -> Floats:
    """Return a float64 copy of finite numbers, exactly as they are."""
    if not np.can_cast(values.dtype, np.float64, casting="safe"):
        raise OffGrid(name="values", must=f"be real numbers of at most 64 bits, not {values.dtype}")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise NotFiniteArray(name="values")
    # Beyond 2^53, floats skip integers, and the sensitivity doesn't account for that.
    if values.dtype.kind in "iu" and np.any(np.abs(numbers) > 2.0**53):
        raise SumTooLarge(exponent=53)
    return numbers


def square_matrix(matrix: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the argument as an array. Raise unless it is square."""
    values = np.asarray(matrix)
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    require(square, "matrix", values.shape, must="have as many rows as columns")
    return values


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


# The noise of releases, planned or drawn: events, scales, and deviations

#: The noise of one release.
Noise = Gaussian | Laplace
#: One entry of a certificate (proofs/certificate.md).
Release = dict[str, Any]


def gaussian_event(epsilon: float, delta: float) -> DpEvent:
    """Return the event of all releases of a Gaussian session with this budget."""
    return Gaussian.calibrated(epsilon=epsilon, delta=delta, l2_sensitivity=1.0).event()


def laplace_event(epsilon: float) -> DpEvent:
    """Return the event of one Laplace release of this epsilon."""
    return Laplace.calibrated(epsilon=epsilon, l1_sensitivity=1.0).event()


def laplace_scale(*, epsilon: float, bound: float, rounds: int = 1) -> float:
    """Return the scale of each of `rounds` equal Laplace releases that cost this epsilon together.

    Raises:
        ParameterError: No such noise can be drawn. An estimator calls this before any budget is spent.
    """
    return laplace_noise(Fraction(epsilon) / rounds, bound).scale


def gaussian_deviation(*, epsilon: float, delta: float, bound: float, rounds: int = 1) -> float:
    """Return the deviation of each of `rounds` equal Gaussian releases that cost (epsilon, delta) together.

    Raises:
        ParameterError: No such noise can be drawn. An estimator calls this before any budget is spent.
    """
    sigma = gaussian_sigma(gaussian_multiplier(epsilon, delta), bound, Fraction(1, rounds))
    return Gaussian(sigma=sigma, l2_sensitivity=bound).sigma


def planned_noise(epsilon: float, delta: float, shares: Sequence[Fraction]) -> list[Noise]:
    """Return the noise of one release per share for sensitivity 1, as a session would draw it."""
    if math.isinf(epsilon):
        return [Gaussian(sigma=0.0, l2_sensitivity=1.0) for _ in shares]
    if delta == 0:
        parts = [round_down(Fraction(epsilon) * share) for share in shares]
        return [Laplace.calibrated(epsilon=part, l1_sensitivity=1.0) for part in parts]
    whole = gaussian_multiplier(epsilon, delta)
    return [Gaussian(sigma=gaussian_sigma(whole, 1.0, share), l2_sensitivity=1.0) for share in shares]


def laplace_noise(epsilon: Fraction, bound: float) -> Laplace:
    """Return the noise of a pure release of this epsilon. A part that no float can state isn't spent."""
    return Laplace.calibrated(epsilon=round_down(epsilon), l1_sensitivity=bound)


@lru_cache(maxsize=256)
def gaussian_sigma(multiplier: float, bound: float, share: Fraction) -> float:
    """Return the smallest float with (bound / sigma)^2 at most share / multiplier^2."""
    exact = Fraction(multiplier) * Fraction(bound)
    if share == 1:
        return round_up(exact)
    return round_up(root_above(exact**2 / share))


def additive_release(
    name: str, noise: Gaussian | Laplace, size: int, *, symmetric: bool = False, count: int = 1
) -> Release:
    """Return a release of `size` numbers, or of a symmetric matrix, with Gaussian or Laplace noise."""
    grid = noise._grid(size)
    if grid is None:
        raise NotCertified(name=name)
    gaussian = isinstance(noise, Gaussian)
    bound = noise.l2_sensitivity if isinstance(noise, Gaussian) else noise.l1_sensitivity
    return {
        "mechanism": "discrete-gaussian" if gaussian else "discrete-laplace",
        "name": name,
        "count": count,
        "norm": "l2" if gaussian else "l1",
        "sensitivity": exact(Fraction(bound) / power_of_two(grid.exponent)),
        "rounded": True,
        "coordinates": size,
        "scale": exact(grid.noise),
        **({"off_diagonal": exact(grid.off_diagonal)} if symmetric else {}),
    }
