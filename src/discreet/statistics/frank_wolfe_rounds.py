"""Sum statistics of users' residual rows after published rank-one rounds: Frank-Wolfe as printed.

Each user repeats the rounds on their own row (`RoundsSoFar`), so a contribution depends on that row and on
released numbers only. Unlike in `scaled_rows`, rows keep their own norm: they are bounded by clipping.

In projected-gradient steps for matrix completion, too, each row stays with its owner. It moves by its own
error on its own entries, and is then multiplied by a small public map, which projects the singular values of
the whole matrix onto a nuclear-norm ball. The map comes from the second moment of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import DomainError, Floats, Rows, require_fit, residuals, run_over_rows
from discreet.core.kernels import compiled, inner
from discreet.solvers import Projection
from discreet.statistics.domain import FARTHEST, Number, Numbers, Stated, Whole
from discreet.statistics.norm_clipping import clip_factor
from discreet.statistics.scaled_rows import (
    UNIT,
    ScaledRows,
    add_moment,
    add_products,
    add_rows,
    advance_rows,
    fill_moved_rows,
)
from discreet.statistics.statistic import (
    PRODUCT_BITS,
    ROOT_STEPS,
    ROUNDING,
    ROW_STEPS,
    Block,
    Part,
    Statistic,
    Steps,
)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RoundsSoFar(Stated):
    """Published numbers: directions (items by rounds so far) and the pace k / (T lambda') of each.

    Ratings are in units of `half` around `middle`; `row_bound` is L in these units, `rounds` is T.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    row_bound: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    rounds: Annotated[int, Whole(0, 1000)]
    directions: Annotated[Floats, Numbers(("n", "r"), -2.0, 2.0)]
    paces: Annotated[Floats, Numbers(("r",), 0.0, FARTHEST)]

    def __post_init__(self) -> None:
        """Check the fields; there are at most T rounds."""
        Stated.__post_init__(self)
        if self.paces.size > self.rounds:
            raise DomainError(name="paces", rule=f"have one number for each of {self.rounds} rounds")

    def after(self, direction: Floats, pace: float) -> RoundsSoFar:
        """Return these rounds and one more."""
        return RoundsSoFar(
            middle=self.middle,
            half=self.half,
            row_bound=self.row_bound,
            rounds=self.rounds,
            directions=np.column_stack([self.directions, direction]),
            paces=np.append(self.paces, pace),
        )

    def places(self, rows: Rows) -> Floats:
        """Return each row's own mean and its coordinates on all directions, both in units of `half`."""
        require_fit(rows, len(self.directions))
        out = np.zeros((rows.n_rows, 1 + self.rounds))
        given = (rows.values, self._settled(), self.paces, float(self.row_bound))
        run_over_rows(place_rows, rows, *given, out)
        return out

    def left_over(self, block: Block) -> ScaledRows:
        """Return what users have left over 2 L, at most 1 long; a row that is not finite becomes zero."""
        rows = block.rows((block.values - self.middle) / self.half)
        units = np.zeros(rows.values.size, dtype=np.int16)
        given = (rows.values, self._settled(), self.paces, self.rounds, float(self.row_bound))
        run_over_rows(leave_rows, rows, *given, ROW_STEPS * ROUNDING, units)
        return ScaledRows(rows.indptr, rows.columns, units)

    def _settled(self) -> Floats:
        return np.ascontiguousarray(self.directions, dtype=np.float64)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SteppedMoment(Statistic):
    """Sum of a a' over users' residual rows a; its Frobenius norm is |a|^2 <= 1."""

    so_far: RoundsSoFar

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of a matrix over all items."""
        size = len(self.so_far.directions)
        return (Part("moment", (size, size), bits=PRODUCT_BITS, symmetric=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        add_rows(add_moment, self.so_far.left_over(block), sums[0], True)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SteppedProduct(Statistic):
    """Sum of a (a . v) over users' residual rows a, with |v| <= 1: its norm is at most |a|^2 <= 1."""

    so_far: RoundsSoFar
    vector: Annotated[Floats, Numbers(("n",), -1.0, 1.0, longest=UNIT)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one number for each item."""
        return (Part("product", (self.vector.size,), bits=PRODUCT_BITS),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        settled = np.ascontiguousarray(self.vector, dtype=np.float64)
        add_rows(add_products, self.so_far.left_over(block), sums[0], settled, True)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SteppedStretch(Statistic):
    """Sum of (a . v)^2 over users' residual rows a, with |v| <= 1: at most |a|^2 <= 1."""

    so_far: RoundsSoFar
    vector: Annotated[Floats, Numbers(("n",), -1.0, 1.0, longest=UNIT)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one number."""
        return (Part("stretch", (1,), bits=PRODUCT_BITS),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        settled = np.ascontiguousarray(self.vector, dtype=np.float64)
        add_rows(add_stretch, self.so_far.left_over(block), sums[0], settled)


Array = npt.NDArray[Any]


@inner
def walk(columns: Array, values: Array, directions: Array, paces: Array, bound: float, own: Array) -> Array:
    """Write a row's own mean and its coordinates on the directions to `own`; return its residuals.

    Round t turns the completed row y to (1 - 1/T) y - pace_t (e . v_t) v_t with e = y - x, and clips it to
    norm `bound` on its own entries. `own` has 1 + T entries; those of later rounds stay at zero.
    """
    rounds = own.size - 1
    mean = 0.0
    for j in range(values.size):
        mean += values[j]
    mean /= max(values.size, 1)
    own[:] = 0.0
    own[0] = mean
    target = np.empty(values.size)
    for j in range(values.size):
        target[j] = values[j] - mean
    target *= clip_factor(target, bound)
    row = np.zeros(values.size)
    beside = np.empty(values.size)
    for t in range(paces.size):
        along = 0.0
        for j in range(values.size):
            beside[j] = directions[np.uint32(columns[j]), t]
            along += (row[j] - target[j]) * beside[j]
        own[1 : t + 1] *= 1 - 1 / rounds
        own[t + 1] = -paces[t] * along
        for j in range(values.size):
            row[j] = (1 - 1 / rounds) * row[j] - paces[t] * along * beside[j]
        factor = clip_factor(row, bound)
        row *= factor
        own[1 : t + 2] *= factor
    return row - target


@compiled
def place_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    directions: Array,
    paces: Array,
    bound: float,
    out: Array,
) -> None:
    """Write each row's own mean and coordinates."""
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        walk(columns[entries], values[entries], directions, paces, bound, out[row])


@compiled
def leave_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    directions: Array,
    paces: Array,
    rounds: int,
    bound: float,
    unit: float,
    out: Array,
) -> None:
    """Write each row's residuals over twice the bound, in fixed point truncated toward zero.

    Both the row and its target are at most `bound` long, so what is left is at most twice that; `unit` steps
    make 1. A row whose numbers are not finite becomes zero.
    """
    own = np.empty(1 + rounds)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        left = walk(columns[first:last], values[first:last], directions, paces, bound, own)
        usable = np.isfinite(left).all()
        for j in range(left.size):
            out[first + j] = np.int16(left[j] * (unit / (2 * bound))) if usable else np.int16(0)


@compiled
def add_stretch(
    start: int, stop: int, indptr: Array, columns: Array, units: Array, vector: Array, totals: Array
) -> None:
    """Add the square of every row's product with the vector."""
    for row in range(start, stop):
        along = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            along += np.float64(units[entry]) * vector[np.uint32(columns[entry])]
        totals[0] += np.int64(along * along)


_ENTRIES_PER_BLOCK = 1 << 22


class LocalSteps(NamedTuple):
    """The state of every row: coordinates on a basis, and residuals on its own entries."""

    basis: Floats
    places: Floats
    left_over: Floats


def begin(rows: Rows, n_columns: int) -> LocalSteps:
    """Start every row at zero."""
    return LocalSteps(np.zeros((n_columns, 0)), np.zeros((rows.n_rows, 0)), rows.values.astype(np.float64))


def advance(rows: Rows, state: LocalSteps, projection: Projection) -> LocalSteps:
    """Move every row by its own error, with step size 1, then apply the map; rows stay independent."""
    basis = np.ascontiguousarray(projection.basis)
    coordinates = np.empty((rows.n_rows, basis.shape[1]))
    turn = state.basis.T @ basis
    arguments = (state.left_over, state.places, turn, basis, projection.kept, coordinates)
    run_over_rows(advance_rows, rows, *arguments)
    left_over = residuals(rows, coordinates, basis, np.zeros(rows.n_rows), np.zeros(len(basis)))
    return LocalSteps(basis, coordinates, left_over)


def bounded_moment(rows: Rows, state: LocalSteps, row_bound: float) -> Floats:
    """Return the exact second moment of the moved rows over `row_bound`, each clipped to norm 1.

    Products are whole fixed-point units, and sums over fewer than 2^27 rows stay below 2^53: they are exact
    in double precision, in any order of addition.
    """
    n_columns = len(state.basis)
    total = np.zeros((n_columns, n_columns))
    block = max(1, _ENTRIES_PER_BLOCK // n_columns)
    moved = np.empty((min(block, rows.n_rows), n_columns))
    for start in range(0, rows.n_rows, block):
        stop = min(start + block, rows.n_rows)
        # Row by row: a matrix product over a block could round a row differently depending on other rows.
        fill_moved_rows(
            start,
            stop,
            rows.indptr,
            rows.columns,
            state.left_over,
            state.places,
            state.basis,
            row_bound,
            ROOT_STEPS * ROUNDING,
            moved,
        )
        total += moved[: stop - start].T @ moved[: stop - start]
    return total / ROOT_STEPS**2
