"""Separate signal from noise in a second moment, and fix the signs of its eigenvectors.

The moment's diagonal is not contributed, and a matrix without its diagonal has negative eigenvalues as large
as its signal, so they do not measure the noise. The edge of the noise is therefore computed from what is
known: the noise that was added and the number of rows. The diagonal is filled in from the directions above
the edge. Everything here works on released numbers.

A library picks the signs of eigenvectors by rounding, so they depend on the processor. Releases must not:
otherwise one seed gives two models. Every decomposition whose vectors are kept fixes its signs here.

Where only a few vectors fit in memory, the leading eigenvector is found from products with vectors. The
solver does not know whether they are noisy, only how many it may ask for.

References:
    Oja. Simplified neuron model as a principal component analyzer. Journal of Mathematical Biology 1982.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.linalg.blas import dsymv
from scipy.sparse.linalg import LinearOperator, eigsh

from discreet.core import Floats, experiment_generator, integer

#: From SciPy 1.17 on, a restart of ARPACK draws its direction from this generator. Without it, equal sums
#: gave models with different bits. Every call of `eigsh` and `svds` passes it.
REPEATABLE: Mapping[str, Any] = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}

# Rounds of filling in the diagonal and finding the directions again.
_ROUNDS = 6
# Up to this many columns all eigenvectors are computed, which is as fast as computing only the largest.
_FEW = 400
# Beyond so many columns an iteration finds the largest.
_SMALL = 1600
# So many are looked for at first, in a space of so many dimensions. Eigenvalues inside the noise take most of
# the time, so hardly any are asked for; the precision is that of the least clear one, others are exact.
_FIRST, _SPACE, _PRECISION = 12, 128, 1e-6
_TINY = 1e-9
# Shares of the columns that are tried alone.
_PARTS_TRIED = tuple(0.7**k for k in range(6))


class Outstanding(NamedTuple):
    """The eigenvalues above the edge, largest first, their signal part, and their unit vectors."""

    values: Floats
    strengths: Floats
    vectors: Floats
    edge: float


def edge_of_noise(size: int, noise: float, rows: float) -> float:
    """Return the largest eigenvalue that noise and chance alone give a moment of `size` columns.

    Off the diagonal a symmetric release with the multiplier `noise` has a variance of noise^2/2. Rows of
    norm 1 without any structure add rows/size^2 to it. The spectrum of such a matrix is a semicircle with
    this edge; if rows are few, a single row adds an eigenvalue of 1.
    """
    chance = max(rows, 0.0) / size
    return 2 * math.sqrt(size * noise**2 / 2 + chance) + min(1.0, chance)


def outstanding(
    moment: Floats, noise: float, rows: float, *, most: int, above_edge: float = 1.05
) -> Outstanding:
    """Return at most `most` directions whose eigenvalues exceed the edge by the factor `above_edge`.

    `moment` is symmetric; its diagonal is ignored. Noise enlarges an eigenvalue and rotates its vector;
    `strengths` are the signal along the directions as found.
    """
    edge = edge_of_noise(len(moment), noise, rows)
    least = max(above_edge * edge, _TINY)
    filled = moment.copy()
    np.fill_diagonal(filled, 0.0)
    count = -1
    for _ in range(_ROUNDS):
        values, vectors = _largest(filled, most, least, _FIRST if count < 0 else count + 1)
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
    """Return the leading share of the columns with the most signal above the edge, and its directions.

    Every column raises the edge of the noise, and weak ones hardly raise the signal. The first `beyond`
    directions do not count. Without noise all columns are used.
    """
    parts = _PARTS_TRIED if noise else (1.0,)
    tried = []
    for size in sorted({max(int(part * len(moment)), min(fewest, len(moment))) for part in parts}):
        columns = np.sort(best_first[:size])
        inside = moment[np.ix_(columns, columns)]
        tried.append((columns, outstanding(inside, noise, rows, most=most, above_edge=above_edge)))
    return max(reversed(tried), key=lambda one: float(one[1].strengths[beyond:].sum()))


def _largest(matrix: Floats, most: int, least: float, likely: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues and their vectors, largest first; those below `least` may be missing.

    About as many as `likely` are above it.
    """
    size = len(matrix)
    if size <= _FEW or most * 4 > size:
        values, vectors = np.linalg.eigh(matrix)
    elif size <= _SMALL:
        values, vectors = eigh(matrix, subset_by_index=(size - most, size - 1))
    else:
        values, vectors = _largest_by_iteration(matrix, most, least, likely)
    order = np.argsort(-values, kind="stable")[:most]
    return values[order], with_fixed_signs(vectors[:, order])


def _largest_by_iteration(matrix: Floats, most: int, least: float, likely: int) -> tuple[Floats, Floats]:
    """Look for ever more eigenvalues, until one is below `least` or there are `most`."""
    size = len(matrix)
    # The product reads one triangle only, which takes half the time.
    product = LinearOperator((size, size), matvec=lambda vector: dsymv(1.0, matrix.T, vector), dtype=float)
    count = min(likely, most)
    while True:
        space = min(max(_SPACE, 2 * count + 1), size)
        values, vectors = eigsh(
            product, count, which="LA", v0=np.ones(size), ncv=space, tol=_PRECISION, **REPEATABLE
        )
        if count == most or values.min() <= least:
            return values, vectors
        count = min(2 * count, most)


# Entries this close to the largest count as equal, so that rounding does not choose among them.
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


Product = Callable[[Floats], Floats]


class LeadingDirection(NamedTuple):
    """A direction, the matrix's product with it, and its Rayleigh quotient.

    `product` is the mean of `averaged` products with nearly this direction, so the variance of independent
    noise is smaller by that factor.
    """

    vector: Floats
    product: Floats
    value: float
    averaged: int


def oja(product: Product, start: Floats, *, steps: int) -> LeadingDirection:
    """Turn `start` toward the leading direction by exactly `steps` products.

    Each step is v <- v + c W v and a normalization. In the first half c is so large that only W v is left (a
    power step), which finds the direction soonest; in the second half c falls like one over the number of
    steps, which averages the noise of the products away.
    """
    searching = integer("steps", steps, least=1) // 2
    vector, total = unit(start), np.zeros_like(start)
    along: list[float] = []
    for step in range(steps):
        answer = product(vector)
        if step < searching:
            vector = unit(answer)
            continue
        along.append(float(vector @ answer))
        total += answer
        vector = unit(total)
    return LeadingDirection(vector, total / len(along), float(np.mean(along)), len(along))


def unit(vector: Floats) -> Floats:
    """Return the vector scaled to norm 1; a zero vector stays as it is."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector


def random_signs(size: int, *purpose: str | int) -> Floats:
    """Return a public starting point: random signs determined by `purpose` alone."""
    return experiment_generator(0, "signs", *purpose).choice(np.array([-1.0, 1.0]), size)
