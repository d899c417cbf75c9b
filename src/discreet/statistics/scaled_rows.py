"""Sum the second moment of users' scaled residuals, or its product with a vector, exactly.

Rows are first scaled to a norm of at most 1 and truncated to fixed point. The diagonal is excluded
everywhere: it shows how large a row is, not which columns correlate, and chance alone fills it.

Contributions are integers, so a sum does not depend on the order or on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Rows, add_over_rows, require_fit, run_over_rows
from discreet.core.kernels import compiled, dot, inner, longest_row
from discreet.data import Interactions
from discreet.statistics.domain import FARTHEST, LEAST, MOST, Number, Numbers, Stated
from discreet.statistics.statistic import PRODUCT_BITS, ROUNDING, ROW_STEPS, Block, Part, Statistic, Steps

#: A vector of length 1, rounded; rows are shortened by more than that.
UNIT = 1 + 1e-9
# Beyond this size one sum is enough to hold, so one thread adds to it.
_LARGEST_COPY = 1 << 21


class ScaledRows(NamedTuple):
    """Sparse rows of norm at most 1 in fixed point."""

    indptr: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int16]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Scaling(Stated):
    """How a user's ratings, in units of `half` around `middle`, become a row of length at most 1.

    The offsets and the own ridge solution on a constant and the `factors` are taken off, what is left is cut
    to `clamp`: x_i. Then x is divided by max(sqrt(sum_i (x_i^2 + part^2)), least_length). The length counts
    `part` next to every residual, so that a row of tiny ones is not blown up; it is never below |x|. A row
    whose numbers are not finite becomes zero.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    offsets: Annotated[Floats, Numbers(("n",), -MOST, MOST)]
    factors: Annotated[Floats, Numbers(("n", "f"), -MOST, MOST)]
    ridge: Annotated[Floats, Numbers(("f+1",), LEAST, MOST)]
    part: Annotated[float, Number(0.0, MOST)]
    clamp: Annotated[float, Number(LEAST, math.inf)]
    least_length: Annotated[float, Number(0.0, FARTHEST)]

    def rows(self, block: Block) -> ScaledRows:
        """Return the rows of a block; rows of data in memory are cached for the next statistic."""
        kept = _last_rows.get(block.data)
        if kept is None or kept[0] is not self:
            kept = _last_rows[block.data] = (self, {})
        span = (block.start, block.stop)
        if span not in kept[1]:
            people = block.rows((block.values - self.middle) / self.half)
            kept[1][span] = self.of_rows(people)
        return kept[1][span]

    def of_rows(self, rows: Rows) -> ScaledRows:
        """Return scaled rows; the values are already in units of `half` around `middle`."""
        require_fit(rows, self.offsets.size)
        units = np.zeros(rows.values.size, dtype=np.int16)
        numbers = (float(self.part), float(self.clamp), float(self.least_length), ROW_STEPS * ROUNDING)
        given = (rows.values, self.offsets, self.factors, self.ridge, *numbers)
        run_over_rows(scale_residuals, rows, *given, units)
        return ScaledRows(rows.indptr, rows.columns, units)


