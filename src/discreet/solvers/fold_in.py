"""Explain the ratings of each of many users by features of items: a ridge problem a user, in compiled loops.

A user's numbers are computed in an order that depends on that user's row only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.core import Array, Floats, Rows, require_fit, run_over_rows
from discreet.core.kernels import AHEAD, HIGH, WIDE, compiled, dot, fetch_row, in_lines, inner
from discreet.solvers.block_algebra import add_row_products, solve, width_of
from discreet.solvers.errors import NoFiniteAnswer

# Ratings whose features are copied before their products are added: the nearest cache has room for them.
_RATINGS = 48

# Offsets, features, and the ridge.
Asked = tuple[Array, Array, Array]


def solve_users(
    rows: Rows, features: Floats, *, ridge: Floats, scales: Floats | None = None, offsets: Floats
) -> Floats:
    """Return for every row the `x` that minimizes a squared error plus a ridge; without values, zeros.

    The error is `sum (value - offset - feature . x)^2`, the ridge `scale sum ridge x^2`, with a scale for
    each row, and 1 if not given.

    Raises:
        DataError: A row has no finite answer.
    """
    require_fit(rows, features.shape[0])
    out = np.zeros((rows.n_rows, features.shape[1]))
    own = np.ones(rows.n_rows) if scales is None else scales
    run_over_rows(_solve_range, rows, rows.values, offsets, features, ridge, own, out)
    if not np.isfinite(out).all():
        raise NoFiniteAnswer()
    return out


class FoldInRoom(NamedTuple):
    """The arrays that `fold_in_rows` works in; `roots` divide features so that their ridge is 1.

    Users with at most `few` ratings have a smaller system: a line for each rating instead of each feature.
    """

    block: Array
    normal: Array
    swept: Array
    four: Array
    answer: Array
    roots: Array
    few: int

    @classmethod
    def of(cls, ridge: Array) -> FoldInRoom:
        """Return room for this many features."""
        high = max(-(-ridge.size // HIGH) * HIGH, _RATINGS)
        wide = width_of(high + 1)
        definite = bool(ridge.min(initial=np.inf) > 0)
        roots = 1 / np.sqrt(ridge) if definite else np.zeros(ridge.size)
        squares = (in_lines(high * wide), in_lines(high * wide), np.empty((HIGH, HIGH)), np.empty(high))
        return cls(in_lines(high * wide), *squares, roots, min(_RATINGS, ridge.size) if definite else 0)


def _solve_range(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    offsets: Array,
    features: Array,
    ridge: Array,
    scales: Array,
    out: Array,
) -> None:
    """Solve a range of rows, in room of its own."""
    asked = (offsets, features, ridge)
    fold_in_rows(start, stop, indptr, columns, values, scales, asked, FoldInRoom.of(ridge), out)


@inner
def _by_feature(
    columns: Array,
    values: Array,
    scale: float,
    asked: Asked,
    room: FoldInRoom,
    out: Array,
) -> bool:
    """Solve a system with a line for each feature; one column more has what is to be explained."""
    offsets, features, ridge = asked
    size, high = ridge.size, (ridge.size + HIGH - 1) // HIGH * HIGH
    wide = (high + WIDE) // WIDE * WIDE
    block = room.block[: _RATINGS * wide].reshape((_RATINGS, wide))
    normal = room.normal[: high * wide].reshape((high, wide))
    swept = room.swept[: high * wide].reshape((high, wide))
    block[:] = 0.0
    normal[:] = 0.0
    for a in range(high):
        # Columns that fill up the features are zero, and so are their unknowns.
        normal[a, a] = scale * ridge[a] if a < size else 1.0
    for first in range(0, columns.size, _RATINGS):
        count = min(_RATINGS, columns.size - first)
        for j in range(count):
            feature, one = features[columns[first + j]], block[j]
            if first + j + AHEAD < columns.size:
                fetch_row(features, columns[first + j + AHEAD])
            for a in range(feature.size):
                one[a] = feature[a]
            one[high] = values[first + j] - offsets[columns[first + j]]
        add_row_products(block, count, high, normal)
    if not solve(normal, high, room.four, swept, room.answer):
        return False
    for a in range(size):
        out[a] = room.answer[a]
    return True


@inner
def _by_rating(
    columns: Array,
    values: Array,
    scale: float,
    asked: Asked,
    room: FoldInRoom,
    out: Array,
) -> bool:
    """Solve the smaller system, a line for each of a few ratings; their features add up to the answer."""
    offsets, features, _ = asked
    size, high = out.size, (columns.size + HIGH - 1) // HIGH * HIGH
    wide = (high + WIDE) // WIDE * WIDE
    block = room.block[: size * wide].reshape((size, wide))
    inner_products = room.normal[: high * wide].reshape((high, wide))
    swept = room.swept[: high * wide].reshape((high, wide))
    block[:] = 0.0
    inner_products[:] = 0.0
    for j in range(high):
        inner_products[j, j] = scale
    for j in range(columns.size):
        feature = features[columns[j]]
        for a in range(size):
            block[a, j] = room.roots[a] * feature[a]
        inner_products[j, high] = values[j] - offsets[columns[j]]
    add_row_products(block, size, high, inner_products)
    if not solve(inner_products, high, room.four, swept, room.answer):
        return False
    for a in range(size):
        out[a] = room.roots[a] * dot(block[a, : columns.size], room.answer[: columns.size])
    return True


@compiled
def fold_in_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    scales: Array,
    asked: Asked,
    room: FoldInRoom,
    out: Array,
) -> None:
    """Write the answer of each row that has values; one without a definite system becomes NaN."""
    for row in range(start, stop):
        entries = slice(indptr[row], indptr[row + 1])
        own, rated, solved = columns[entries], values[entries], True
        if 0 < own.size <= room.few:
            solved = _by_rating(own, rated, scales[row], asked, room, out[row])
        elif own.size > 0:
            solved = _by_feature(own, rated, scales[row], asked, room, out[row])
        if not solved:
            for a in range(out.shape[1]):
                out[row, a] = np.nan
