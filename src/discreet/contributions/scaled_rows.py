"""Add up the second moment of what people's ratings leave, or its products with a vector, exactly.

Rows are first scaled to a length of at most 1 and cut to whole steps. The diagonal is left out everywhere: it
tells how large a row is, not which columns go together, and chance alone fills it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.contributions.blocks import Block
from discreet.contributions.domain import FARTHEST, LEAST, MOST, Number, Numbers, Stated
from discreet.contributions.grid import PRODUCT_BITS, ROUNDING, ROW_STEPS, Steps
from discreet.contributions.kernels import scaled_rows as row_kernels
from discreet.contributions.statistic import Part, Statistic
from discreet.data.interactions import Interactions
from discreet.solvers.kernels import shared as kernels
from discreet.solvers.rows import Rows, require_fit, run_over_rows

#: A vector of length 1, rounded; rows are shortened by more than that.
UNIT = 1 + 1e-9
# Threads add to sums of their own; beyond this size one sum is enough to hold.
_LARGEST_COPY = 1 << 21


class ScaledRows(NamedTuple):
    """Hold sparse rows of length at most 1 in whole steps."""

    indptr: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int16]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Scaling(Stated):
    """Say how a person's ratings, in units of `half` around `middle`, become a row of length at most 1.

    The offsets and the own ridge solution on a constant and the `factors` are taken off, what is left is cut
    to `clamp`: x_i. Then x is divided by max(sqrt(sum_i (x_i^2 + part^2)), least_length). The length counts
    `part` beside every residual, so that a row of tiny ones is not blown up; it is never below |x|. A row
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
        """Return the rows of a block; those of data in memory are kept for the next question about them."""
        kept = _last_rows.get(block.data)
        if kept is None or kept[0] is not self:
            kept = _last_rows[block.data] = (self, {})
        span = (block.start, block.stop)
        if span not in kept[1]:
            people = block.rows((block.values - self.middle) / self.half)
            kept[1][span] = self.of_rows(people)
        return kept[1][span]

    def of_rows(self, rows: Rows) -> ScaledRows:
        """Return rows, already in units, scaled."""
        require_fit(rows, self.offsets.size)
        steps = np.zeros(rows.values.size, dtype=np.int16)
        numbers = (float(self.part), float(self.clamp), float(self.least_length), ROW_STEPS * ROUNDING)
        given = (rows.values, self.offsets, self.factors, self.ridge, *numbers)
        run_over_rows(row_kernels.scale_residuals, rows, *given, steps)
        return ScaledRows(rows.indptr, rows.columns, steps)


# Oja's method asks about the same rows several times; they live as long as the data they were made of.
_last_rows: WeakKeyDictionary[Interactions, tuple[Scaling, dict[tuple[int, int], ScaledRows]]] = (
    WeakKeyDictionary()
)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledMoment(Statistic):
    """Sum x x' off its diagonal over people's scaled rows x; its Frobenius norm is at most |x|^2 <= 1."""

    scaling: Scaling

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of a matrix over all items."""
        size = self.scaling.offsets.size
        return (Part("moment", (size, size), bits=PRODUCT_BITS, symmetric=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        add_rows(row_kernels.add_second_moment, self.scaling.rows(block), sums[0])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ScaledProduct(Statistic):
    """Sum (x x' - diag) v over people's scaled rows x, without building the matrix.

    The matrix x x' without its diagonal has a spectral norm of at most its Frobenius norm, |x|^2 <= 1, so the
    product is at most |v| <= 1 long.
    """

    scaling: Scaling
    vector: Annotated[Floats, Numbers(("n",), -1.0, 1.0, longest=UNIT)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number an item."""
        return (Part("product", (self.vector.size,), bits=PRODUCT_BITS),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        settled = np.ascontiguousarray(self.vector, dtype=np.float64)
        # Products of entries are in steps as fine as those that are told.
        add_rows(row_kernels.add_products, self.scaling.rows(block), sums[0], settled, 1.0)


def own_places(rows: Rows, offsets: Floats, factors: Floats, ridge: Floats) -> Floats:
    """Return each row's ridge solution on the constant and the factors; `ridge` pulls the constant first.

    For the few factors of a round this is faster than the solver of alternating least squares, which is built
    for many.
    """
    require_fit(rows, offsets.size)
    out = np.empty((rows.n_rows, 1 + factors.shape[1]))
    run_over_rows(row_kernels.place_rows, rows, rows.values, offsets, factors, ridge, out)
    return out


def add_rows(kernel: Callable[..., None], rows: ScaledRows, total: Steps, *arguments: Any) -> None:
    """Add what `kernel` adds for all rows; every thread but one has a sum of its own."""
    small = total.size <= _LARGEST_COPY
    parts = kernels.thread_count() if small and rows.columns.size > _LARGEST_COPY // 16 else 1
    totals = [total, *(np.zeros_like(total) for _ in range(parts - 1))]
    cuts = np.searchsorted(rows.indptr, np.linspace(0, rows.columns.size, parts + 1))
    cuts[0], cuts[-1] = 0, rows.indptr.size - 1

    def add(part: int) -> None:
        span = (int(cuts[part]), int(cuts[part + 1]))
        kernel(*span, rows.indptr, rows.columns, rows.steps, *arguments, totals[part])

    if parts == 1:
        add(0)
        return
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(add, range(parts)))
    for own in totals[1:]:
        total += own
