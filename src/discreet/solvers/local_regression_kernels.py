"""Compile the pair sums of single items, and the small systems that their regressions solve."""

from __future__ import annotations

import numpy as np

from discreet.core import Array
from discreet.core.kernels import compiled, inner


@compiled
def pair_sums(
    start: int,
    stop: int,
    owners: Array,
    places: Array,
    starts: Array,
    indptr: Array,
    items: Array,
    steps: Array,
    decay: Array,
    counts: Array,
    numbers: Array,
    out: tuple[Array, Array, Array, Array],
) -> None:
    """Fill, for items `start` to `stop`, the strongest pair sums, and the nearest items with their pull.

    `numbers` are the weight at any distance and that of the direction back. `out` has the strongest pairs of
    each item (places and sums), and the items that speak most for it (places and directed sums).
    """
    strong, sums, near, pulls = out
    size = counts.size
    together, before = np.zeros(size), np.zeros(size)
    touched, known = np.empty(size, np.int64), np.zeros(size, np.bool_)
    apart, back = numbers[0], numbers[1]
    for item in range(start, stop):
        found = 0
        for entry in range(starts[item], starts[item + 1]):
            user, own = owners[entry], steps[places[entry]]
            for cell in range(indptr[user], indptr[user + 1]):
                other = items[cell]
                if other == item:
                    continue
                if not known[other]:
                    known[other] = True
                    touched[found] = other
                    found += 1
                distance = own - steps[cell]
                weight = apart + (1.0 - apart) * decay[min(abs(distance), decay.size - 1)]
                together[other] += weight
                if distance > 0:
                    before[other] += weight
                elif distance < 0:
                    before[other] += back * weight
                else:
                    before[other] += 0.5 * (1.0 + back) * weight
        _keep(touched[:found], together, strong[item], sums[item])
        scaled = np.empty(found)
        for place in range(found):
            other = touched[place]
            scaled[place] = before[other] / np.sqrt(counts[other])
        _keep_by(touched[:found], before, scaled, near[item], pulls[item])
        for place in range(found):
            other = touched[place]
            together[other] = 0.0
            before[other] = 0.0
            known[other] = False


@compiled
def _keep(touched: Array, values: Array, names: Array, kept: Array) -> None:
    """Keep the largest values, as many as there is room for; the rest of the room has the name -1."""
    _keep_by(touched, values, values[touched], names, kept)


@inner
def _keep_by(touched: Array, values: Array, order: Array, names: Array, kept: Array) -> None:
    """Keep the values that are first by `order`."""
    room = names.size
    least = -np.inf
    if order.size > room:
        least = np.partition(order, order.size - room)[order.size - room]
    count = 0
    # Those above the least one first: of equal ones as many as there is room for.
    for level in range(2):
        for place in range(order.size):
            inside = order[place] > least if level == 0 else order[place] == least
            if inside and count < room:
                names[count] = touched[place]
                kept[count] = values[touched[place]]
                count += 1
    names[count:] = -1


@compiled
def small_systems(
    start: int,
    stop: int,
    first: int,
    near: Array,
    strong: Array,
    sums: Array,
    counts: Array,
    ridge: float,
    out: Array,
) -> None:
    """Fill the pair sums of each item's nearest items; their diagonal is the count and the ridge.

    Room that no item needs has ones on the diagonal. `first` is the item of the first system.
    """
    place = np.full(counts.size, -1, np.int64)
    for row in range(start, stop):
        names, matrix = near[first + row], out[row]
        matrix[:] = 0.0
        size = 0
        while size < names.size and names[size] >= 0:
            place[names[size]] = size
            size += 1
        for line in range(names.size):
            if line >= size:
                matrix[line, line] = 1.0
                continue
            own = names[line]
            for entry in range(strong.shape[1]):
                other = strong[own, entry]
                if other < 0:
                    break
                if place[other] >= 0:
                    matrix[line, place[other]] = sums[own, entry]
            matrix[line, line] = counts[own] + ridge
        # A pair that only one of its items kept counts for both.
        for line in range(size):
            for other in range(line):
                both = max(matrix[line, other], matrix[other, line])
                matrix[line, other] = both
                matrix[other, line] = both
        for line in range(size):
            place[names[line]] = -1
