"""Compile the loops that rank items for many users; `batch_lists` runs them in blocks.

Rough scores only say which items may reach a list: what is listed, and in which order, is decided by exact
scores of those few. Equal scores keep the order of the catalog.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from discreet.core.arrays import Array
from discreet.core.kernels import compiled, dot, inner
from discreet.models.scorers.log_chance import chance_table
from discreet.models.scorers.log_chance_kernels import log_of_chance
from discreet.models.scorers.ranking import LOGISTIC, Liking, LinearScores

# Scores are compared in groups of so many with the last of a list.
GROUP = 64
# A first bound is the last of the largest scores of so many lanes.
LANES = 128
_NONE = LinearScores(np.zeros((1, 0)), np.zeros((1, 0)), np.zeros(1))


class ExactScores(NamedTuple):
    """The scores of `LinearScores`; the bias of closed items is minus infinity.

    `names` states which item of the catalog each row is, and `shifts` what is added to all scores of a user.
    """

    people: Array
    items: Array
    bias: Array
    names: Array
    shifts: Array


class Chance(NamedTuple):
    """`Liking` for compiled loops, with a weight of 0 if it counts nothing."""

    weight: float
    people: Array
    items: Array
    bias: Array
    usual: Array
    deviation: float
    normal: bool
    table: Array
    slopes: Array

    @classmethod
    def of(cls, liking: Liking | None, people: int) -> Self:
        """Return the same numbers; without liking, none."""
        weight, scores, usual, deviation, link = liking or Liking(0.0, _NONE, np.zeros(people), 1.0, "normal")
        vectors = (np.ascontiguousarray(scores.people), np.ascontiguousarray(scores.items), scores.bias)
        return cls(float(weight), *vectors, usual, float(deviation), link == "normal", *chance_table())


@inner
def reaches(line: Array, bound: float) -> bool:
    """Return whether one of the first scores lies above a bound; a loop of fixed length is vectorized."""
    if line.size < GROUP:
        return True
    above = np.int32(0)
    for j in range(GROUP):
        above += np.int32(line[j] > bound)
    return above > 0  # type: ignore[return-value]


@inner
def insert(value: Any, item: int, values: Array, places: Array) -> None:
    """Insert an item that is better than the last of a list; of equal ones the first comes first."""
    place = values.size - 1
    while place > 0 and (
        values[place - 1] < value or (values[place - 1] == value and places[place - 1] > item)
    ):
        values[place], places[place] = values[place - 1], places[place - 1]
        place -= 1
    values[place], places[place] = value, item


@inner
def liked(
    own: Array,
    vector: Array,
    bias: float,
    usual: float,
    weight: float,
    deviation: float,
    normal: bool,
    table: Array,
    slopes: Array,
) -> float:
    """Return the weighted logarithm of the chance that a user likes an item, which is at most zero.

    Loops hand over arrays one by one: a tuple of them costs more to hand over than all that is done here.
    """
    score: Any = np.float32(dot(own, vector) + bias)
    above = (score - usual) / deviation
    if normal:
        return weight * log_of_chance(above, table, slopes)
    turned = -LOGISTIC * above
    return -weight * (max(turned, 0.0) + np.log1p(np.exp(-abs(turned))))  # type: ignore[no-any-return]


@inner
def enter(value: Any, item: int, values: Array, places: Array) -> None:
    """Insert an item into a list if its score deserves it."""
    if value > values[-1] or (value == values[-1] and item < places[-1]):
        insert(value, item, values, places)


@inner
def last_of(lanes: Array, top: Array, at: Array) -> float:
    """Return the last of the largest lanes: as many as `top` has entries."""
    top[:] = -np.inf
    for j in range(LANES):
        if lanes[j] > top[-1]:
            insert(lanes[j], j, top, at)
    return top[-1]  # type: ignore[no-any-return]


@inner
def floor_of(line: Array, lanes: Array, top: Array, at: Array) -> float:
    """Return a number that as many scores reach as `top` has entries: one in each of so many lanes.

    The largest score of every lane is found without a branch, so the loop is vectorized.
    """
    lanes[:] = -np.inf
    for start in range(0, line.size - lanes.size + 1, lanes.size):
        part = line[start : start + LANES]
        for j in range(LANES):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    return last_of(lanes, top, at)


@compiled
def rank_tile(
    scores: Array,
    people: Array,
    offset: int,
    indptr: Array,
    seen: Array,
    margins: Array,
    exact: ExactScores,
    chance: Chance,
    values: Array,
    places: Array,
) -> None:
    """Insert the items from `offset` on into the lists of these users, given rough scores."""
    width, lanes = scores.shape[1], np.empty(LANES, np.float32)
    top, at = np.empty_like(values[0]), np.zeros_like(places[0])
    items, bias, names = exact.items, exact.bias, exact.names
    weight, chance_items, chance_bias = chance.weight, chance.items, chance.bias
    given: Any = (weight, chance.deviation, chance.normal, chance.table, chance.slopes)
    for row in range(scores.shape[0]):
        person, line = people[row], scores[row]
        for entry in range(indptr[person], indptr[person + 1]):
            if offset <= seen[entry] < offset + width:
                line[seen[entry] - offset] = -np.inf
        best, listed, margin = values[person], places[person], margins[person]
        own, usual, shift = exact.people[person], chance.usual[person], exact.shifts[person]
        liking = chance.people[person if weight != 0 else 0]
        moved = np.float32(shift) + margin
        bound = best[-1] - moved
        passes = 1
        if offset == 0:
            least = floor_of(line, lanes, top, at)
            if weight == 0:
                bound = max(bound, least - 2 * margin)
            elif best[-1] == -np.inf and least > -np.inf:
                # A list that begins with the largest scores leaves little to try after them.
                bound, passes = least, 2
        for again in range(passes):
            if again:
                bound = best[-1] - moved
            rises = again + 1 == passes
            for start in range(0, width, GROUP):
                if not reaches(line[start:], bound):
                    continue
                for j in range(start, min(start + GROUP, width)):
                    if line[j] > bound:
                        line[j] = -np.inf
                        item = names[offset + j]
                        value = np.float32(dot(own, items[offset + j]) + bias[offset + j] + shift)
                        if weight != 0 and value >= best[-1]:
                            cell = (liking, chance_items[item], chance_bias[item], usual)
                            value = np.float32(value + liked(*cell, *given))
                        enter(value, item, best, listed)
                        if rises:
                            bound = max(bound, best[-1] - moved)


@compiled
def rank_common(
    start: int,
    stop: int,
    order: Array,
    base: Array,
    indptr: Array,
    seen: Array,
    chance: Chance,
    values: Array,
    places: Array,
) -> None:
    """Fill the lists of a range of users from items in falling `order` of `base`."""
    last_seen_by = np.full(base.size, -1, np.int64)
    weight, chance_items, chance_bias = chance.weight, chance.items, chance.bias
    given: Any = (weight, chance.deviation, chance.normal, chance.table, chance.slopes)
    for person in range(start, stop):
        for entry in range(indptr[person], indptr[person + 1]):
            last_seen_by[seen[entry]] = person
        best, listed, usual = values[person], places[person], chance.usual[person]
        liking = chance.people[person if weight != 0 else 0]
        for place in range(order.size):
            item = order[place]
            if np.float32(base[item]) < best[-1] or (weight == 0 and listed[-1] >= 0):
                break
            if last_seen_by[item] == person:
                continue
            value = np.float32(base[item])
            if weight != 0:
                cell = (liking, chance_items[item], chance_bias[item], usual)
                value = np.float32(base[item] + liked(*cell, *given))
            enter(value, item, best, listed)


@compiled
def rank_scores(scores: Array, values: Array, places: Array) -> None:
    """Fill the lists from all scores."""
    width = scores.shape[1]
    for row in range(scores.shape[0]):
        line, best = scores[row], values[row]
        for start in range(0, width, GROUP):
            if not reaches(line[start:], best[-1]):
                continue
            for j in range(start, min(start + GROUP, width)):
                if line[j] > best[-1]:
                    insert(line[j], j, best, places[row])
