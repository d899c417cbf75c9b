"""The logarithm of the chance that a standard normal stays below a number, for arrays of any size.

numpy knows no normal distribution, and one person's list is not worth loading scipy for. Between the points
of a table the logarithm is a cubic with the right slopes; scores are float32, whose rounding is far coarser.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats

# Beyond these the chance is one, or too small for `erfc` and close to its leading terms.
_LEAST, _MOST = -36.0, 9.0
_PER_UNIT = 32
# Up to so many numbers, as many as a large catalog has items, nothing is loaded for them.
_FEW = 1 << 17


def log_chance(numbers: npt.ArrayLike) -> Floats:
    """Return log P(Z <= x), to nine digits, for every x; scipy is faster where there are many."""
    points = np.asarray(numbers, dtype=np.float64)
    if points.size > _FEW:
        from scipy.special import log_ndtr

        exact: Floats = log_ndtr(points)
        return exact
    values, slopes = _table()
    place = (np.clip(points, _LEAST, _MOST) - _LEAST) * _PER_UNIT
    left = np.minimum(np.nan_to_num(place).astype(np.int64), values.size - 2)
    part = place - left
    rest = 1 - part
    found: Floats = rest**2 * ((1 + 2 * part) * values[left] + part * slopes[left])
    found += part**2 * ((1 + 2 * rest) * values[left + 1] - rest * slopes[left + 1])
    if np.any(points < _LEAST):
        found = np.where(points < _LEAST, _far_below(np.minimum(points, _LEAST)), found)
    return found


def _far_below(points: Floats) -> Floats:
    with np.errstate(over="ignore"):
        squares = points**2
        terms: Floats = (
            -squares / 2 - np.log(-points * math.sqrt(2 * math.pi)) - 1 / squares + 2.5 / squares**2
        )
    return terms


@cache
def _table() -> tuple[Floats, Floats]:
    """Return the logarithm and its slope (times the step) at the points of the table."""
    count = int((_MOST - _LEAST) * _PER_UNIT) + 1
    points = [_LEAST + k / _PER_UNIT for k in range(count)]
    chances = [math.erfc(-x / math.sqrt(2)) / 2 for x in points]
    slopes = [
        math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / chance / _PER_UNIT
        for x, chance in zip(points, chances, strict=True)
    ]
    return np.array([math.log(chance) for chance in chances]), np.array(slopes)
