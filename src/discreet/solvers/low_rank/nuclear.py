"""Find the matrix of least nuclear norm that fits observed entries, with a certificate of optimality.

The nuclear norm of M is the least (|U|^2 + |V|^2) / 2 over all M = U V', so with a price on the norm the
problem is alternating ridge regression; the price is then adjusted until the misfit is `rho`. If the price is
close to the largest singular value, sweeps change the norm of the product slowly, so it is set to its
optimum. A factorization with too few columns can get stuck: singular vectors of the slope that lower the
objective are added as columns until none is left, which makes the solution global. The dual value proves it.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from discreet.core import (
    Array,
    Floats,
    Rows,
    experiment_generator,
    integer,
    non_negative,
    one_algebra_thread,
    positive,
    positive_finite,
    require_fit,
    residuals,
    run_over_rows,
)
from discreet.core.kernels import compiled
from discreet.solvers import als as als_kernels
from discreet.solvers.als import ridge_rows, solve_rows
from discreet.solvers.spectrum import REPEATABLE, column_signs

#: Row pointers, columns, weighted values and weights of stored entries.
Terms = tuple[Array, Array, Array, Array]


@compiled
def alternate(by_row: Terms, by_column: Terms, price: float, sweeps: int, left: Array, right: Array) -> None:
    """Solve for all rows, then for all columns, so many times; `left` and `right` are overwritten."""
    precision = price * np.eye(left.shape[1])
    prior = np.zeros((1, left.shape[1]))
    ones = np.ones(max(left.shape[0], right.shape[0]))
    offsets = np.zeros(ones.size)
    for _ in range(sweeps):
        ridge_rows(0, left.shape[0], *by_row, offsets, right, precision, ones, prior, left)
        ridge_rows(0, right.shape[0], *by_column, offsets, left, precision, ones, prior, right)


Triples = tuple[Floats, Floats, Floats]

# From this many entries on, the sparse products run on several threads and other threads are limited.
_SHARED_WORK = 20_000
# Matrices up to this size are decomposed whole and solved in one call.
_SMALL = 200
# Columns added at once when the slope still has directions that lower the objective.
_NEW_COLUMNS = 8
_SWEEPS = 5
# From this many entries a column on, rows take a few conjugate-gradient steps instead of being solved: a
# sweep then costs entries times columns and not times their square.
_MANY_ENTRIES = 5_000
_STEPS = 3
# Singular values below this share of the largest are dropped, and prices below it are not tried.
_NEGLIGIBLE = 1e-6
# How the misfit grows with a power of the price: the first guess, and the least and largest believed.
_POWER, _LEAST_POWER, _LARGEST_POWER = 0.5, 0.02, 1.5
# A certificate costs a decomposition, so before the misfit is right it is computed only every few rounds.
_ROUNDS_BETWEEN_CERTIFICATES = 5
# At the solution many singular values of the slope equal the price, and an iterative method is very slow to
# separate their vectors. A large basis and residuals of 1e-6 (the square of this tolerance) suffice for the
# values.
_BASIS, _VECTOR_TOLERANCE = 40, 1e-3


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recovery:
    """A matrix `left @ right.T`, its misfit and its certificate.

    No matrix whose misfit is at most `rho` has a nuclear norm below `bound`. (Above 200 rows and columns the
    bound rests on the largest singular value that an iterative method found, to a share of 1e-6.)
    """

    left: Floats
    right: Floats
    rho: float
    misfit: float
    nuclear_norm: float
    bound: float
    sweeps: int

    @property
    def gap(self) -> float:
        """Return the distance between nuclear norm and bound, as a share of the norm."""
        return abs(self.nuclear_norm - self.bound) / self.nuclear_norm if self.nuclear_norm else 0.0

    @property
    def rank(self) -> int:
        """Return the number of columns of both factors."""
        return int(self.left.shape[1])


def recover(
    cells: Rows,
    n_columns: int,
    rho: float,
    *,
    tolerance: float = 5e-5,
    sweeps: int = 600,
    most_columns: int | None = None,
    start: Recovery | None = None,
) -> Recovery:
    """Minimize |M|_* subject to sum w (M - Z)^2 <= rho^2 over the stored entries.

    Stops when the misfit is `rho` up to a share of `tolerance` and the gap at most twice that, or after
    `sweeps`; `misfit` and `gap` report what was reached. `most_columns` bounds memory and time: a solution
    that would need more columns has a larger gap. `start` is a solution for another `rho`.
    """
    require_fit(cells, n_columns)
    non_negative("rho", rho)
    positive_finite("tolerance", tolerance)
    integer("sweeps", sweeps, least=1)
    smaller = min(cells.n_rows, n_columns)
    limit = smaller if most_columns is None else min(integer("most_columns", most_columns, least=1), smaller)
    problem = _Problem.of(cells, n_columns)
    if problem.norm <= rho:
        return problem.nothing(rho)
    positive("rho", rho)
    with one_algebra_thread() if cells.columns.size > _SHARED_WORK else nullcontext():
        return _descend(problem, rho, tolerance, sweeps, limit, start)


def _steepest(matrix: csr_array[Any] | Floats) -> float:
    """Return the largest singular value."""
    if isinstance(matrix, np.ndarray):
        return float(np.linalg.svd(matrix, compute_uv=False)[0])
    return float(largest_singular(matrix, 1)[1][0])


def largest_singular(matrix: csr_array[Any] | Floats, count: int) -> Triples:
    """Return the largest singular values, falling, with their left and right vectors as columns."""
    if isinstance(matrix, np.ndarray) or min(matrix.shape) <= max(_SMALL, 2 * count):
        whole = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        u, s, v = np.linalg.svd(whole, full_matrices=False)
        return _with_fixed_signs(u[:, :count], s[:count], v[:count].T)
    begin = experiment_generator(0, "singular").standard_normal(min(matrix.shape))
    basis = min(max(_BASIS, 4 * count), min(matrix.shape))
    found = svds(matrix, k=count, tol=_VECTOR_TOLERANCE, ncv=basis, v0=begin, **REPEATABLE)
    u, s, v = (np.asarray(part, dtype=np.float64) for part in found)
    order = np.argsort(-s)
    return _with_fixed_signs(u[:, order], s[order], v[order].T)


def _with_fixed_signs(u: Floats, s: Floats, v: Floats) -> Triples:
    signs = column_signs(v)
    return u * signs, s, v * signs


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Problem:
    """The entries by row and by column, and what depends on them alone."""

    by_row: Rows
    by_column: Rows
    rows: npt.NDArray[np.int64]
    values: Floats
    weights: Floats
    shape: tuple[int, int]
    by_row_terms: Terms
    by_column_terms: Terms

    @classmethod
    def of(cls, cells: Rows, n_columns: int) -> Self:
        shape = (cells.n_rows, n_columns)
        turned = csr_array((np.arange(cells.columns.size), cells.columns, cells.indptr), shape=shape).tocsc()
        order = turned.data
        by_column = Rows(
            turned.indptr.astype(np.int64),
            turned.indices.astype(np.int32),
            cells.values[order],
            cells.weights[order] if cells.weights is not None else None,
        )
        terms = _terms(cells)
        return cls(
            by_row=cells,
            by_column=by_column,
            rows=np.repeat(np.arange(cells.n_rows), np.diff(cells.indptr)),
            values=cells.values.astype(np.float64),
            weights=terms[3].astype(np.float64),
            shape=shape,
            by_row_terms=terms,
            by_column_terms=_terms(by_column),
        )

    @property
    def norm(self) -> float:
        """Return the misfit of the zero matrix."""
        return self.misfit(self.values)

    def misfit(self, off: Floats) -> float:
        """Return the weighted norm of residuals."""
        return math.sqrt(float(self.weights @ off**2))

    def residuals(self, left: Floats, right: Floats) -> Floats:
        """Return Z - M at the stored entries."""
        if max(self.shape) <= _SMALL:
            shown = np.einsum("ij,ij->i", left[self.rows], right[self.by_row.columns])
            return np.asarray(self.values - shown)
        return np.asarray(
            residuals(self.by_row, left, right, np.zeros(self.shape[0]), np.zeros(self.shape[1]))
        )

    def slope(self, off: Floats) -> csr_array[Any] | Floats:
        """Return the weighted residuals as a matrix, sparse unless it is small."""
        if max(self.shape) <= _SMALL:
            whole = np.zeros(self.shape)
            whole[self.rows, self.by_row.columns] = self.weights * off
            return whole
        return csr_array((self.weights * off, self.by_row.columns, self.by_row.indptr), shape=self.shape)

    def improved(self, left: Floats, right: Floats, price: float) -> tuple[Floats, Floats]:
        """Improve the rows, then the columns, a few times."""
        if max(self.shape) <= _SMALL:
            left, right = left.copy(), right.copy()
            alternate(self.by_row_terms, self.by_column_terms, price, _SWEEPS, left, right)
            return left, right
        for _ in range(_SWEEPS):
            left = _moved(self.by_row, right, left, price)
            right = _moved(self.by_column, left, right, price)
        return left, right

    def scaled(self, left: Floats, right: Floats, price: float) -> tuple[Floats, Floats, Floats]:
        """Scale the factors so that their product is best at this price; return the residuals too."""
        off = self.residuals(left, right)
        shown = self.values - off
        square = float(self.weights @ shown**2)
        cost = price * float(np.sum(left**2) + np.sum(right**2)) / 2
        best = (float(self.weights @ (shown * self.values)) - cost) / square if square else 0.0
        if best <= 0.0:
            return left, right, off
        root = math.sqrt(best)
        return root * left, root * right, self.values - best * shown

    def widened(
        self, left: Floats, right: Floats, price: float, limit: int, known: Triples | None = None
    ) -> tuple[Floats, Floats]:
        """Add the singular directions of the slope above the price, each with its own best step."""
        count = min(_NEW_COLUMNS, limit - left.shape[1])
        if count <= 0:
            return left, right
        u, s, v = known or largest_singular(self.slope(self.residuals(left, right)), count)
        paying = np.flatnonzero(s[:count] > price)
        u, s, v = u[:, paying], s[paying], v[:, paying]
        bend = np.array([self.bend(u[:, a], v[:, a]) for a in range(s.size)])
        length = np.sqrt((s - price) / np.maximum(bend, np.finfo(np.float64).tiny))
        return np.column_stack([left, u * length]), np.column_stack([right, v * length])

    def bend(self, left: Floats, right: Floats) -> float:
        """Return the squared misfit that one step in the direction `left right'` makes by itself."""
        return float(self.weights @ (left[self.rows] * right[self.by_row.columns]) ** 2)

    def first_price(self, rho: float, first: Triples) -> float:
        """Return the price at which one direction alone would make the misfit rho."""
        u, s, v = first
        top = float(s[0])
        fall = self.bend(u[:, 0], v[:, 0]) * (self.norm**2 - rho**2)
        return math.sqrt(max(top**2 - fall, (top * rho / self.norm / 2) ** 2))

    def certified(
        self, left: Floats, right: Floats, off: Floats, rho: float, sweeps: int
    ) -> tuple[Recovery, float]:
        """Return the matrix with its certificate, and the largest singular value of the slope."""
        left, right, nuclear = _balanced(left, right)
        steepest, misfit = _steepest(self.slope(off)), self.misfit(off)
        answer = Recovery(
            left=left,
            right=right,
            rho=rho,
            misfit=misfit,
            nuclear_norm=nuclear,
            bound=(float(self.weights @ (off * self.values)) - rho * misfit) / steepest,
            sweeps=sweeps,
        )
        return answer, steepest

    def nothing(self, rho: float) -> Recovery:
        """Return the zero matrix, which needs no certificate."""
        left, right = (np.zeros((size, 0)) for size in self.shape)
        return Recovery(
            left=left, right=right, rho=rho, misfit=self.norm, nuclear_norm=0.0, bound=0.0, sweeps=0
        )


def _descend(
    problem: _Problem, rho: float, tolerance: float, sweeps: int, limit: int, start: Recovery | None
) -> Recovery:
    """Alternate sweeps, updates of the price and certificates."""
    first = largest_singular(problem.slope(problem.values), min(_NEW_COLUMNS, limit))
    top = float(first[1][0])
    price = _PricePath(
        price=problem.first_price(rho, first), least=_NEGLIGIBLE * top, most=(1 - _NEGLIGIBLE) * top, rho=rho
    )
    empty = problem.nothing(rho)
    if start is None or start.rank == 0:
        left, right = problem.widened(empty.left, empty.right, price.price, limit, first)
    else:
        left, right = problem.widened(start.left, start.right, price.price, limit)
    done = 0
    while True:
        left, right = problem.improved(left, right, price.price)
        done += _SWEEPS
        left, right, off = problem.scaled(left, right, price.price)
        misfit = problem.misfit(off)
        fits = abs(misfit - rho) <= tolerance * rho
        if fits or done >= sweeps or done % (_ROUNDS_BETWEEN_CERTIFICATES * _SWEEPS) == 0:
            answer, steepest = problem.certified(left, right, off, rho, done)
            left, right = answer.left, answer.right
            if (fits and answer.gap <= 2 * tolerance) or done >= sweeps:
                return answer
            if steepest > price.price * (1 + tolerance):
                left, right = problem.widened(left, right, price.price, limit)
        price.move(misfit)


@dataclass(slots=True, kw_only=True)
class _PricePath:
    """Move the price to where the misfit is `rho`, by secants through logarithms."""

    price: float
    least: float
    most: float
    rho: float
    power: float = _POWER
    before: tuple[float, float] | None = None

    def move(self, misfit: float) -> None:
        """Take the next price from the misfit at this one."""
        if self.before is not None and self.before[0] != self.price:
            rise = math.log(misfit / self.before[1]) / math.log(self.price / self.before[0])
            if rise > 0:
                self.power = min(max(rise, _LEAST_POWER), _LARGEST_POWER)
        self.before = (self.price, misfit)
        step = math.log(self.rho / misfit) / self.power
        self.price = min(max(self.price * math.exp(min(max(step, -1.0), 1.0)), self.least), self.most)


def _terms(rows: Rows) -> Terms:
    weights = np.ones(rows.values.size, np.float32) if rows.weights is None else rows.weights
    return rows.indptr, rows.columns, weights.astype(np.float64) * rows.values, weights


def _moved(rows: Rows, features: Floats, vectors: Floats, price: float) -> Floats:
    """Return the vectors of all rows, moved towards the solutions of their ridge problems or solved."""
    size = features.shape[1]
    if rows.values.size < _MANY_ENTRIES * size:
        return np.asarray(solve_rows(rows, features, ridge=price))
    _, _, linear, weights = _terms(rows)
    gram, ridges, out = np.zeros((size, size)), np.full(rows.n_rows, price), vectors.copy()
    run_over_rows(als_kernels.conjugate_rows, rows, linear, weights, features, gram, ridges, _STEPS, out)
    return out


def _balanced(left: Floats, right: Floats) -> tuple[Floats, Floats, float]:
    """Return factors with the same product and the least squares, without vanishing columns; the norm too."""
    turn_left, left_part = np.linalg.qr(left)
    turn_right, right_part = np.linalg.qr(right)
    u, s, v = np.linalg.svd(left_part @ right_part.T)
    kept = s > _NEGLIGIBLE * s.max(initial=0.0)
    root = np.sqrt(s[kept])
    own = turn_right @ (v[kept].T * root)
    signs = column_signs(own)
    return turn_left @ (u[:, kept] * root) * signs, own * signs, float(s.sum())
