"""Compile the logarithm of the normal distribution for many numbers."""

from __future__ import annotations

import numpy as np

from discreet.core import Array
from discreet.core.kernels import compiled, inner
from discreet.models.scorers.ranking import LEAST, MOST, PER_UNIT


@inner
def log_of_chance(number: float, table: Array, slopes: Array) -> float:
    """Return log P(Z <= number): a cubic between points of the table, leading terms far below it."""
    if number < LEAST:
        square = number * number
        terms = 2.5 / (square * square) - 1 / square
        return terms - square / 2 - np.log(-number * np.sqrt(2 * np.pi))  # type: ignore[no-any-return]
    if not number < MOST:
        return 0.0 if number >= MOST else number
    place = (number - LEAST) * PER_UNIT
    left = np.int64(place)
    part = place - left
    rest = 1 - part
    before = rest * rest * ((1 + 2 * part) * table[left] + part * slopes[left])
    after = part * part * ((1 + 2 * rest) * table[left + 1] - rest * slopes[left + 1])
    return before + after  # type: ignore[no-any-return]


@compiled
def log_chances(numbers: Array, table: Array, slopes: Array, out: Array) -> None:
    """Write log P(Z <= x) for every x."""
    for j in range(numbers.size):
        out[j] = log_of_chance(numbers[j], table, slopes)
