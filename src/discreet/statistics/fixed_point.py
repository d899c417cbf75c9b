"""Say once on which grids people's numbers are added, and how many people a sum may hold.

What a person tells is cut to whole steps toward zero, so its norm cannot grow, and steps are added as 64-bit
integers, which neither round nor care for the order. No number of one person exceeds the bound its statistic
declares, so a sum over n people stays below n times that many steps; `MOST_PEOPLE` keeps it below 2^63
(proofs/exact_sums.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats

Steps = npt.NDArray[np.int64]

#: Steps in a length of 1: a vector that is told, as a power of two.
VECTOR_BITS = 24
#: The entries of a row whose products are told: an int16 holds them, thousands of values keep two digits.
ROW_BITS = 14
#: Products of two entries, and products with a vector that are as fine as those.
PRODUCT_BITS = 2 * ROW_BITS
#: Entries whose products are added by matrix multiplication in floats, 2^27 of them exactly.
ROOT_BITS = 13
#: What rounding can have added to a norm computed from up to 2^31 terms, with room to spare.
ROUNDING = 1 - 1e-6
#: The most steps that one person may add to any place of a sum.
MOST_STEPS = 1.5 * 2.0**PRODUCT_BITS
#: People in one sum: 2^34 of them with `MOST_STEPS` each stay below 2^63.
MOST_PEOPLE = 1 << 34

VECTOR_STEPS = 2.0**VECTOR_BITS
ROW_STEPS = 2.0**ROW_BITS
ROOT_STEPS = 2.0**ROOT_BITS


def to_fixed_point(numbers: Floats, bits: int = VECTOR_BITS) -> Floats:
    """Return numbers in whole steps, cut toward zero; one that is not finite is left out."""
    steps: Floats = np.trunc(np.ldexp(numbers, bits))
    steps[~np.isfinite(steps)] = 0.0
    return steps


def as_fixed_point(sums: Floats) -> Steps:
    """Return sums of whole steps, exact in floats, as integers."""
    return sums.astype(np.int64)
