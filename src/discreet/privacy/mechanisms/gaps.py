"""Choose which empty cells pretend to be rated by drawing the gaps between them.

A device so works in proportion to what it sends, not to the catalog. The scale of the gaps is rounded so that
cells pretend a little more often than the mechanism's table says: that only hides more
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

# Empty cells pretend by this share more often than the table says; it covers every rounding of a float.
MARGIN = Fraction(1, 2**40)


def pretending_cells(gap: float, cells: int, random: PrivacyRandom) -> npt.NDArray[np.int64]:
    """Return which of `cells` cells pretend, rising; each does independently with `realized(gap)`."""
    found, place, rate = [np.zeros(0, np.int64)], -1, realized(gap)
    while rate > 0 and place < cells:
        expected = (cells - place) * rate
        size = int(expected + 4 * math.sqrt(expected) + 16)
        steps = place + np.cumsum(np.minimum(geometric(gap, size, random), cells) + 1)
        found.append(steps[steps < cells])
        place = int(steps[-1])
    return np.concatenate(found)


@lru_cache(maxsize=64)
def gap_scale(fake: float) -> float:
    """Return the largest float s with 1 - e^(-1/s) >= fake (1 + MARGIN), rounded down once more."""
    wanted = Fraction(fake) * (1 + MARGIN)
    require(0 < wanted < 1, "fake", fake, "must lie strictly between 0 and 1")
    with localcontext(prec=60, rounding=ROUND_FLOOR):
        rest = 1 - Decimal(wanted.numerator) / Decimal(wanted.denominator)
        return math.nextafter(float(-1 / rest.ln()), 0.0)


def realized(gap: float) -> float:
    """Return the probability that a cell pretends when gaps have this scale; 0 stands for never."""
    return -math.expm1(-1 / gap) if gap else 0.0