# Oja's method reads the same rows several times; they are kept as long as their data.
_last_rows: WeakKeyDictionary[Interactions, tuple[Scaling, dict[tuple[int, int], ScaledRows]]] = (
    WeakKeyDictionary()
)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledMoment(Statistic):
    """Sum of x x' off its diagonal over users' scaled rows x; its Frobenius norm is at most |x|^2 <= 1."""

    scaling: Scaling

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of a matrix over all items."""
        size = self.scaling.offsets.size
        return (Part("moment", (size, size), bits=PRODUCT_BITS, symmetric=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        add_rows(add_moment, self.scaling.rows(block), sums[0], False)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledProduct(Statistic):
    """Sum of (x x' - diag) v over users' scaled rows x, without building the matrix.

    The spectral norm of x x' without its diagonal is at most its Frobenius norm, |x|^2 <= 1, so the norm of
    the product is at most |v| <= 1.
    """

    scaling: Scaling
    vector: Annotated[Floats, Numbers(("n",), -1.0, 1.0, longest=UNIT)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one number for each item."""
        return (Part("product", (self.vector.size,), bits=PRODUCT_BITS),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        settled = np.ascontiguousarray(self.vector, dtype=np.float64)
        add_rows(add_products, self.scaling.rows(block), sums[0], settled, False)


def own_places(rows: Rows, offsets: Floats, factors: Floats, ridge: Floats) -> Floats:
    """Return each row's ridge solution on the constant and the factors; `ridge[0]` is for the constant.

    With the few factors of a round this is faster than the solver of alternating least squares.
    """
    require_fit(rows, offsets.size)
    out = np.empty((rows.n_rows, 1 + factors.shape[1]))
    run_over_rows(place_rows, rows, rows.values, offsets, factors, ridge, out)
    return out


def add_rows(kernel: Callable[..., None], rows: ScaledRows, total: Steps, *arguments: Any) -> None:
    """Run `kernel` over all rows and add to `total`."""

    def part(start: int, stop: int, own: Steps) -> None:
        kernel(start, stop, rows.indptr, rows.columns, rows.steps, *arguments, own)

    add_over_rows(part, rows.indptr, total, alone=total.size > _LARGEST_COPY)


Array = npt.NDArray[Any]
# A sum of squares above this is right in all the digits that count.
_LEAST_SQUARES = 1e-200


@inner
def solve_cholesky(matrix: Array, right: Array) -> None:
    """Solve a small positive definite system in place; only the lower triangle is read."""
    for a in range(right.size):
        for b in range(a + 1):
            total = matrix[a, b]
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            matrix[a, b] = np.sqrt(total) if a == b else total / matrix[b, b]
        for b in range(a):
            right[a] -= matrix[a, b] * right[b]
        right[a] /= matrix[a, a]
    for a in range(right.size - 1, -1, -1):
        for b in range(a + 1, right.size):
            right[a] -= matrix[b, a] * right[b]
        right[a] /= matrix[a, a]


@inner
def lay_out(columns: Array, values: Array, offsets: Array, factors: Array, side: Array) -> None:
    """Write a row's features, one line each, and last its values minus the offsets.

    The first line, of ones, is left as it is. Sums over the row then run through memory in order.
    """
    size = side.shape[0] - 1
    for j in range(columns.size):
        # An unsigned index cannot count from the end, which saves a comparison.
        side[size, j] = np.float64(values[j]) - offsets[np.uint32(columns[j])]
    for a in range(1, size):
        for j in range(columns.size):
            side[a, j] = factors[np.uint32(columns[j]), a - 1]


@inner
def place(side: Array, count: int, ridge: Array, normal: Array, out: Array) -> None:
    """Write the ridge solution of a row prepared by `lay_out`; `normal` is scratch."""
    size = ridge.size
    target = side[size, :count]
    for a in range(size):
        out[a] = dot(side[a, :count], target)
        for b in range(a + 1):
            normal[a, b] = dot(side[a, :count], side[b, :count])
        normal[a, a] += ridge[a]
    solve_cholesky(normal, out)


@compiled
def place_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    offsets: Array,
    factors: Array,
    ridge: Array,
    out: Array,
) -> None:
    """Write each row's ridge solution on the constant and the factors."""
    side = np.ones((ridge.size + 1, longest_row(start, stop, indptr)))
    normal = np.empty((ridge.size, ridge.size))
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        lay_out(columns[first:last], values[first:last], offsets, factors, side)
        place(side, last - first, ridge, normal, out[row])


@compiled
def scale_residuals(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    offsets: Array,
    factors: Array,
    ridge: Array,
    part: float,
    clamp: float,
    least_length: float,
    unit: float,
    out: Array,
) -> None:
    """Write the scaled residuals of each row's ridge solution, in fixed point truncated toward zero.

    A residual is at most `clamp` in size. The length counts `part` next to each; it is at least
    `least_length`. `unit` steps make 1. A row whose numbers are not finite, or so small that their squares
    vanish, becomes zero.
    """
    size = ridge.size
    side = np.ones((size + 1, longest_row(start, stop, indptr)))
    normal, own = np.empty((size, size)), np.empty(size)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        lay_out(columns[first:last], values[first:last], offsets, factors, side)
        place(side, last - first, ridge, normal, own)
        residuals = side[size, : last - first]
        for a in range(size):
            for j in range(residuals.size):
                residuals[j] -= own[a] * side[a, j]
        squares, usable = 0.0, True
        for j in range(residuals.size):
            # A comparison, as those of `clamp`, would turn NaN into a number.
            usable = usable and np.isfinite(residuals[j])
            residuals[j] = min(max(residuals[j], -clamp), clamp)
            squares += residuals[j] * residuals[j] + part * part
        if not (usable and squares > _LEAST_SQUARES and np.isfinite(squares)):
            out[first:last] = 0
            continue
        factor = unit / max(np.sqrt(squares), least_length)
        for j in range(residuals.size):
            out[first + j] = np.int16(residuals[j] * factor)


@compiled
def add_moment(
    start: int, stop: int, indptr: Array, columns: Array, units: Array, diagonal: bool, totals: Array
) -> None:
    """Add the products of every pair of columns of a row to the upper triangle, with or without diagonal."""
    skipped = 0 if diagonal else 1
    for row in range(start, stop):
        own_columns = columns[indptr[row] : indptr[row + 1]]
        own_units = units[indptr[row] : indptr[row + 1]]
        for j in range(own_columns.size):
            here = np.int64(own_units[j])
            line = totals[np.uint32(own_columns[j])]
            for other in range(j + skipped, own_columns.size):
                line[np.uint32(own_columns[other])] += here * np.int64(own_units[other])


@compiled
def add_products(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    units: Array,
    vector: Array,
    diagonal: bool,
    totals: Array,
) -> None:
    """Add every row's second moment, with or without its diagonal, times the vector.

    Products of entries already have the fraction bits of the part.
    """
    for row in range(start, stop):
        own_columns = columns[indptr[row] : indptr[row + 1]]
        own_units = units[indptr[row] : indptr[row + 1]]
        along = 0.0
        for j in range(own_columns.size):
            along += np.float64(own_units[j]) * vector[np.uint32(own_columns[j])]
        for j in range(own_columns.size):
            column = np.uint32(own_columns[j])
            here = np.float64(own_units[j])
            own = 0.0 if diagonal else here * vector[column]
            totals[column] += np.int64(here * (along - own))


@compiled
def advance_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    left_over: Array,
    coordinates: Array,
    turn: Array,
    basis: Array,
    kept: Array,
    out: Array,
) -> None:
    """Write each row's coordinates on a new basis: the old ones rotated, with its own errors added."""
    for row in range(start, stop):
        target = out[row]
        for a in range(target.size):
            target[a] = 0.0
        for b in range(coordinates.shape[1]):
            for a in range(target.size):
                target[a] += coordinates[row, b] * turn[b, a]
        for entry in range(indptr[row], indptr[row + 1]):
            for a in range(target.size):
                target[a] += left_over[entry] * basis[columns[entry], a]
        for a in range(target.size):
            target[a] *= kept[a]


@compiled
def fill_moved_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    left_over: Array,
    coordinates: Array,
    basis: Array,
    bound: float,
    unit: float,
    out: Array,
) -> None:
    """Write rows moved by their own errors over the larger of their norm and `bound`, in fixed point."""
    for row in range(start, stop):
        target = out[row - start]
        squares = 0.0
        for column in range(target.size):
            target[column] = 0.0
            for b in range(coordinates.shape[1]):
                target[column] += coordinates[row, b] * basis[column, b]
        for entry in range(indptr[row], indptr[row + 1]):
            target[columns[entry]] += left_over[entry]
        for column in range(target.size):
            squares += target[column] * target[column]
        factor = unit / max(np.sqrt(squares), bound)
        for column in range(target.size):
            target[column] = np.trunc(target[column] * factor)
