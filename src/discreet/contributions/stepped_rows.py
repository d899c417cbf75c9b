"""Add up what people's rows have left after published rounds of rank one: the Frank-Wolfe method as printed.

A person repeats the rounds on their own row (`RoundsSoFar`), so what they tell depends on that row and on
released numbers only. Unlike `scaled_rows`, rows keep their own length: they are bounded by clipping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from discreet.arrays import Floats
from discreet.contributions.blocks import Block
from discreet.contributions.domain import FARTHEST, DomainError, Number, Numbers, Stated, Whole
from discreet.contributions.grid import PRODUCT_BITS, ROUNDING, ROW_STEPS, Steps
from discreet.contributions.kernels import stepped_rows as row_kernels
from discreet.contributions.scaled_rows import UNIT, ScaledRows, add_rows
from discreet.contributions.statistic import Part, Statistic
from discreet.solvers.rows import Rows, require_fit, run_over_rows


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RoundsSoFar(Stated):
    """Hold what was published: directions (items by rounds so far) and the pace k / (T lambda') of each.

    Ratings are in units of `half` around `middle`; `row_bound` is L in these units, `rounds` is T.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    row_bound: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    rounds: Annotated[int, Whole(0, 1000)]
    directions: Annotated[Floats, Numbers(("n", "r"), -2.0, 2.0)]
    paces: Annotated[Floats, Numbers(("r",), 0.0, FARTHEST)]

    def __post_init__(self) -> None:
        """Check the fields; there are no more rounds than T."""
        Stated.__post_init__(self)
        if self.paces.size > self.rounds:
            raise DomainError(f"paces are those of {self.paces.size} rounds; there are {self.rounds}.")

    def after(self, direction: Floats, pace: float) -> RoundsSoFar:
        """Return the rounds with one more."""
        return RoundsSoFar(
            middle=self.middle,
            half=self.half,
            row_bound=self.row_bound,
            rounds=self.rounds,
            directions=np.column_stack([self.directions, direction]),
            paces=np.append(self.paces, pace),
        )

    def places(self, rows: Rows) -> Floats:
        """Return each row's own mean and places on all directions, both in units of `half`."""
        require_fit(rows, len(self.directions))
        out = np.zeros((rows.n_rows, 1 + self.rounds))
        given = (rows.values, self._settled(), self.paces, float(self.row_bound))
        run_over_rows(row_kernels.place_rows, rows, *given, out)
        return out

    def left_over(self, block: Block) -> ScaledRows:
        """Return what people have left over 2 L, at most 1 long; a row that is not finite becomes zero."""
        rows = block.rows((block.values - self.middle) / self.half)
        steps = np.zeros(rows.values.size, dtype=np.int16)
        given = (rows.values, self._settled(), self.paces, self.rounds, float(self.row_bound))
        run_over_rows(row_kernels.leave_rows, rows, *given, ROW_STEPS * ROUNDING, steps)
        return ScaledRows(rows.indptr, rows.columns, steps)

    def _settled(self) -> Floats:
        return np.ascontiguousarray(self.directions, dtype=np.float64)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SteppedMoment(Statistic):
    """Sum a a' over people's left-over rows a; its Frobenius norm is |a|^2 <= 1."""

    so_far: RoundsSoFar

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of a matrix over all items."""
        size = len(self.so_far.directions)
        return (Part("moment", (size, size), bits=PRODUCT_BITS, symmetric=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        add_rows(row_kernels.add_moment, self.so_far.left_over(block), sums[0])


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SteppedProduct(Statistic):
    """Sum a (a . v) over people's left-over rows a, with |v| <= 1: at most |a|^2 <= 1 long."""

    so_far: RoundsSoFar
    vector: Annotated[Floats, Numbers(("n",), -1.0, 1.0, longest=UNIT)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number an item."""
        return (Part("product", (self.vector.size,), bits=PRODUCT_BITS),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        settled = np.ascontiguousarray(self.vector, dtype=np.float64)
        add_rows(row_kernels.add_products, self.so_far.left_over(block), sums[0], settled)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class SteppedStretch(Statistic):
    """Sum (a . v)^2 over people's left-over rows a, with |v| <= 1: at most |a|^2 <= 1."""

    so_far: RoundsSoFar
    vector: Annotated[Floats, Numbers(("n",), -1.0, 1.0, longest=UNIT)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one number."""
        return (Part("stretch", (1,), bits=PRODUCT_BITS),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        settled = np.ascontiguousarray(self.vector, dtype=np.float64)
        add_rows(row_kernels.add_stretch, self.so_far.left_over(block), sums[0], settled)
