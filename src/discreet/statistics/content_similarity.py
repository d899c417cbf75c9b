"""Sum how similar the items of each user are by public vectors, such as those of words that describe them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, final

import numpy as np

from discreet.core import Array, Floats, add_over_rows, require_fit
from discreet.core.kernels import compiled
from discreet.statistics.counts import MEAN_LENGTH
from discreet.statistics.domain import Numbers
from discreet.statistics.statistic import VECTOR_STEPS, Block, Part, Statistic, Steps


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ContentSimilarity(Statistic):
    """Sum of the mean similarity of two items of a user, and half the number of users with two items.

    The similarity of two items is the inner product of their `vectors`. A user's mean is clipped to s from -1
    to 1, so |(s, 1/2)| <= sqrt(1 + 1/4), whatever the vectors are.
    """

    vectors: Annotated[Floats, Numbers(("n", "k"), -1.0, 1.0)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the two sums."""
        return (Part("similarity", (2,), bound=MEAN_LENGTH),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        require_fit(block.rows(), len(self.vectors))
        vectors = np.ascontiguousarray(self.vectors)

        def part(start: int, stop: int, total: Steps) -> None:
            add_similarities(start, stop, block.indptr, block.items, vectors, VECTOR_STEPS, total)

        add_over_rows(part, block.indptr, *sums)


@compiled
def add_similarities(
    start: int, stop: int, indptr: Array, items: Array, vectors: Array, unit: float, totals: Array
) -> None:
    """Add the contributions of a range of rows in fixed point, truncated toward zero.

    The sum of all inner products of a row is the squared length of the sum of its vectors; the items' own
    squares are taken out. A user whose mean is not finite contributes nothing.
    """
    width = vectors.shape[1]
    together = np.empty(width)
    for row in range(start, stop):
        count = indptr[row + 1] - indptr[row]
        if count < 2:
            continue
        together[:] = 0.0
        own = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            for column in range(width):
                number = vectors[items[entry], column]
                together[column] += number
                own += number * number
        whole = 0.0
        for column in range(width):
            whole += together[column] * together[column]
        mean = (whole - own) / (float(count) * (count - 1.0))
        if not np.isfinite(mean):
            continue
        totals[0] += np.int64(min(max(mean, -1.0), 1.0) * unit)
        totals[1] += np.int64(0.5 * unit)
