"""Compile what a person tells about choices: who else they are like, seen without the item at hand."""

from __future__ import annotations

import numpy as np

from discreet.contributions.grid import ROUNDING, VECTOR_STEPS
from discreet.solvers.kernels.shared import Array, compiled

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
    pull: Array,
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
        length += pull[columns[j]] ** 2 * (inner + count_part**2)
    weight = ROUNDING / np.sqrt(length)
    if not (np.isfinite(length) and np.isfinite(weight)):
        return
    for j in range(chosen):
        item = columns[j]
        item_weight = weight * pull[item]
        counts[item] += np.int64(item_weight * count_part * VECTOR_STEPS)
        for a in range(size):
            sums[item, a] += np.int64(item_weight * own[j, a] * VECTOR_STEPS)


@compiled
def add_choices(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    order: Array,
    fade: Array,
    vectors: Array,
    squares: Array,
    longest: float,
    pull: Array,
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
                pull,
                count_part,
                sums,
                counts,
            )
