"""Compile dense algebra for one user at a time: products of feature rows, and the inverse of their matrix.

A user's ratings are rows of features. Rows are filled up with zeros to a multiple of `WIDE`, so all work is
done on tiles of four rows by `WIDE` columns, which stay in registers (`add_tile`). Of a symmetric matrix only
tiles that reach the diagonal or lie above it are computed.

All loops run in an order that depends on the sizes only, so a user's numbers depend on that user alone.
"""

from __future__ import annotations

import numpy as np

from discreet.core import Array
from discreet.core.kernels import HIGH, WIDE, add_tile, add_wide_tile, dot, in_lines, inner

# Rows whose products are added at a time: with some forty features the nearest cache has room for them.
_ROWS = 64


def width_of(size: int) -> int:
    """Return how many columns rows of `size` features have."""
    return -(-size // WIDE) * WIDE


@inner
def row_products(rows: Array, count: int, size: int, out: Array) -> None:
    """Set the upper triangle of `out` to the sum over rows of the products of their features.

    Below the diagonal some entries are set, too.
    """
    for a in range(out.shape[0]):
        for b in range(rows.shape[1]):
            out[a, b] = 0.0
    add_row_products(rows, count, size, out)


@inner
def add_row_products(rows: Array, count: int, size: int, out: Array) -> None:
    """Add to the upper triangle of `out` what `row_products` sets it to: its first `size` lines."""
    wide = rows.shape[1]
    for first in range(0, count, _ROWS):
        some = min(_ROWS, count - first)
        for a in range(0, size, HIGH):
            left, begin = (first * wide + a, wide, 1), a // WIDE * WIDE
            for b in range(begin, wide - WIDE, 2 * WIDE):
                add_wide_tile(rows, left, rows, (first * wide + b, wide), some, out, (a * wide + b, wide))
            if (wide - begin) % (2 * WIDE):
                b = wide - WIDE
                add_tile(rows, left, rows, (first * wide + b, wide), some, out, (a * wide + b, wide))


@inner
def multiply(rows: Array, count: int, size: int, matrix: Array, out: Array) -> None:
    """Write rows times a matrix; `out` has room for a multiple of `HIGH` rows."""
    wide = rows.shape[1]
    for first in range(0, count, HIGH):
        for row in range(first, first + HIGH):
            for b in range(wide):
                out[row, b] = 0.0
        left = (first * wide, 1, wide)
        for b in range(0, wide - WIDE, 2 * WIDE):
            add_wide_tile(rows, left, matrix, (b, wide), size, out, (first * wide + b, wide))
        if wide % (2 * WIDE):
            b = wide - WIDE
            add_tile(rows, left, matrix, (b, wide), size, out, (first * wide + b, wide))


@inner
def _invert_four(four: Array) -> bool:
    """Replace a positive definite matrix of four rows by its inverse; return False if it is not definite."""
    for p in range(HIGH):
        pivot = four[p, p]
        if not pivot > 0:
            return False
        four[p, p] = 1.0
        for j in range(HIGH):
            four[p, j] /= pivot
        for i in range(HIGH):
            if i != p:
                factor = four[i, p]
                four[i, p] = 0.0
                for j in range(HIGH):
                    four[i, j] -= factor * four[p, j]
    return True


@inner
def solve(matrix: Array, size: int, four: Array, swept: Array, answer: Array) -> bool:
    """Solve a system given by the upper triangle of a positive definite matrix, and column `size` next to it.

    Gaussian elimination of four lines at a time, each of them by all lines above at once. It overwrites the
    matrix. `size` is a multiple of `HIGH`; `swept`, like the matrix, and `four` are room to work in. Return
    False if the matrix is not positive definite.
    """
    wide = matrix.shape[1]
    for first in range(0, size, HIGH):
        # The first tile may begin four columns early; what it has there is never read.
        left, begin = (first, wide, 1), first // WIDE * WIDE
        for b in range(begin, wide - WIDE, 2 * WIDE):
            add_wide_tile(matrix, left, swept, (b, wide), first, matrix, (first * wide + b, wide))
        if (wide - begin) % (2 * WIDE):
            b = wide - WIDE
            add_tile(matrix, left, swept, (b, wide), first, matrix, (first * wide + b, wide))
        for a in range(HIGH):
            for b in range(HIGH):
                four[a, b] = matrix[first + min(a, b), first + max(a, b)]
        if not _invert_four(four):
            return False
        # Loops over slices from their start are compiled to vector instructions.
        r0, r1 = matrix[first, begin:], matrix[first + 1, begin:]
        r2, r3 = matrix[first + 2, begin:], matrix[first + 3, begin:]
        for a in range(HIGH):
            f0, f1, f2, f3, line = four[a, 0], four[a, 1], four[a, 2], four[a, 3], swept[first + a, begin:]
            for j in range(line.size):
                line[j] = -(f0 * r0[j] + f1 * r1[j] + f2 * r2[j] + f3 * r3[j])
    for first in range(size - HIGH, -1, -HIGH):
        for a in range(first, first + HIGH):
            answer[a] = dot(swept[a, first + HIGH : size], answer[first + HIGH :]) - swept[a, size]
    return True


@inner
def _take_rows(matrix: Array, first: int, size: int, four: Array, rows: Array) -> None:
    """Copy four rows of a symmetric matrix, and what they have on the diagonal."""
    for a in range(HIGH):
        for j in range(first):
            rows[a, j] = matrix[j, first + a]
        for j in range(first, size):
            rows[a, j] = matrix[first + a, j]
    for a in range(HIGH):
        for b in range(HIGH):
            four[a, b] = matrix[first + min(a, b), first + max(a, b)]
            rows[a, first + b] = four[a, b]


@inner
def _sweep(matrix: Array, first: int, size: int, four: Array, rows: Array, swept: Array) -> None:
    """Sweep out four rows, which `rows` has; `four` is the inverse where they meet the diagonal."""
    wide = matrix.shape[1]
    for a in range(HIGH):
        f0, f1, f2, f3 = four[a, 0], four[a, 1], four[a, 2], four[a, 3]
        for j in range(size):
            swept[a, j] = -(f0 * rows[0, j] + f1 * rows[1, j] + f2 * rows[2, j] + f3 * rows[3, j])
    for i in range(0, size, HIGH):
        if i != first:
            for b in range(i // WIDE * WIDE, wide, WIDE):
                add_tile(rows, (i, wide, 1), swept, (b, wide), HIGH, matrix, (i * wide + b, wide))
    for a in range(HIGH):
        for j in range(first):
            matrix[j, first + a] = -swept[a, j]
        for j in range(first + HIGH, size):
            matrix[first + a, j] = -swept[a, j]
        for b in range(HIGH):
            matrix[first + a, first + b] = -four[a, b]


def room_to_invert(wide: int) -> tuple[Array, Array, Array]:
    """Return the arrays that `invert` works in, for a matrix with `wide` columns."""
    return np.empty((HIGH, HIGH)), in_lines(HIGH, wide), in_lines(HIGH, wide)


@inner
def invert(matrix: Array, size: int, four: Array, rows: Array, swept: Array) -> bool:
    """Replace a positive definite matrix, given by its upper triangle, by its inverse.

    The symmetric sweep, four rows at a time: it leaves minus the inverse. `size` is a multiple of `HIGH`;
    columns from there on become zero. All else is room to work in. Return False if the matrix is not
    positive definite.
    """
    for first in range(0, size, HIGH):
        _take_rows(matrix, first, size, four, rows)
        if not _invert_four(four):
            return False
        _sweep(matrix, first, size, four, rows, swept)
    for i in range(size):
        for j in range(i, size):
            matrix[i, j] = -matrix[i, j]
            matrix[j, i] = matrix[i, j]
        for j in range(size, matrix.shape[1]):
            matrix[i, j] = 0.0
    return True
