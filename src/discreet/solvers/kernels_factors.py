"""Compile what a person tells about item vectors: leave-one-out residuals times that person's own factors."""

from __future__ import annotations

import numpy as np

from discreet.solvers.kernels import Array, compiled

# Contributions are cut to this grid, toward zero, so that their sums are exact in double precision.
_STEPS = 2.0**24
# A rating that decides its own prediction almost alone says little about anything else.
_MOST_LEVERAGE = 0.9


@compiled
def _cut(value: float) -> float:
    return float(np.trunc(value * _STEPS) / _STEPS)


@compiled
def _posterior(
    columns: Array, values: Array, offsets: Array, features: Array, ridge: Array
) -> tuple[Array, Array]:
    """Return a person's ridge solution and the inverse of its normal matrix."""
    size = features.shape[1]
    normal = np.zeros((size, size))
    right = np.zeros(size)
    for j in range(columns.size):
        feature = features[columns[j]]
        value = values[j] - offsets[columns[j]]
        for a in range(size):
            right[a] += feature[a] * value
            for b in range(a + 1):
                normal[a, b] += feature[a] * feature[b]
    for a in range(size):
        for b in range(a):
            normal[b, a] = normal[a, b]
        normal[a, a] += ridge[a]
    inverse = np.linalg.inv(normal)
    return inverse @ right, inverse


@compiled
def _leave_one_out(
    value: float, feature: Array, solution: Array, inverse: Array, scale: Array, longest: float, own: Array
) -> float:
    """Return the residual of one rating as if it had not been seen; set `own` to the factors without it."""
    size = feature.size
    pull = inverse @ feature
    fitted = 0.0
    leverage = 0.0
    for a in range(size):
        fitted += feature[a] * solution[a]
        leverage += pull[a] * feature[a]
    residual = (value - fitted) / (1 - min(leverage, _MOST_LEVERAGE))
    length = 0.0
    for a in range(1, size):
        own[a] = scale[a] * (solution[a] - pull[a] * residual)
        length += own[a] * own[a]
    # The constant counts 1; the rest is shortened so that the whole is at most `longest`.
    room = longest * longest - 1
    if length > room:
        shorter = np.sqrt(room / length)
        for a in range(1, size):
            own[a] *= shorter
    own[0] = 1
    return residual


@compiled
def add_person(
    columns: Array,
    values: Array,
    offsets: Array,
    features: Array,
    ridge: Array,
    scale: Array,
    longest: float,
    pull: Array,
    count_part: float,
    sums: Array,
    counts: Array,
    moment: Array,
) -> None:
    """Add what one person tells: a vector (sums and counts) and a matrix (moment), each at most 1 long."""
    size, ratings = features.shape[1], columns.size
    solution, inverse = _posterior(columns, values, offsets, features, ridge)
    own = np.empty((ratings, size))
    residuals = np.empty(ratings)
    squares = 0.0
    total = 0.0
    for j in range(ratings):
        column = columns[j]
        residuals[j] = _leave_one_out(
            values[j] - offsets[column], features[column], solution, inverse, scale, longest, own[j]
        )
        length = 0.0
        for a in range(size):
            length += own[j, a] * own[j, a]
        total += length / ratings
        squares += pull[column] ** 2 * (residuals[j] ** 2 * length + count_part**2)
    # The factor keeps rounding errors of the lengths from ever passing 1.
    weight = (1 - 1e-6) / np.sqrt(squares)
    share = (1 - 1e-6) / (np.sqrt(total) * longest * ratings)
    person = np.zeros((size, size))
    for j in range(ratings):
        item_weight = weight * pull[columns[j]]
        counts[columns[j]] += _cut(item_weight * count_part)
        for a in range(size):
            sums[columns[j], a] += _cut(item_weight * residuals[j] * own[j, a])
            for b in range(a + 1):
                person[a, b] += own[j, a] * own[j, b]
    for a in range(size):
        for b in range(a + 1):
            entry = _cut(share * person[a, b])
            moment[a, b] += entry
            if b < a:
                moment[b, a] += entry


@compiled
def add_people(
    start: int,
    stop: int,
    indptr: Array,
    columns: Array,
    values: Array,
    offsets: Array,
    features: Array,
    ridge: Array,
    scale: Array,
    longest: float,
    pull: Array,
    count_part: float,
    sums: Array,
    counts: Array,
    moment: Array,
) -> None:
    """Add what the people of a range of rows tell; a person without ratings tells nothing."""
    for row in range(start, stop):
        cells = slice(indptr[row], indptr[row + 1])
        if cells.start < cells.stop:
            add_person(
                columns[cells],
                values[cells],
                offsets,
                features,
                ridge,
                scale,
                longest,
                pull,
                count_part,
                sums,
                counts,
                moment,
            )
