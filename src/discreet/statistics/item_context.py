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
    item_weights: Annotated[Floats, Numbers(("n",), LEAST, MOST)]
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
            given = (self.vectors, self.squares, self.longest, self.item_weights, self.count_part)
            add_contexts(start, stop, people.indptr, people.columns, order, fade, *given, places, counts)
            return (told,)

        sums[0][:] += summed_over_rows(part, people.indptr)[0]

    def split(self, told: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the items' sums of places and their weights, as views."""
        return told[: self.vectors.size].reshape(self.vectors.shape), told[self.vectors.size :]


# Below this a sum of squares holds no choice that counts.
_LEAST_LEFT = 1e-12


@compiled
def _add_neighbors(
    columns: Array, order: Array, fade: Array, vectors: Array, squares: Array, own: Array, left: Array
) -> None:
    """Add to `own` and `left`, choice by choice, all others of this person, fading with their distance.

    `fade[t]` is what is left on the step from the t-1st choice in `order` to the t-th. Nothing is taken away
    again, so no difference of large numbers is told.
    """
    size, chosen = vectors.shape[1], columns.size
    for backward in range(2):
        place = np.zeros(size)
        total = 0.0
        for t in range(chosen):
            step = chosen - t if backward else t
            weight = fade[step] if t else 0.0
            j = order[chosen - 1 - t] if backward else order[t]
            total *= weight * weight
            left[j] += total
            for a in range(size):
                place[a] *= weight
                own[j, a] += place[a]
                place[a] += vectors[columns[j], a]
            total += squares[columns[j]]


@compiled
def _shorten(own: Array, left: float, longest: float) -> float:
    """Scale a place by how much made it, and to at most `longest`; return its squared length."""
    if not left > _LEAST_LEFT:
        own[:] = 0
        return 0.0
    length = 0.0
    for a in range(own.size):
        own[a] /= np.sqrt(left)
        length += own[a] * own[a]
    # An infinite length stays one: whoever it belongs to tells nothing.
    if np.isfinite(length) and length > longest * longest:
        shorter = longest / np.sqrt(length)
        length = longest * longest
        for a in range(own.size):
            own[a] *= shorter
    return length


@compiled
def _add_person(
    columns: Array,
    order: Array,
    fade: Array,
    vectors: Array,
    squares: Array,
    longest: float,
    item_weights: Array,
    count_part: float,
    sums: Array,
    counts: Array,
) -> None:
    """Add what one person tells; a person whose numbers are not finite tells nothing."""
    size, chosen = vectors.shape[1], columns.size
    own = np.zeros((chosen, size))
    left = np.zeros(chosen)
    _add_neighbors(columns, order, fade, vectors, squares, own, left)
    length = 0.0
    for j in range(chosen):
        inner = _shorten(own[j], left[j], longest)
        length += item_weights[columns[j]] ** 2 * (inner + count_part**2)
    weight = ROUNDING / np.sqrt(length)
    if not (np.isfinite(length) and np.isfinite(weight)):
        return
    for j in range(chosen):
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
    fade: Array,
    vectors: Array,
    squares: Array,
    longest: float,
    item_weights: Array,
    count_part: float,
    sums: Array,
    counts: Array,
) -> None:
    """Add what the people of a range of rows tell; somebody with a single choice tells nothing.

    `order` holds the places of each row's choices in the order of their times.
    """
    for row in range(start, stop):
        first, last = indptr[row], indptr[row + 1]
        if last - first > 1:
            _add_person(
                columns[first:last],
                order[first:last] - first,
                fade[first:last],
                vectors,
                squares,
                longest,
                item_weights,
                count_part,
                sums,
                counts,
            )
