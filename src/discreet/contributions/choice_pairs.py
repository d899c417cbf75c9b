"""Add up which items the same people chose, and how near in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.contributions.blocks import Block
from discreet.contributions.domain import Length, Number, Numbers, Places
from discreet.contributions.grid import PRODUCT_BITS, Steps
from discreet.contributions.kernels.choice_pairs import add_pairs
from discreet.contributions.row_moment import places_among
from discreet.contributions.statistic import Part, Statistic
from discreet.solvers.rows import summed_over_rows


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ChoicePairs(Statistic):
    """Sum, over pairs of items in `top` (ascending), how much the same people chose both.

    A pair (i, j) of a person's choices counts by q_i q_j (a + (1 - a) n^s), with q the items' `weight`,
    a = `apart` and n = `near`, both from 0 to 1, and s the number of times at which the person chose anything
    from one to the other; where there are no times, s = 0. The symmetric matrix of all of a person's pairs,
    whose diagonal is empty, is divided by its Frobenius norm: its length is 1, however few pairs it has.
    """

    n_items: Annotated[int, Length("n")]
    top: Annotated[npt.NDArray[np.int64], Places(("t",), below="n", rising=True)]
    # Weights are divided by a person's largest; whoever has only zeros has no pair.
    weight: Annotated[Floats, Numbers(("t",), 0.0, 1e305)]
    near: Annotated[float, Number(0.0, 1.0)]
    apart: Annotated[float, Number(0.0, 1.0)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the upper triangle of the matrix over `top`."""
        shape = (self.top.size, self.top.size)
        return (Part("pairs", shape, bits=PRODUCT_BITS, symmetric=True, nonnegative=True),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        places = places_among(self.top, self.n_items)[block.items]
        weights = np.append(self.weight, 0.0)[places]
        order, same = block.in_time()
        fade = np.where(same, 1.0, self.near)

        def part(start: int, stop: int) -> tuple[Steps]:
            told = np.zeros(sums[0].shape, dtype=np.int64)
            add_pairs(start, stop, block.indptr, order, fade, places, weights, self.apart, told)
            return (told,)

        told = summed_over_rows(part, block.indptr)[0]
        sums[0][:] += np.triu(told + told.T)
