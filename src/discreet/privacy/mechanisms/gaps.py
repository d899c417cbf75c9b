"""Choose which missing entries are reported as rated, by drawing the gaps between them.

A device then works in proportion to what it sends, not to the catalog. The scale of the gaps is rounded so
that fake ratings are slightly more frequent than in the mechanism's table, which only hides more
(proofs/local_nuclear.md).
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.core.checks import require
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.sampling.draws import geometric

# Fake ratings are more frequent than in the table by this share, which covers every rounding of a float.
MARGIN = Fraction(1, 2**40)


def pretending_cells(gap: float, cells: int, random: PrivacyRandom) -> npt.NDArray[np.int64]:
    """Return which of `cells` entries are fake ratings, ascending; each independently by `realized(gap)`."""
    found, last, rate = [np.zeros(0, np.int64)], -1, realized(gap)
    while rate > 0 and last < cells:
        expected = (cells - last) * rate
        size = int(expected + 4 * math.sqrt(expected) + 16)
        positions = last + np.cumsum(np.minimum(geometric(gap, size, random), cells) + 1)
        found.append(positions[positions < cells])
        last = int(positions[-1])
    return np.concatenate(found)


@lru_cache(maxsize=64)
def gap_scale(fake: float) -> float:
    """Return the largest float s with 1 - e^(-1/s) >= fake (1 + MARGIN), rounded down once more."""
    wanted = Fraction(fake) * (1 + MARGIN)
    require(0 < wanted < 1, "fake", fake, must="be strictly between 0 and 1")
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        rest = 1 - Decimal(wanted.numerator) / Decimal(wanted.denominator)
        return math.nextafter(float(-1 / rest.ln()), 0.0)


def realized(gap: float) -> float:
    """Return the probability of a fake rating when gaps have this scale. A scale of 0 means never."""
    return -math.expm1(-1 / gap) if gap else 0.0
