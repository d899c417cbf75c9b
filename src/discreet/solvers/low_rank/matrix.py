"""Keep a matrix as a product of thin factors, and project onto the nuclear-norm ball.

Nothing here is as large as the matrix itself unless the matrix is small. The projection needs only the
singular values above its threshold; a warm-started block method finds them and adds more until the threshold
is certain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Rows, multiply, positive, predict_cells
from discreet.solvers.errors import RadiusTooLarge
from discreet.solvers.spectrum import column_signs, with_fixed_signs

# Below this many rows or columns a full decomposition costs no more than a partial one.
_SMALL_SIDE = 160
# Vectors computed beyond those expected to survive; they make the others converge.
_SPARE_SHARE, _SPARE = 0.25, 6
_MOST_SWEEPS = 12
# The largest matrix (half a gigabyte) that is decomposed in full when the radius hardly limits the rank.
_MOST_ENTRIES = 1 << 26
_NEGLIGIBLE = 1e-12
# Relative squared norm below which a direction counts as dependent; the rest is orthonormal to 1e-10.
_DEPENDENT = 1e-6
_TINY = 1e-300


@final
@dataclass(frozen=True, slots=True)
class LowRank:
    """`left @ diag(values) @ right.T` with orthonormal columns and falling values."""

    left: Floats
    values: Floats
    right: Floats

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Self:
        """Return the matrix of zeros."""
        return cls(np.zeros((shape[0], 0)), np.zeros(0), np.zeros((shape[1], 0)))

    @classmethod
    def of_dense(cls, matrix: Floats) -> Self:
        """Decompose a small matrix."""
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        kept = values > _NEGLIGIBLE * max(float(values[0]), _TINY)
        return cls(left[:, kept], values[kept], right[kept].T)

    @classmethod
    def of_product(cls, left: Floats, right: Floats) -> Self:
        """Decompose `left @ right.T` for thin factors."""
        q_left, r_left = np.linalg.qr(left)
        q_right, r_right = np.linalg.qr(right)
        core = cls.of_dense(r_left @ r_right.T) if left.shape[1] else cls.zero((0, 0))
        return cls(q_left @ core.left, core.values, q_right @ core.right)

    @property
    def rank(self) -> int:
        """Return the number of values."""
        return self.values.size

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of the whole matrix."""
        return self.left.shape[0], self.right.shape[0]

    def with_fixed_signs(self) -> LowRank:
        """Return the same matrix with signs that rounding does not decide: those of the right factor."""
        signs = column_signs(self.right)
        return LowRank(self.left * signs, self.values, self.right * signs)

    def scaled(self) -> Floats:
        """Return the left factor times the values."""
        return self.left * self.values

    def dense(self) -> Floats:
        """Return the whole matrix; for small ones."""
        return self.scaled() @ self.right.T

    def mixed(self, other: LowRank, share: float) -> LowRank:
        """Return `(1 - share) * self + share * other`."""
        left = np.hstack([(1 - share) * self.scaled(), share * other.scaled()])
        return LowRank.of_product(left, np.hstack([self.right, other.right]))

    def squared_distance(self, other: LowRank) -> float:
        """Return the squared Frobenius distance to another matrix."""
        overlap = (self.left.T @ other.left) * (self.right.T @ other.right)
        cross = float(self.values @ overlap @ other.values)
        return max(float(self.values @ self.values + other.values @ other.values) - 2 * cross, 0.0)


@final
class ObservedEntries:
    """Observed entries of a matrix, by row and by column.

    Assumes
        Columns are sorted within a row and no entry occurs twice.
    """

    __slots__ = ("_by_column", "_order", "columns", "indptr", "rows", "shape")

    def __init__(self, indptr: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], n_columns: int) -> None:
        self.indptr, self.columns = indptr, columns
        self.shape = (indptr.size - 1, n_columns)
        self.rows = np.repeat(np.arange(self.shape[0], dtype=np.int64), np.diff(indptr))
        self._order = np.argsort(columns, kind="stable")
        ends = np.concatenate(([0], np.cumsum(np.bincount(columns, minlength=n_columns)))).astype(np.int64)
        self._by_column = (ends, self.rows[self._order].astype(np.int32))

    @property
    def size(self) -> int:
        """Return the number of observed entries."""
        return self.columns.size

    def row_counts(self) -> npt.NDArray[np.int64]:
        """Return the number of observed entries of every row."""
        return np.diff(self.indptr)

    def column_counts(self) -> npt.NDArray[np.int64]:
        """Return the number of observed entries of every column."""
        return np.diff(self._by_column[0])

    def of(self, matrix: LowRank) -> Floats:
        """Return the observed entries of a matrix."""
        entries: Floats = predict_cells(matrix.scaled(), matrix.right, self.rows, self.columns)
        return entries

    def times(self, values: Floats, dense: Floats) -> Floats:
        """Return the sparse matrix of these values times a dense one."""
        product: Floats = multiply(Rows(self.indptr, self.columns, values), dense)  # type: ignore[arg-type]
        return product

    def transposed_times(self, values: Floats, dense: Floats) -> Floats:
        """Return the transposed sparse matrix times a dense one."""
        ends, rows = self._by_column
        product: Floats = multiply(Rows(ends, rows, values[self._order]), dense)  # type: ignore[arg-type]
        return product

    def dense(self, values: Floats) -> Floats:
        """Return the sparse matrix in full; for small ones."""
        out = np.zeros(self.shape)
        out[self.rows, self.columns] = values
        return out


