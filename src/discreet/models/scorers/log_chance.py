"""Compute the logarithm of the normal distribution, which numpy does not know.

One user's list is not worth loading scipy for, and scipy is slow for many. Between the points of a table
the logarithm is a cubic with the right slopes; scores are float32, whose rounding is far coarser.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.exports import Later

if TYPE_CHECKING:
    from discreet.models.scorers import log_chance_kernels as kernels
else:
    kernels = Later("discreet.models.scorers.log_chance_kernels")

#: Beyond these the chance is one, or too small for `erfc` and close to its leading terms.
LEAST, MOST = -36.0, 9.0
#: Points of the table a unit.
PER_UNIT = 32
# Up to so many numbers, as many as a large catalog has items, nothing is compiled for them.
_FEW = 1 << 17


def log_chance(numbers: npt.ArrayLike) -> Floats:
    """Return log P(Z <= x), to nine digits, for every x; a compiled loop is faster where there are many."""
    points = np.asarray(numbers, dtype=np.float64)
    values, slopes = chance_table()
    if points.size > _FEW:
        found = np.empty(points.shape)
        kernels.log_chances(points.ravel(), values, slopes, found.reshape(-1))
        return found
    place = (np.minimum(np.maximum(points, LEAST), MOST) - LEAST) * PER_UNIT
    # NaN stays NaN, whichever entry of the table it meets.
    left = np.minimum(np.where(place >= 0, place, 0.0).astype(np.int64), values.size - 2)
    part = place - left
    rest = 1 - part
    found = rest**2 * ((1 + 2 * part) * values[left] + part * slopes[left])
    found += part**2 * ((1 + 2 * rest) * values[left + 1] - rest * slopes[left + 1])
    if np.any(points < LEAST):
        found = np.where(points < LEAST, _far_below(np.minimum(points, LEAST)), found)
    return found


def _far_below(points: Floats) -> Floats:
    with np.errstate(over="ignore"):
        squares = points**2
        terms: Floats = (
            -squares / 2 - np.log(-points * math.sqrt(2 * math.pi)) - 1 / squares + 2.5 / squares**2
        )
    return terms


@cache
def chance_table() -> tuple[Floats, Floats]:
    """Return the logarithm and its slope (times the step) at the points of the table."""
    count = int((MOST - LEAST) * PER_UNIT) + 1
    points = [LEAST + k / PER_UNIT for k in range(count)]
    chances = [math.erfc(-x / math.sqrt(2)) / 2 for x in points]
    slopes = [
        math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / chance / PER_UNIT
        for x, chance in zip(points, chances, strict=True)
    ]
    return np.array([math.log(chance) for chance in chances]), np.array(slopes)
