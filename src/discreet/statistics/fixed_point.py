"""Define the fixed-point formats of contributions, and how many users a sum may hold.

A contribution is truncated toward zero to whole fixed-point units, so its norm cannot grow. Units are added
as 64-bit integers, which neither round nor depend on the order. No number of one user exceeds the bound its
statistic declares, so a sum over n users stays below n times that many units; `MOST_PEOPLE` keeps it below
2^63 (proofs/exact_sums.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats

Steps = npt.NDArray[np.int64]

#: Fraction bits of a contributed vector: 2^24 units are 1.
VECTOR_BITS = 24
#: Fraction bits of a row whose products are contributed; an entry fits an int16, and keeps two digits even in
#: a row of thousands of ratings.
ROW_BITS = 14
#: Fraction bits of products of two entries, and of products with a vector.
PRODUCT_BITS = 2 * ROW_BITS
#: Fraction bits of entries whose products are added by matrix multiplication in floats, 2^27 of them exactly.
ROOT_BITS = 13
#: Factor that makes up for rounding in a norm computed from up to 2^31 terms, with a margin.
ROUNDING = 1 - 1e-6
#: The most units that one user may add to any entry of a sum.
MOST_STEPS = 1.5 * 2.0**PRODUCT_BITS
#: Users in one sum: 2^34 of them with `MOST_STEPS` each stay below 2^63.
MOST_PEOPLE = 1 << 34

VECTOR_STEPS = 2.0**VECTOR_BITS
ROW_STEPS = 2.0**ROW_BITS
ROOT_STEPS = 2.0**ROOT_BITS


def to_fixed_point(numbers: Floats, bits: int = VECTOR_BITS) -> Floats:
    """Return numbers in fixed-point units, truncated toward zero; those that are not finite become 0."""
    units: Floats = np.trunc(np.ldexp(numbers, bits))
    units[~np.isfinite(units)] = 0.0
    return units


def as_fixed_point(sums: Floats) -> Steps:
    """Return sums of fixed-point units, exact in floats, as integers."""
    return sums.astype(np.int64)
