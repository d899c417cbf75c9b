"""Compile the sums of weights between items."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Array
from discreet.core.kernels import compiled


@compiled
def add_neighbors(own: Array, recency: Array, neighbors: Array, weights: Array, out: Array) -> None:
    """Add the weights of a user's items to those of their neighbors; places of -1 have none.

    A product of two singles is exact in double precision, so only the additions are rounded.
    """
    for entry in range(own.size):
        place = own[entry]
        if place < 0:
            continue
        weight, line, names = float(recency[entry]), weights[place], neighbors[place]
        for j in range(names.size):
            # An unsigned index cannot count from the end, which saves a comparison.
            out[np.uint32(names[j])] += weight * float(line[j])


@compiled
def add_rows_of_neighbors(
    start: int,
    stop: int,
    indptr: Array,
    own: Array,
    recency: Array,
    neighbors: Array,
    weights: Array,
    out: Array,
) -> None:
    """Add them for a range of users."""
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        add_neighbors(own[entries], recency[entries], neighbors, weights, out[row])
