"""Compile what a person tells about choices: who else they are like, seen without the item at hand."""

from __future__ import annotations

import numpy as np

from discreet.contributions.grid import ROUNDING, VECTOR_STEPS
from discreet.solvers.kernels.shared import Array, compiled

# What is left of a length after taking one item out of it must be more than rounding errors.
_LEAST_LEFT = 1e-9


@compiled
def _place_without(
    vector: Array, square: float, place: Array, total: float, longest: float, own: Array
) -> float:
    """Set `own` to where a person stands without one item; return its squared length, at most longest^2."""
    left = total - square
    if not left > _LEAST_LEFT * total:
        own[:] = 0
        return 0.0
    length = 0.0
    for a in range(own.size):
        own[a] = (place[a] - vector[a]) / np.sqrt(left)
        length += own[a] * own[a]
    if length > longest * longest:
        shorter = longest / np.sqrt(length)
        length = longest * longest
        for a in range(own.size):
            own[a] *= shorter
    return length


@compiled
def _add_person(
    columns: Array,
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
    place = np.zeros(size)
    total = 0.0
    for j in range(chosen):
        total += squares[columns[j]]
        for a in range(size):
            place[a] += vectors[columns[j], a]
    own = np.empty((chosen, size))
    length = 0.0
    for j in range(chosen):
        item = columns[j]
        inner = _place_without(vectors[item], squares[item], place, total, longest, own[j])
        length += pull[item] ** 2 * (inner + count_part**2)
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
    vectors: Array,
    squares: Array,
    longest: float,
    pull: Array,
    count_part: float,
    sums: Array,
    counts: Array,
) -> None:
    """Add what the people of a range of rows tell; somebody with a single choice tells nothing."""
    for row in range(start, stop):
        if indptr[row + 1] - indptr[row] > 1:
            _add_person(
                columns[indptr[row] : indptr[row + 1]],
                vectors,
                squares,
                longest,
                pull,
                count_part,
                sums,
                counts,
            )
