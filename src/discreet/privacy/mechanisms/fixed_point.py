"""Round values to fixed point, with a power of two as unit, and add integer noise there.

No floating-point artifact of the noise can reveal the input: every output is a whole number of units, and the
set of possible outputs doesn't depend on the data. Arrays are processed in chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.checks import require
from discreet.core.errors import NotFiniteArray
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.accounting.rounding import floor_log2, round_up
from discreet.privacy.errors import OffGrid, SumTooLarge
from discreet.privacy.sampling.draws import LARGEST_SCALE

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
