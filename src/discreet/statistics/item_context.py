"""Sum, for each item, the embeddings of the users who interacted with it, without that interaction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import Array, Floats, add_over_rows, require_fit
from discreet.core.kernels import AHEAD, compiled, fetch_row, inner, longest_row
from discreet.statistics.domain import LEAST, MOST, Number, Numbers
from discreet.statistics.norm_clipping import clip_embedding
from discreet.statistics.statistic import ROUNDING, VECTOR_STEPS, Block, Part, Statistic, Steps


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ItemContext(Statistic):
    """Sums, for each item, of the weighted embeddings of the users who interacted with it, and their weights.

    A user's embedding p is the sum of their items' `vectors` over the root of the sum of their `squares`,
    clipped to norm `longest`. p_i is the embedding without item i, at the time of i: an interaction has the
    weight `near`^s, with s the number of distinct times of interactions from it to i; without times, s = 0.
    With weights q_i = `item_weights`, times the weight of the user's interaction with i, and c = `count_part`
    a user contributes (w q_i p_i, w q_i c) for each item i, w = 1 / sqrt(sum_i q_i^2 (|p_i|^2 + c^2)); its
    norm is 1.
    """

    vectors: Annotated[Floats, Numbers(("n", "k"), -MOST, MOST)]
    squares: Annotated[Floats, Numbers(("n",), 0.0, MOST)]
    longest: Annotated[float, Number(LEAST, MOST)]
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
    count_part: Annotated[float, Number(LEAST, MOST)]
    near: Annotated[float, Number(0.0, 1.0)]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return one vector: all items' sums of embeddings, then all their weights."""
        n_items, size = self.vectors.shape
        return (Part("places", (n_items * (size + 1),)),)

    def _add(self, block: Block, sums: tuple[Steps, ...]) -> None:
        people, weights = block.rows(np.ones(block.items.size)), block.weights
        require_fit(people, self.vectors.shape[0])
        order, same = block.in_time()
        decay = np.where(same, 1.0, self.near)
        asked = ContextAsked(*(getattr(self, name) for name in ContextAsked._fields))

        def part(start: int, stop: int, total: Steps) -> None:
            embeddings, counts = self.split(total)
            rows = (people.indptr, people.columns, weights, order, decay)
            add_contexts(start, stop, *rows, asked, embeddings, counts)

        add_over_rows(part, people.indptr, *sums)

    def split(self, total: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the items' sums of embeddings and their weights, as views."""
        return total[: self.vectors.size].reshape(self.vectors.shape), total[self.vectors.size :]


class ContextAsked(NamedTuple):
    """What `ItemContext` states, for compiled loops."""

    vectors: Array
    squares: Array
    longest: float
    item_weights: Array
    count_part: float


@inner
def _add_neighbors(
    columns: Array,
    order: Array,
    decay: Array,
    first: int,
    asked: ContextAsked,
    running: Array,
    own: Array,
    left: Array,
) -> None:
    """Write to `own` and `left`, for each interaction, the user's others with weights that decay in time.

    `decay[t]` is the factor from interaction t-1 in `order` to t. Nothing is subtracted, so no difference of
    large numbers is contributed.
    """
    vectors, squares = asked.vectors, asked.squares
    size, count = vectors.shape[1], columns.size
    for backward in range(2):
        running[:] = 0
        total = 0.0
        for t in range(count):
            if not backward and t + AHEAD < count:
                fetch_row(vectors, columns[order[t + AHEAD] - first])
            weight = (decay[count - t] if backward else decay[t]) if t else 0.0
            j = (order[count - 1 - t] if backward else order[t]) - first
            vector, line = vectors[columns[j]], own[j]
            total *= weight * weight
            left[j] = left[j] + total if backward else total
            if backward:
                for a in range(size):
                    before = running[a] * weight
                    line[a] += before
                    running[a] = before + vector[a]
            else:
                for a in range(size):
                    before = running[a] * weight
                    line[a] = before
                    running[a] = before + vector[a]
            total += squares[columns[j]]


@inner
def _add_user(
    columns: Array,
    weights: Array,
    own: Array,
    left: Array,
    asked: ContextAsked,
    sums: Array,
    counts: Array,
) -> None:
    """Add the contribution of one user, given the embeddings; nothing if its numbers are not finite."""
    item_weights, count_part = asked.item_weights, asked.count_part
    size, count, length = sums.shape[1], columns.size, 0.0
    for j in range(count):
        # What was left is not needed any more; its place has the factor.
        left[j], product = clip_embedding(own[j], left[j], asked.longest)
        length += (item_weights[columns[j]] * weights[j]) ** 2 * (product + count_part**2)
    weight = ROUNDING / np.sqrt(length) * VECTOR_STEPS
    if not (np.isfinite(length) and np.isfinite(weight)):
        return
    for j in range(count):
        if j + AHEAD < count:
            fetch_row(sums, columns[j + AHEAD])
        item = columns[j]
        item_weight = weight * item_weights[item] * weights[j]
        counts[item] += np.int64(item_weight * count_part)
        line, total, factor = own[j], sums[item], item_weight * left[j]
        for a in range(size):
            # At most 2^24 units, so 32 bits hold them; processors convert to these faster.
            total[a] += np.int64(np.int32(factor * line[a]))


@compiled
def add_contexts(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    weights: Array,
    order: Array,
    decay: Array,
    asked: ContextAsked,
    sums: Array,
    counts: Array,
) -> None:
    """Add the contributions of a range of rows; a user with a single interaction contributes nothing.

    `order` has the positions of each row's interactions in the order of time.
    """
    most, size = longest_row(start, stop, indptr), asked.vectors.shape[1]
    own, left, running = np.empty((most, size)), np.empty(most), np.empty(size)
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        if last - first < 2:
            continue
        entries = slice(first, last)
        items = columns[entries]
        _add_neighbors(items, order[entries], decay[entries], first, asked, running, own, left)
        _add_user(items, weights[entries], own, left, asked, sums, counts)
