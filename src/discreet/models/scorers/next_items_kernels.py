"""Compile the sums of weights between items, which are kept in half precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import Array
from discreet.core.kernels import compiled, fetch_row, inner

# A half, its exponent moved into that of a single, is the single times this.
_EXPONENT = 2.0**112


def packed(neighbors: npt.NDArray[np.int32], weights: npt.NDArray[np.float16]) -> tuple[Array, Array]:
    """Return both in as few bytes as can be, for most of the time is spent on fetching them."""
    kind: Any = np.uint16 if len(neighbors) <= 1 << 16 else np.uint32
    return neighbors.astype(kind), np.ascontiguousarray(weights).view(np.uint16)


@inner
def add_neighbors(
    own: Array, recency: Array, neighbors: Array, halves: Array, bits: Array, out: Array
) -> None:
    """Add the weights of a user's items to those of their neighbors; places of -1 have none.

    `bits` is room for a line of weights. A product of two singles is exact in double precision, so only the
    additions are rounded.
    """
    numbers = bits.view(np.float32)
    for entry in range(own.size):
        place = own[entry]
        # Lines are far apart, and waiting for the next one takes longer than its sums.
        if entry + 1 < own.size and own[entry + 1] >= 0:
            fetch_row(halves, own[entry + 1])
            fetch_row(neighbors, own[entry + 1])
        if place < 0:
            continue
        line, names, weight = halves[place], neighbors[place], float(recency[entry]) * _EXPONENT
        for j in range(names.size):
            half = np.int32(line[j])
            bits[j] = ((half & 0x7FFF) << 13) | ((half & 0x8000) << 16)
        for j in range(names.size):
            out[names[j]] += weight * float(numbers[j])


@compiled
def add_rows_of_neighbors(
    start: int,
    stop: int,
    indptr: Array,
    own: Array,
    recency: Array,
    neighbors: Array,
    halves: Array,
    out: Array,
) -> None:
    """Add them for a range of users."""
    bits = np.empty(neighbors.shape[1], np.int32)
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        add_neighbors(own[entries], recency[entries], neighbors, halves, bits, out[row])
