"""Compile the loops over people's profiles: a person's place among the items they chose, seen from each item.

A person's profile is the sum of the vectors of the chosen items, divided by the size of that set, centered
and scaled. Seen from a chosen item, that item's own vector is left out of the sum: otherwise an item would
meet itself in everybody who chose it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discreet.solvers.kernels.shared import Array, compiled


class Lens(NamedTuple):
    """Say how items become a profile.

    `squares` are what items add to the size of a set. The sum of vectors is divided by the root of the size,
    or, where `growth` is not empty, coordinate by coordinate by `1 + growth * size`. Then `center` is
    subtracted and `scale` multiplied, and the profile is shortened to the length `clip`.
    """

    vectors: Array
    squares: Array
    growth: Array
    center: Array
    scale: Array
    clip: float


class Telling(NamedTuple):
    """Say what a person tells about an item: `pull` times a count, a profile and products of its entries."""

    pull: Array
    count_part: float
    pairs: Array
    pair_part: float


@compiled
def sum_rows(start: int, stop: int, indptr: Array, columns: Array, lens: Lens, out: Array) -> None:
    """Write for each row the sum of the chosen items' vectors and, in the last column, of their squares."""
    width = lens.vectors.shape[1]
    for row in range(start, stop):
        out[row, :] = 0.0
        for cell in range(indptr[row], indptr[row + 1]):
            item = columns[cell]
            for a in range(width):
                out[row, a] += lens.vectors[item, a]
            out[row, width] += lens.squares[item]


@compiled
def place(lens: Lens, total: Array, item: int, out: Array) -> None:
    """Set `out` to the profile of one person without one item; with all of them if the item is -1."""
    width = out.size
    size = total[width] - (lens.squares[item] if item >= 0 else 0.0)
    out[:] = 0.0
    if size <= 1e-12 * total[width]:
        return
    if item >= 0:
        for a in range(width):
            out[a] = total[a] - lens.vectors[item, a]
    else:
        for a in range(width):
            out[a] = total[a]
    if lens.growth.size:
        for a in range(width):
            out[a] /= lens.growth[a] * size + 1.0
    else:
        inverse = 1.0 / math.sqrt(size)
        for a in range(width):
            out[a] *= inverse
    length = 0.0
    for a in range(width):
        out[a] = (out[a] - lens.center[a]) * lens.scale[a]
        length += out[a] * out[a]
    if length > lens.clip * lens.clip:
        shrink = lens.clip / math.sqrt(length)
        for a in range(width):
            out[a] *= shrink


@compiled
def tell(telling: Telling, profile: Array, pull: float, out: Array) -> None:
    """Set `out` to what a person with this profile tells about one item."""
    width = profile.size
    out[0] = pull * telling.count_part
    for a in range(width):
        out[1 + a] = pull * profile[a]
    for p in range(telling.pairs.shape[0]):
        product = profile[telling.pairs[p, 0]] * profile[telling.pairs[p, 1]]
        out[1 + width + p] = pull * telling.pair_part * product


@compiled
def place_rows(start: int, stop: int, lens: Lens, totals: Array, out: Array) -> None:
    """Write the profile of each person, all chosen items included."""
    for row in range(start, stop):
        place(lens, totals[row], -1, out[row])


@compiled
def told_norms(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    totals: Array,
    lens: Lens,
    telling: Telling,
    absolute: bool,
    scratch: Array,
    out: Array,
) -> None:
    """Write the norm of everything each person tells: l1 if `absolute`, else l2."""
    told = scratch.copy()
    profile = scratch[: lens.vectors.shape[1]].copy()
    for row in range(start, stop):
        norm = 0.0
        for cell in range(indptr[row], indptr[row + 1]):
            item = columns[cell]
            place(lens, totals[row], item, profile)
            tell(telling, profile, telling.pull[item], told)
            for a in range(told.size):
                norm += abs(told[a]) if absolute else told[a] * told[a]
        out[row] = norm if absolute else math.sqrt(norm)


@compiled
def add_told(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    totals: Array,
    lens: Lens,
    telling: Telling,
    weights: Array,
    steps: float,
    absolute: bool,
    scratch: Array,
    out: Array,
) -> None:
    """Add to each item what its people tell, in whole steps cut toward zero.

    Everything a person tells is scaled to norm `steps`, or by `weights` in steps where they are not empty.
    The sums are whole numbers, so they are exact and can be added up in any order.
    """
    profile = scratch[0, : lens.vectors.shape[1]].copy()
    for row in range(start, stop):
        first = indptr[row]
        norm = 0.0
        for cell in range(first, indptr[row + 1]):
            item, told = columns[cell], scratch[cell - first]
            place(lens, totals[row], item, profile)
            tell(telling, profile, telling.pull[item], told)
            for a in range(told.size):
                norm += abs(told[a]) if absolute else told[a] * told[a]
        weight = weights[row] if weights.size else steps / (norm if absolute else math.sqrt(norm))
        if norm == 0.0 or not (np.isfinite(norm) and np.isfinite(weight)):
            continue
        for cell in range(first, indptr[row + 1]):
            item, told = columns[cell], scratch[cell - first]
            for a in range(told.size):
                out[item, a] += np.int64(weight * told[a])
