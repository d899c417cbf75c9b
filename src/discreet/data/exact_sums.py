"""Add up the ratings of repeated pairs, rounded once, so that the order of rows can't matter."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def exact_sums(values: npt.NDArray[np.float32], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the sum of each run, rounded once: the same for every order in which its values are listed.

    The order within a run follows from how all rows were sorted, so it depends on other users' rows. Doubles
    add without rounding as long as all partial sums are whole multiples, below 2^53, of one power of two.
    """
    wide = values.astype(np.float64)
    sums = np.add.reduceat(wide, starts)
    sizes = np.diff(starts, append=values.size)
    bound = np.maximum.reduceat(np.abs(wide), starts) * sizes
    inexact = bound > np.ldexp(np.minimum.reduceat(_units_in_last_place(wide), starts), 53)
    for run in np.flatnonzero(inexact).tolist():
        sums[run] = math.fsum(wide[starts[run] : starts[run] + sizes[run]])
    return sums


def _units_in_last_place(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the greatest power of two of which each value is a whole multiple; infinity for zero."""
    fractions, exponents = np.frexp(values)
    whole = np.ldexp(fractions, 24).astype(np.int64)
    units = np.ldexp((whole & -whole).astype(np.float64), exponents - 24)
    return np.where(whole == 0, np.inf, units)
