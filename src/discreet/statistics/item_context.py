"""Sum, for each item, the embeddings of the users who interacted with it, without that interaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, final

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats
from discreet.core.kernels import compiled
from discreet.core.rows import require_fit, summed_over_rows
from discreet.statistics.blocks import Block
from discreet.statistics.domain import LEAST, MOST, Number, Numbers
from discreet.statistics.fixed_point import ROUNDING, VECTOR_STEPS, Steps
from discreet.statistics.statistic import Part, Statistic


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemContext(Statistic):
    """Sum, for each item, the weighted embeddings of the users who interacted with it, and their weights.

    A user's embedding p is the sum of their items' `vectors` over the root of the sum of their `squares`,
    clipped to norm `longest`. p_i is the embedding without item i, at the time of i: an interaction has the
    weight `near`^s, with s the number of distinct times of interactions from it to i; without times, s = 0.
    With weights q_i = `item_weights` and c = `count_part` a user contributes (w q_i p_i, w q_i c) for each
    item i, w = 1 / sqrt(sum_i q_i^2 (|p_i|^2 + c^2)); its norm is 1.
    """

    vectors: Annotated[Floats, Numbers(("n", "k"), -MOST, MOST)]
    squares: Annotated[Floats, Numbers(("n",), 0.0, MOST)]
    longest: Annotated[float, Number(LEAST, MOST)]
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]
    near: Annotated[float, Number(0.0, 1.0)]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return one vector: all items' sums of embeddings, then all their weights."""
        n_items, size = self.vectors.shape
        return (Part("places", (n_items * (size + 1),)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people = block.rows(np.ones(block.items.size))
        require_fit(people, self.vectors.shape[0])
        order, same = block.in_time()
        decay = np.where(same, 1.0, self.near)

        def part(start: int, stop: int) -> tuple[Steps]:
            total = np.zeros(sums[0].shape, dtype=np.int64)
            embeddings, counts = self.split(total)
            given = (self.vectors, self.squares, self.longest, self.item_weights, self.count_part)
            add_contexts(start, stop, people.indptr, people.columns, order, decay, *given, embeddings, counts)
            return (total,)

        sums[0][:] += summed_over_rows(part, people.indptr)[0]

    def split(self, total: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the items' sums of embeddings and their weights, as views."""
        return total[: self.vectors.size].reshape(self.vectors.shape), total[self.vectors.size :]


# A sum of squares below this holds no interaction with a noticeable weight.
_LEAST_LEFT = 1e-12


@compiled
def _add_neighbors(
    columns: Array, order: Array, decay: Array, vectors: Array, squares: Array, own: Array, left: Array
) -> None:
    """Add to `own` and `left`, for each interaction, the user's others with weights that decay in time.

    `decay[t]` is the factor from interaction t-1 in `order` to t. Nothing is subtracted, so no difference of
    large numbers is contributed.
    """
    size, count = vectors.shape[1], columns.size
    for backward in range(2):
        running = np.zeros(size)
        total = 0.0
        for t in range(count):
            step = count - t if backward else t
            weight = decay[step] if t else 0.0
            j = order[count - 1 - t] if backward else order[t]
            total *= weight * weight
            left[j] += total
            for a in range(size):
                running[a] *= weight
                own[j, a] += running[a]
                running[a] += vectors[columns[j], a]
            total += squares[columns[j]]


@compiled
def _shorten(own: Array, left: float, longest: float) -> float:
    """Divide an embedding by the root of `left` and clip it to `longest`; return its squared norm."""
    if not left > _LEAST_LEFT:
        own[:] = 0
        return 0.0
    length = 0.0
    for a in range(own.size):
        own[a] /= np.sqrt(left)
        length += own[a] * own[a]
    # An infinite norm stays infinite: its user then contributes nothing.
    if np.isfinite(length) and length > longest * longest:
        shorter = longest / np.sqrt(length)
        length = longest * longest
        for a in range(own.size):
            own[a] *= shorter
    return length


@compiled
def _add_user(
    columns: Array,
    order: Array,
    decay: Array,
    vectors: Array,
    squares: Array,
    longest: float,
    item_weights: Array,
    count_part: float,
    sums: Array,
    counts: Array,
) -> None:
    """Add the contribution of one user; nothing if its numbers are not finite."""
    size, count = vectors.shape[1], columns.size
    own = np.zeros((count, size))
    left = np.zeros(count)
    _add_neighbors(columns, order, decay, vectors, squares, own, left)
    length = 0.0
    for j in range(count):
        inner = _shorten(own[j], left[j], longest)
        length += item_weights[columns[j]] ** 2 * (inner + count_part**2)
    weight = ROUNDING / np.sqrt(length)
    if not (np.isfinite(length) and np.isfinite(weight)):
        return
    for j in range(count):
        item = columns[j]
        item_weight = weight * item_weights[item]
        counts[item] += np.int64(item_weight * count_part * VECTOR_STEPS)
        for a in range(size):
            sums[item, a] += np.int64(item_weight * own[j, a] * VECTOR_STEPS)


@compiled
def add_contexts(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    order: Array,
    decay: Array,
    vectors: Array,
    squares: Array,
    longest: float,
    item_weights: Array,
    count_part: float,
    sums: Array,
    counts: Array,
) -> None:
    """Add the contributions of a range of rows; a user with a single interaction contributes nothing.

    `order` holds the positions of each row's interactions in the order of time.
    """
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        if last - first > 1:
            _add_user(
                columns[first:last],
                order[first:last] - first,
                decay[first:last],
                vectors,
                squares,
                longest,
                item_weights,
                count_part,
                sums,
                counts,
            )
