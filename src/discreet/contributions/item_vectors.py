"""Add up what people tell about item vectors: leave-one-out residuals times that person's own factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats
from discreet.contributions.blocks import Block
from discreet.contributions.domain import FARTHEST, LEAST, MOST, Number, Numbers
from discreet.contributions.grid import Steps
from discreet.contributions.kernels.item_vectors import add_people
from discreet.contributions.statistic import Part, Statistic
from discreet.solvers.rows import require_fit, summed_over_rows


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemVectors(Statistic):
    """Sum items' residuals times people's factors, the items' counts, and the factors' second moment.

    A person explains the own ratings by a ridge over `features` beyond `offsets`; `scale` turns the solution
    into factors f of about unit size, the first of them 1, no longer than `longest` >= 1. With r_i and f_i
    computed without rating i, weights q_i = `pull` and c = `count_part` a person tells
    (w q_i r_i f_i, w q_i c) for each item i, w = 1 / sqrt(sum_i q_i^2 (r_i^2 |f_i|^2 + c^2)), of length 1;
    and, apart from that, the matrix
    sum_i f_i f_i' / (longest sqrt(n S)) with S = sum_i |f_i|^2, whose norm is at most 1: the norm of the sum
    is at most S, and S = sqrt(S) sqrt(S) <= sqrt(S) sqrt(n) longest.
    """

    middle: Annotated[float, Number(-FARTHEST, FARTHEST)]
    half: Annotated[float, Number(1 / FARTHEST, FARTHEST)]
    features: Annotated[Floats, Numbers(("n", "k"), -MOST, MOST)]
    offsets: Annotated[Floats, Numbers(("n",), -MOST, MOST)]
    ridge: Annotated[Floats, Numbers(("k",), LEAST, MOST)]
    scale: Annotated[Floats, Numbers(("k",), LEAST, MOST)]
    # Factors hold the constant 1, so nothing shorter than that is left of them.
    longest: Annotated[float, Number(1.0, MOST)]
    pull: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the vector of all sums and then all counts, and the moment."""
        n_items, size = self.features.shape
        return (Part("vectors", (n_items * (size + 1),)), Part("moment", (size, size), symmetric=True))

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.rows((block.values - self.middle) / self.half)
        require_fit(people, self.features.shape[0])

        def part(start: int, stop: int) -> tuple[Steps, Steps]:
            told, moment = (np.zeros(one.shape, dtype=np.int64) for one in sums)
            add_people(
                start,
                stop,
                people.indptr,
                people.columns,
                people.values,
                self.offsets,
                self.features,
                self.ridge,
                self.scale,
                self.longest,
                self.pull,
                self.count_part,
                *self.split(told),
                moment,
            )
            return told, moment

        for total, added in zip(sums, summed_over_rows(part, people.indptr), strict=True):
            total += added

    def split(self, told: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the items' sums and counts, as views."""
        return told[: self.features.size].reshape(self.features.shape), told[self.features.size :]
