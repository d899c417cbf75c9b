"""Compile the loops that learn from perturbed ratings: scoring rows, mixture weights, gradient steps."""

from __future__ import annotations

import numpy as np

from discreet.core import Array
from discreet.core.kernels import compiled, dot, inner

_LARGE = 1e100


@inner
def _solve_row(gram: Array, right: Array, prior: float, bias: int, known: int, precision: Array) -> None:
    """Turn the sums of a row into its posterior: `right` becomes the mean, `gram` the covariance."""
    size = right.size
    for a in range(size):
        right[a] -= gram[a, known]
    for a in range(size):
        gram[a, a] += precision[a]
        gram[a, known] = gram[known, a] = 0.0
    gram[known, known] = 1.0
    right[known] = 0.0
    right[bias] += precision[bias] * prior
    inverse = np.linalg.inv(gram)
    mean = inverse @ right
    for a in range(size):
        right[a] = mean[a]
        for b in range(size):
            gram[a, b] = inverse[a, b]
        gram[a, known] = gram[known, a] = 0.0
    right[known] = 1.0


@compiled
def channel_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    codes: Array,
    others: Array,
    coordinates: Array,
    precision: Array,
    priors: Array,
    grid: Array,
    information: Array,
    score: Array,
    out: Array,
) -> None:
    """Move each row one step of Fisher scoring to its posterior, given the other side's second moments.

    `out` and, flattened, `others` hold E[x x'] of every row; the coordinate `known` of a vector is 1, so that
    column is its mean. `coordinates` is (bias, known, the other side's known), `grid` (offset, first, step).
    """
    bias, known, other_known = coordinates[0], coordinates[1], coordinates[2]
    offset, first, step = grid[0], grid[1], grid[2]
    size = precision.size
    gram, right = np.empty((size, size)), np.empty(size)
    sums = gram.reshape(size * size)
    for row in range(start, stop):
        sums[:] = 0.0
        right[:] = 0.0
        own = out[row, :, known].copy()
        for entry in range(indptr[row], indptr[row + 1]):
            other = others[columns[entry]]
            expected = offset
            for a in range(size):
                expected += own[a] * other[a * size + other_known]
            position = (expected - first) / step
            index = int(min(max(position + 0.5, 0.0), information.size - 1.0))
            expected = min(max(expected, first), first + step * (information.size - 1.0))
            weight = information[index]
            target = weight * (expected - offset) + score[index, codes[entry]]
            for a in range(size):
                right[a] += target * other[a * size + other_known]
            for a in range(size * size):
                sums[a] += weight * other[a]
        _solve_row(gram, right, priors[row], bias, known, precision)
        for a in range(size):
            for b in range(size):
                out[row, a, b] = right[a] * right[b] + gram[a, b]


@compiled
def mixture_rows(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    residuals: Array,
    log_heights: Array,
    precisions: Array,
    out: tuple[Array, Array],
) -> None:
    """Write each entry's component probabilities, and for each row: log-likelihood, counts and squares.

    `log_heights` is each component's log-density at 0, its share included.
    """
    likely, sums = out
    size = precisions.size
    widest = np.argmin(precisions)
    terms, heights = np.ones(size), log_heights - log_heights[widest]
    narrower = 0.5 * (precisions - precisions[widest])
    for row in range(start, stop):
        sums[row, :] = 0.0
        product = 1.0
        for entry in range(indptr[row], indptr[row + 1]):
            square = residuals[entry] * residuals[entry]
            total = 1.0
            # Relative to the widest component no term overflows, and its own is 1.
            for k in range(size):
                if k != widest:
                    terms[k] = np.exp(heights[k] - narrower[k] * square)
                    total += terms[k]
            scale = 1.0 / total
            for k in range(size):
                share = terms[k] * scale
                likely[entry, k] = share
                sums[row, 1 + k] += share
                sums[row, 1 + size + k] += share * square
            sums[row, 0] += log_heights[widest] - 0.5 * precisions[widest] * square
            # One logarithm for many entries: totals are at least 1, so only overflow must be avoided.
            product *= total
            if product > _LARGE:
                sums[row, 0] += np.log(product)
                product = 1.0
        sums[row, 0] += np.log(product)


@compiled
def gradient_epoch(
    order: Array,
    rows: Array,
    columns: Array,
    values: Array,
    rate: float,
    regularization: float,
    left: Array,
    right: Array,
) -> None:
    """Take one stochastic gradient step for every entry, in this order."""
    for position in range(order.size):
        entry = order[position]
        user, item = left[rows[entry]], right[columns[entry]]
        error = values[entry] - dot(user, item)
        for a in range(user.size):
            old = user[a]
            user[a] += rate * (error * item[a] - regularization * old)
            item[a] += rate * (error * old - regularization * item[a])
