"""Compile dense algebra for one user at a time: products of feature lines, and the inverse of their matrix.

A user's ratings are laid out in blocks. A block is one flat array: line after line, each with `BLOCK` places,
one for a rating. The fixed distance between lines matters: the compiler then knows that lines do not overlap,
and spends no time on finding that out before each short loop.

All loops run in an order that depends on the sizes only, so a user's numbers depend on that user alone.
"""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Array
from discreet.core.kernels import inner

#: Ratings in a block: with some forty lines the processor's nearest cache has room for it.
BLOCK = 64


@inner
def width_of(block: int, count: int) -> int:
    """Return how much of a block is used: all, or in the last one eights that hold the rest."""
    return min(BLOCK, (count - block * BLOCK + 7) // 8 * 8)


@inner
def _add_tile(one: Array, width: int, a: int, b: int, out: Array) -> None:
    """Add the inner products of four lines of a block, from `a` on, with four, from `b` on."""
    left, right = one[a * BLOCK : (a + 4) * BLOCK], one[b * BLOCK : (b + 4) * BLOCK]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for j in range(width):
        x0, x1, x2, x3 = left[j], left[j + BLOCK], left[j + 2 * BLOCK], left[j + 3 * BLOCK]
        y0, y1, y2, y3 = right[j], right[j + BLOCK], right[j + 2 * BLOCK], right[j + 3 * BLOCK]
        s00 += x0 * y0
        s01 += x0 * y1
        s02 += x0 * y2
        s03 += x0 * y3
        s10 += x1 * y0
        s11 += x1 * y1
        s12 += x1 * y2
        s13 += x1 * y3
        s20 += x2 * y0
        s21 += x2 * y1
        s22 += x2 * y2
        s23 += x2 * y3
        s30 += x3 * y0
        s31 += x3 * y1
        s32 += x3 * y2
        s33 += x3 * y3
    _add_four(out[a, b : b + 4], s00, s01, s02, s03)
    _add_four(out[a + 1, b : b + 4], s10, s11, s12, s13)
    _add_four(out[a + 2, b : b + 4], s20, s21, s22, s23)
    _add_four(out[a + 3, b : b + 4], s30, s31, s32, s33)


@inner
def _add_four(out: Array, s0: float, s1: float, s2: float, s3: float) -> None:
    out[0] += s0
    out[1] += s1
    out[2] += s2
    out[3] += s3


@inner
def line_products(lines: Array, count: int, out: Array) -> None:
    """Set the lower triangle of `out` to the inner products of lines, over `count` ratings.

    The number of lines is a multiple of four. Above the diagonal some entries are set, too.
    """
    out[:] = 0.0
    for block in range((count + BLOCK - 1) // BLOCK):
        for a in range(0, out.shape[0], 4):
            for b in range(0, a + 4, 4):
                _add_tile(lines[block], width_of(block, count), a, b, out)


@inner
def _invert_four(four: Array) -> bool:
    """Replace a positive definite matrix of four rows by its inverse; return False if it is not definite."""
    for p in range(4):
        pivot = four[p, p]
        if not pivot > 0:
            return False
        four[p, p] = 1.0
        for j in range(4):
            four[p, j] /= pivot
        for i in range(4):
            if i != p:
                factor = four[i, p]
                four[i, p] = 0.0
                for j in range(4):
                    four[i, j] -= factor * four[p, j]
    return True


@inner
def _combine(weights: Array, given: Array, width: int, out: Array) -> None:
    """Write four lines, each a combination of four given ones."""
    a0, a1, a2, a3 = weights[0, 0], weights[0, 1], weights[0, 2], weights[0, 3]
    b0, b1, b2, b3 = weights[1, 0], weights[1, 1], weights[1, 2], weights[1, 3]
    c0, c1, c2, c3 = weights[2, 0], weights[2, 1], weights[2, 2], weights[2, 3]
    d0, d1, d2, d3 = weights[3, 0], weights[3, 1], weights[3, 2], weights[3, 3]
    for j in range(width):
        x0, x1, x2, x3 = given[j], given[j + BLOCK], given[j + 2 * BLOCK], given[j + 3 * BLOCK]
        out[j] = a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
        out[j + BLOCK] = b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
        out[j + 2 * BLOCK] = c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
        out[j + 3 * BLOCK] = d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3


@inner
def _take_off(weights: Array, four: Array, width: int, out: Array) -> None:
    """Subtract combinations of four lines from four others."""
    a0, a1, a2, a3 = weights[0, 0], weights[0, 1], weights[0, 2], weights[0, 3]
    b0, b1, b2, b3 = weights[1, 0], weights[1, 1], weights[1, 2], weights[1, 3]
    c0, c1, c2, c3 = weights[2, 0], weights[2, 1], weights[2, 2], weights[2, 3]
    d0, d1, d2, d3 = weights[3, 0], weights[3, 1], weights[3, 2], weights[3, 3]
    for j in range(width):
        x0, x1, x2, x3 = four[j], four[j + BLOCK], four[j + 2 * BLOCK], four[j + 3 * BLOCK]
        out[j] -= a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
        out[j + BLOCK] -= b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
        out[j + 2 * BLOCK] -= c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
        out[j + 3 * BLOCK] -= d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3


@inner
def _lay_out(matrix: Array, parts: Array) -> None:
    """Write a symmetric matrix, given by its lower triangle, as lines in parts of `BLOCK` columns."""
    size = matrix.shape[0]
    for i in range(size):
        for j in range(i + 1):
            parts[j // BLOCK, i * BLOCK + j % BLOCK] = matrix[i, j]
            parts[i // BLOCK, j * BLOCK + i % BLOCK] = matrix[i, j]


@inner
def _take_weights(part: Array, i: int, first: int, weights: Array) -> None:
    """Move what four lines have in the four columns from `first` on, and leave zeros there."""
    for a in range(4):
        line = part[(i + a) * BLOCK + first : (i + a) * BLOCK + first + 4]
        for b in range(4):
            weights[a, b] = line[b]
            line[b] = 0.0


@inner
def _eliminate(parts: Array, size: int, first: int, four: Array, weights: Array, rows: Array) -> None:
    """Take the four lines from `first` on off all others; `four` is the inverse where they meet the diagonal.

    `rows` has room for these four, in parts as the matrix.
    """
    lines, place, part = slice(first * BLOCK, (first + 4) * BLOCK), first % BLOCK, first // BLOCK
    for one in range(parts.shape[0]):
        _combine(four, parts[one, lines], width_of(one, size), rows[one])
    for a in range(4):
        for b in range(4):
            rows[part, a * BLOCK + place + b] = four[a, b]
    for i in range(0, size, 4):
        if i == first:
            continue
        _take_weights(parts[part], i, place, weights)
        for one in range(parts.shape[0]):
            _take_off(weights, rows[one], width_of(one, size), parts[one, i * BLOCK : (i + 4) * BLOCK])
    # An assignment to a slice would compile the text of an error, too.
    for one in range(parts.shape[0]):
        for j in range(4 * BLOCK):
            parts[one, first * BLOCK + j] = rows[one, j]


def room_to_invert(size: int) -> tuple[Array, Array, Array, Array]:
    """Return the arrays that `invert` works in, for a matrix with `size` rows."""
    parts = (size + BLOCK - 1) // BLOCK
    return np.empty((4, 4)), np.empty((4, 4)), np.zeros((parts, 4 * BLOCK)), np.zeros((parts, size * BLOCK))


@inner
def invert(matrix: Array, four: Array, weights: Array, rows: Array, parts: Array) -> bool:
    """Replace a positive definite matrix, given by its lower triangle, by its inverse.

    Gauss-Jordan elimination, four rows at a time. All else is room to work in. Return False if the matrix is
    not positive definite.
    """
    size = matrix.shape[0]
    _lay_out(matrix, parts)
    for first in range(0, size, 4):
        for a in range(4):
            for b in range(4):
                four[a, b] = parts[first // BLOCK, (first + a) * BLOCK + first % BLOCK + b]
        if not _invert_four(four):
            return False
        _eliminate(parts, size, first, four, weights, rows)
    for i in range(size):
        for j in range(size):
            matrix[i, j] = parts[j // BLOCK, i * BLOCK + j % BLOCK]
    return True


@inner
def multiply(matrix: Array, one: Array, width: int, out: Array) -> None:
    """Write a matrix times the lines of a block, as lines; the number of lines is a multiple of four."""
    size = matrix.shape[0]
    for a in range(0, size, 4):
        va, vb, vc, vd = matrix[a], matrix[a + 1], matrix[a + 2], matrix[a + 3]
        four = out[a * BLOCK : (a + 4) * BLOCK]
        four[:] = 0.0
        for b in range(0, size, 4):
            given = one[b * BLOCK : (b + 4) * BLOCK]
            a0, a1, a2, a3 = va[b], va[b + 1], va[b + 2], va[b + 3]
            b0, b1, b2, b3 = vb[b], vb[b + 1], vb[b + 2], vb[b + 3]
            c0, c1, c2, c3 = vc[b], vc[b + 1], vc[b + 2], vc[b + 3]
            d0, d1, d2, d3 = vd[b], vd[b + 1], vd[b + 2], vd[b + 3]
            for j in range(width):
                x0, x1, x2, x3 = given[j], given[j + BLOCK], given[j + 2 * BLOCK], given[j + 3 * BLOCK]
                four[j] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                four[j + BLOCK] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
                four[j + 2 * BLOCK] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
                four[j + 3 * BLOCK] += d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3
