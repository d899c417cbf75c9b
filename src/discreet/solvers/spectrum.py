"""Separate signal from noise in a second moment, and fix the signs of its eigenvectors.

Nobody tells the moment's diagonal, and a matrix without its diagonal has negative eigenvalues as large as
its signal: they say nothing about noise. So the edge of the noise is computed from what is known, the noise
that was added and the number of rows, and the diagonal is filled in from the directions that stand out.
Everything here works on released numbers.

A library's choice depends on rounding, and so on the processor. What is released, and what noise is added to,
must not: otherwise one seed gives two models. This is a file of its own because every decomposition needs it
whose vectors outlive their products.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import eigsh

from discreet.core.arrays import Floats

# How often the diagonal is filled in from the directions that it then helps to find.
_ROUNDS = 6
# Up to this many columns all eigenvalues are computed; beyond it only the outermost.
_SMALL = 1600
_TINY = 1e-9
# Parts of the columns that are looked at alone.
_PARTS_TRIED = tuple(0.7**k for k in range(6))


class Outstanding(NamedTuple):
    """Hold the eigenvalues beyond the edge, largest first, what is signal in them, and their unit vectors."""

    values: Floats
    strengths: Floats
    vectors: Floats
    edge: float


def edge_of_noise(size: int, noise: float, rows: float) -> float:
    """Return the largest eigenvalue that noise and chance alone give a moment of `size` columns.

    Off the diagonal a symmetric release with the multiplier `noise` has a variance of noise^2/2. Rows of
    length 1 without any structure add rows/size^2 to it. Such a matrix fills a half circle with this edge;
    where rows are few, one row alone has an eigenvalue of 1 besides.
    """
    chance = max(rows, 0.0) / size
    return 2 * math.sqrt(size * noise**2 / 2 + chance) + min(1.0, chance)


def outstanding(
    moment: Floats, noise: float, rows: float, *, most: int, above_edge: float = 1.05
) -> Outstanding:
    """Return, at most so many, the directions whose eigenvalues pass the edge by the factor `above_edge`.

    `moment` is symmetric, its diagonal is not looked at. Noise lengthens an eigenvalue and turns its vector;
    `strengths` are what is left of the values for the directions as they were found.
    """
    edge = edge_of_noise(len(moment), noise, rows)
    least = max(above_edge * edge, _TINY)
    filled = moment.copy()
    np.fill_diagonal(filled, 0.0)
    count = -1
    for _ in range(_ROUNDS):
        values, vectors = _largest(filled, most)
        kept = values > least
        values, vectors = values[kept], vectors[:, kept]
        strengths = np.sqrt(values**2 - edge**2)
        diagonal = vectors**2 @ strengths
        settled = values.size == count and np.allclose(np.diagonal(filled), diagonal, rtol=1e-2, atol=_TINY)
        if settled or not values.size:
            break
        count = values.size
        np.fill_diagonal(filled, diagonal)
    return Outstanding(values, strengths, vectors, edge)


def clearest_part(
    moment: Floats,
    best_first: npt.NDArray[np.int64],
    noise: float,
    rows: float,
    *,
    fewest: int,
    most: int,
    above_edge: float,
    beyond: int = 0,
) -> tuple[npt.NDArray[np.int64], Outstanding]:
    """Return the columns, so many of the best, that show most when looked at alone, and what they show.

    With every column the edge of the noise rises, with weak ones the signal hardly does. The first `beyond`
    directions do not count. Without noise all columns are best.
    """
    parts = _PARTS_TRIED if noise else (1.0,)
    tried = []
    for size in sorted({max(int(part * len(moment)), min(fewest, len(moment))) for part in parts}):
        columns = np.sort(best_first[:size])
        inside = moment[np.ix_(columns, columns)]
        tried.append((columns, outstanding(inside, noise, rows, most=most, above_edge=above_edge)))
    return max(reversed(tried), key=lambda one: float(one[1].strengths[beyond:].sum()))


def _largest(matrix: Floats, most: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues and their vectors, largest first."""
    size = len(matrix)
    if size <= _SMALL or most * 4 > size:
        values, vectors = np.linalg.eigh(matrix)
    else:
        values, vectors = eigsh(matrix, k=most, which="LA", v0=np.ones(size))
    order = np.argsort(-values, kind="stable")[:most]
    return values[order], with_fixed_signs(vectors[:, order])


# Entries so close to the largest count as equal, so that rounding does not choose among them either.
_EQUAL = 1 - 1e-6


def column_signs(vectors: Floats) -> Floats:
    """Return 1 or -1 for each column: times it, the first of its largest entries is positive.

    Example:
        >>> import numpy as np
        >>> column_signs(np.array([[0.6, 0.7071], [-0.8, -0.7071]]))
        array([-1.,  1.])
    """
    if not vectors.size:
        return np.ones(vectors.shape[1])
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= _EQUAL * sizes.max(axis=0), axis=0)
    return np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def with_fixed_signs(vectors: Floats) -> Floats:
    """Return the same columns, or their opposites, with the signs of `column_signs`."""
    fixed: Floats = vectors * column_signs(vectors)
    return fixed