@final
@dataclass(frozen=True, slots=True)
class LowRankPlusSparse:
    """Product with `low + sparse`, which never forms the sum."""

    low: LowRank
    cells: ObservedEntries
    sparse: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Return the shape of the whole matrix."""
        return self.low.shape

    def times(self, dense: Floats) -> Floats:
        """Return the sum times a dense matrix."""
        return self.low.scaled() @ (self.low.right.T @ dense) + self.cells.times(self.sparse, dense)

    def transposed_times(self, dense: Floats) -> Floats:
        """Return the transposed sum times a dense matrix."""
        return self.low.right @ (self.low.scaled().T @ dense) + self.cells.transposed_times(
            self.sparse, dense
        )

    def dense(self) -> Floats:
        """Return the sum in full; for small ones."""
        return self.low.dense() + self.cells.dense(self.sparse)


def project_nuclear(operator: LowRankPlusSparse, radius: float, *, tolerance: float = 1e-4) -> LowRank:
    """Return the nearest matrix whose singular values add up to at most `radius`.

    The low-rank part of `operator` is where the search starts. `tolerance` bounds the residuals of the
    singular vectors that survive, relative to the largest singular value.
    """
    positive("radius", radius)
    if min(operator.shape) <= _SMALL_SIDE:
        return _shrunk(LowRank.of_dense(operator.dense()), radius)
    most = min(operator.shape)
    start = _filled(operator.low.right, min(most, operator.low.rank + _spare(operator.low.rank)))
    while 3 * start.shape[1] < most:
        found = _leading(operator, start, radius, tolerance)
        if _certain(found.values, radius):
            return _shrunk(found, radius)
        start = _filled(found.right, min(most, 2 * start.shape[1]))
    entries = operator.shape[0] * operator.shape[1]
    if entries > _MOST_ENTRIES:
        raise RadiusTooLarge(radius=radius, most=most // 3)
    return _shrunk(LowRank.of_dense(operator.dense()), radius)


def threshold(values: Floats, radius: float) -> float:
    """Return the soft threshold for falling values: the positive rest adds up to `radius`."""
    if float(values.sum()) <= radius:
        return 0.0
    cuts = (np.cumsum(values) - radius) / np.arange(1, values.size + 1)
    # If the radius is lost to rounding next to huge values, no value is above its own cut.
    left = np.flatnonzero(values > cuts)
    return float(cuts[left[-1] if left.size else 0])


def project_dense(matrix: Floats, radius: float) -> Floats:
    """Return the nearest point of the nuclear-norm ball, by a full decomposition."""
    return _shrunk(LowRank.of_dense(matrix), radius).dense()


def project_both(
    matrix: Floats, radius: float, bound: float | Floats, *, tolerance: float = 1e-5, most: int = 500
) -> Floats:
    """Return the nearest matrix in the nuclear-norm ball with no |entry| above its bound.

    This is Dykstra's alternation as ascent on the dual, where `correction` is what the box clips, with
    Nesterov's momentum and restarts: ten times fewer decompositions than the plain alternation.
    """
    size = max(float(np.linalg.norm(matrix)), _TINY)
    correction = ahead = np.zeros_like(matrix)
    momentum = 1.0
    for _ in range(most):
        inside = ahead + project_dense(matrix - ahead, radius)
        clipped = np.clip(inside, -bound, bound)
        before, correction = correction, inside - clipped
        if float(np.linalg.norm(correction - ahead)) <= tolerance * size:
            break
        if float(np.vdot(ahead - correction, correction - before)) > 0:
            momentum = 1.0
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = correction + (momentum - 1) / grown * (correction - before)
        momentum = grown
    return clipped


def _shrunk(found: LowRank, radius: float) -> LowRank:
    values = found.values - threshold(found.values, radius) if found.rank else found.values
    kept = values > 0
    return LowRank(found.left[:, kept], values[kept], found.right[:, kept])


def _certain(values: Floats, radius: float) -> bool:
    """Return whether no value below the last can survive: the threshold is at least the last."""
    return float((values - values[-1]).sum()) >= radius


def _spare(rank: int) -> int:
    return max(_SPARE, int(_SPARE_SHARE * rank))


def _filled(basis: Floats, size: int) -> Floats:
    """Return `basis` with directions added up to `size`; fixed ones, so that a solve repeats exactly."""
    missing = size - basis.shape[1]
    if missing <= 0:
        return basis
    extra = np.random.Generator(np.random.PCG64(size)).standard_normal((basis.shape[0], missing))
    return np.linalg.qr(np.hstack([basis, extra]))[0]


def _leading(operator: LowRankPlusSparse, start: Floats, radius: float, tolerance: float) -> LowRank:
    """Return approximate leading singular triplets, as many as `start` has columns.

    A sweep adds the directions of the triplets' residuals. Earlier products are reused, so a sweep multiplies
    by the matrix and by its transpose once, with as many columns as `start`.
    """
    left, upper = np.linalg.qr(operator.times(start))
    found = _combined(left, upper, start, start.shape[1])
    for _ in range(_MOST_SWEEPS):
        wrong = operator.transposed_times(found.left) - found.right * found.values
        if _certain(found.values, radius) and _settled(found, wrong, radius, tolerance):
            return found
        found = _improved(operator, found, wrong)
        if not _certain(found.values, radius):
            return found
    return found


def _improved(operator: LowRankPlusSparse, found: LowRank, wrong: Floats) -> LowRank:
    """Return the best triplets in the space of those found and of their residuals."""
    fresh = _orthonormal(wrong / np.maximum(np.linalg.norm(wrong, axis=0), _TINY), found.right)
    pushed = operator.times(fresh)
    shared = found.left.T @ pushed
    beyond, corner = np.linalg.qr(pushed - found.left @ shared)
    upper = np.block([[np.diag(found.values), shared], [np.zeros((fresh.shape[1], found.rank)), corner]])
    return _combined(np.hstack([found.left, beyond]), upper, np.hstack([found.right, fresh]), found.rank)


def _orthonormal(columns: Floats, others: Floats) -> Floats:
    """Return an orthonormal basis of what the columns add to `others`, without directions of rounding."""
    columns = columns - others @ (others.T @ columns)
    sizes, turns = np.linalg.eigh(columns.T @ columns)
    kept = sizes > _DEPENDENT * max(float(sizes[-1]), _TINY)
    basis: Floats = columns @ (turns[:, kept] / np.sqrt(sizes[kept]))
    return basis


def _combined(left: Floats, core: Floats, right: Floats, rank: int) -> LowRank:
    """Return the leading triplets of `left @ core @ right.T`, whose outer factors are orthonormal."""
    inner_left, values, inner_right = np.linalg.svd(core)
    return LowRank(left @ inner_left[:, :rank], values[:rank], right @ inner_right[:rank].T)


def _settled(found: LowRank, wrong: Floats, radius: float, tolerance: float) -> bool:
    """Return whether the triplets that survive the threshold are accurate, in proportion to their weight."""
    cut = threshold(found.values, radius)
    weight = np.maximum(found.values - cut, 0) / found.values[0]
    return bool(np.all(np.linalg.norm(wrong, axis=0) * weight <= tolerance * found.values[0]))


class Projection(NamedTuple):
    """A projection: orthonormal columns, and the share of each that is kept."""

    basis: Floats
    kept: Floats


def project_moment(moment: Floats, *, radius: float, noise: float, most: int) -> Projection:
    """Return the map that projects the rows' singular values onto the ball, from their noisy second moment.

    The noise is first subtracted from the eigenvalues, and those not above it are dropped.
    """
    values, vectors = np.linalg.eigh(moment)
    values, vectors = values[::-1][:most], vectors[:, ::-1][:, :most]
    above = values > noise
    values, vectors = values[above], vectors[:, above]
    singular = np.sqrt(values)
    lengths = np.sqrt(values - noise)
    lowered = np.maximum(lengths - threshold(lengths, radius), 0.0)
    return Projection(with_fixed_signs(vectors), lowered / singular)
