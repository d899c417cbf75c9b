"""Add up where the people who chose an item stand, seen without that choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.contributions.blocks import Block
from discreet.contributions.domain import LEAST, MOST, Number, Numbers
from discreet.contributions.grid import Steps
from discreet.contributions.kernels.choices import add_choices
from discreet.contributions.statistic import Part, Statistic
from discreet.solvers.rows import require_fit, summed_over_rows


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ChoicePlaces(Statistic):
    """Sum, for each item, the weighted places of those who chose it, and their weight.

    Choices put a person at p: the sum of the items' `vectors` over the root of the sum of their `squares`,
    shortened to `longest`. p_i is the place without item i, as seen at the time when i was chosen: a choice
    counts by `near` to the number of times at which the person chose anything from there to i (where there
    are no times, all count alike). With weights q_i = `pull` and c = `count_part` a person tells
    (w q_i p_i, w q_i c) for each item i, w = 1 / sqrt(sum_i q_i^2 (|p_i|^2 + c^2)); its length is 1.
    """

    vectors: Annotated[Floats, Numbers(("n", "k"), -MOST, MOST)]
    squares: Annotated[Floats, Numbers(("n",), 0.0, MOST)]
    longest: Annotated[float, Number(LEAST, MOST)]
    pull: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]
    near: Annotated[float, Number(0.0, 1.0)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one vector: all items' sums of places, then all their weights."""
        n_items, size = self.vectors.shape
        return (Part("places", (n_items * (size + 1),)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.rows(np.ones(block.items.size))
        require_fit(people, self.vectors.shape[0])
        order, same = block.in_time()
        fade = np.where(same, 1.0, self.near)

        def part(start: int, stop: int) -> tuple[Steps]:
            told = np.zeros(sums[0].shape, dtype=np.int64)
            places, counts = self.split(told)
            given = (self.vectors, self.squares, self.longest, self.pull, self.count_part)
            add_choices(start, stop, people.indptr, people.columns, order, fade, *given, places, counts)
            return (told,)

        sums[0][:] += summed_over_rows(part, people.indptr)[0]

    def split(self, told: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the items' sums of places and their weights, as views."""
        return told[: self.vectors.size].reshape(self.vectors.shape), told[self.vectors.size :]
