"""Compile the loops that learn from perturbed ratings: scoring rows, mixture weights, gradient steps."""

from __future__ import annotations

import numpy as np

from discreet.solvers.kernels import Array, compiled, dot


@compiled
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
    places: Array,
    precision: Array,
    priors: Array,
    grid: Array,
    information: Array,
    score: Array,
    out: Array,
) -> None:
    """Move each row one step of Fisher scoring to its posterior, given the other side's second moments.

    `out` and `others` hold E[x x'] of every row; the coordinate `known` of a vector is 1, so that column
    is its mean. `places` is (bias, known, the other side's known); `grid` is (offset, first, step).
    """
    bias, known, other_known = places[0], places[1], places[2]
    offset, first, step = grid[0], grid[1], grid[2]
    size = precision.size
    gram, right = np.empty((size, size)), np.empty(size)
    for row in range(start, stop):
        gram[:] = 0.0
        right[:] = 0.0
        own = out[row, :, known].copy()
        for cell in range(indptr[row], indptr[row + 1]):
            other = others[columns[cell]]
            expected = offset
            for a in range(size):
                expected += own[a] * other[a, other_known]
            place = (expected - first) / step
            index = int(min(max(place + 0.5, 0.0), information.size - 1.0))
            expected = min(max(expected, first), first + step * (information.size - 1.0))
            weight = information[index]
            pull = weight * (expected - offset) + score[index, codes[cell]]
            for a in range(size):
                right[a] += pull * other[a, other_known]
                for b in range(a + 1):
                    gram[a, b] += weight * other[a, b]
        for a in range(size):
            for b in range(a):
                gram[b, a] = gram[a, b]
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
    """Write the precision of every cell, and for each row: log-likelihood, shares and squares by component.

    `log_heights` is each component's log-density at 0, its share included.
    """
    weights, sums = out
    size = precisions.size
    terms = np.empty(size)
    for row in range(start, stop):
        sums[row, :] = 0.0
        for cell in range(indptr[row], indptr[row + 1]):
            square = residuals[cell] * residuals[cell]
            largest = -np.inf
            for k in range(size):
                terms[k] = log_heights[k] - 0.5 * precisions[k] * square
                largest = max(largest, terms[k])
            total = 0.0
            for k in range(size):
                terms[k] = np.exp(terms[k] - largest)
                total += terms[k]
            weight = 0.0
            for k in range(size):
                share = terms[k] / total
                weight += share * precisions[k]
                sums[row, 1 + k] += share
                sums[row, 1 + size + k] += share * square
            weights[cell] = weight
            sums[row, 0] += largest + np.log(total)


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
    """Take one stochastic gradient step for every cell, in this order."""
    for place in range(order.size):
        cell = order[place]
        user, item = left[rows[cell]], right[columns[cell]]
        error = values[cell] - dot(user, item)
        for a in range(user.size):
            old = user[a]
            user[a] += rate * (error * item[a] - regularization * old)
            item[a] += rate * (error * old - regularization * item[a])
