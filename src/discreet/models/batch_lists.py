"""Rank items for many people with compiled loops: the lists that `best_places` of all scores would give.

Scores of a few people and items at a time are multiplied in single precision, in a buffer that the
processor's cache holds. They only say which items may reach a list: what is listed, and in which order, is
decided by exact scores of those few. Equal scores keep the order of the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from discreet.core.arrays import Array, Floats, Indices, Singles
from discreet.core.kernels import compiled, dot
from discreet.core.rows import one_algebra_thread, run
from discreet.data.interactions import Interactions
from discreet.models.lists import listable
from discreet.models.scorers.counts import LOGISTIC
from discreet.models.scorers.log_chance import chance_table
from discreet.models.scorers.log_chance_kernels import log_of_chance
from discreet.models.scorers.ranking import Liking, LinearScores, Ranking
from discreet.models.scorers.scorer import Scorer

StarsAt = Callable[[Indices, Indices], Floats | None]

# People and items whose scores are computed together.
_PEOPLE, _ITEMS = 64, 4096
# Scores are compared in groups of so many with the last of a list.
_GROUP = 64
# A first bound is the last of the largest scores of so many lanes.
_LANES = 128
# Twice the rounding of single precision: what one term of a sum may be wrong by, with a margin.
_ROUNDING_MARGIN = 2.0**-23
# A closed item's bias in single precision, and the largest magnitude that single precision handles safely.
_CLOSED, _MOST = -1e30, 1e30
# People folded in at once.
_FOLDED = 1 << 14
_NONE = LinearScores(np.zeros((1, 0)), np.zeros((1, 0)), np.zeros(1))


class ExactScores(NamedTuple):
    """Hold the scores of `LinearScores`; the bias of closed items is minus infinity."""

    people: Array
    items: Array
    bias: Array


class Chance(NamedTuple):
    """Hold `Liking` for compiled loops, with a weight of 0 where it counts nothing."""

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


def many_lists(
    scorer: Scorer,
    histories: Interactions,
    k: int,
    *,
    rank_by: str | None,
    exclude_seen: bool,
    closed: Indices,
    scores_at_once: int,
) -> Iterator[tuple[Indices, Indices, Floats, StarsAt]]:
    """Yield people in blocks: their rows, the places and scores of their lists, and what tells stars."""
    start, most = 0, max(1, scores_at_once // max(len(histories.catalog), 1))
    while start < histories.n_users:
        people = histories.span(start, min(start + _FOLDED, histories.n_users))
        every = np.arange(people.n_users)
        ranking = scorer.ranking(people, every, rank_by)
        found = ranking and best_of(ranking, people, k, exclude_seen=exclude_seen, closed=closed)
        if ranking is not None and found is not None:
            stars: StarsAt = ranking.expected_stars
        else:
            people, every = people.span(0, min(most, people.n_users)), every[:most]
            worth = scorer.worth_by(people, every, rank_by)
            listable(worth, people if exclude_seen else None, every, closed)
            found, stars = best_of_scores(worth, k), partial(scorer.expected_stars, people)
        yield start + every, found[0], found[1].astype(np.float64), stars
        start += people.n_users


def best_of(
    ranking: Ranking, people: Interactions, k: int, *, exclude_seen: bool, closed: Indices
) -> tuple[Indices, Singles] | None:
    """Return the `k` best items of each of these people and their scores, or None if numbers are too large.

    Rows with fewer items end with scores of minus infinity.
    """
    k = min(k, len(people.catalog))
    values = np.full((people.n_users, k), -np.inf, dtype=np.float32)
    places = np.full((people.n_users, k), -1, dtype=np.int64)
    seen = (people.indptr if exclude_seen else np.zeros_like(people.indptr), people.items)
    if isinstance(ranking.base, LinearScores):
        found = _rank_linear(ranking.base, ranking.liking, seen, closed, (values, places))
        return (places, values) if found else None
    _rank_common(ranking.base, ranking.liking, seen, closed, (values, places))
    return places, values


def best_of_scores(scores: Singles, k: int) -> tuple[Indices, Singles]:
    """Return the places and scores of the `k` largest of each row, largest first and ties in their order."""
    k = min(k, scores.shape[1])
    values = np.full((len(scores), k), -np.inf, dtype=np.float32)
    places = np.full((len(scores), k), -1, dtype=np.int64)
    scores = np.ascontiguousarray(scores, dtype=np.float32)

    def part(start: int, stop: int, out: Array) -> None:
        rank_scores(scores[start:stop], values[start:stop], out[start:stop])

    run(part, np.arange(len(scores) + 1) * scores.shape[1], places)
    return places, values


def _rank_linear(
    base: LinearScores,
    liking: Liking | None,
    seen: tuple[Array, Array],
    closed: Indices,
    out: tuple[Singles, Indices],
) -> bool:
    """Fill the lists by products with item vectors; return False where single precision would overflow."""
    bias, rough = base.bias.copy(), base.bias.copy()
    bias[closed], rough[closed] = -np.inf, 0.0
    reach = np.linalg.norm(base.people, axis=1) * np.linalg.norm(base.items, axis=1).max(initial=0.0)
    # A sum of products differs from the exact one by less than the number of terms times the rounding.
    margins = (base.items.shape[1] + 8) * _ROUNDING_MARGIN * (reach + np.abs(rough).max(initial=0.0)) + 1e-30
    if not margins.max(initial=0.0) < _MOST * 2.0**-23:
        return False
    rough[closed] = _CLOSED
    left = np.column_stack([base.people, np.ones(len(base.people))]).astype(np.float32)
    right = np.ascontiguousarray(np.column_stack([base.items, rough]).T.astype(np.float32))
    exact = ExactScores(np.ascontiguousarray(base.people), np.ascontiguousarray(base.items), bias)
    chance = Chance.of(liking, len(base.people))
    nearby = margins.astype(np.float32)
    values, (indptr, items) = out[0], seen

    def part(start: int, stop: int, places: Array) -> None:
        room = np.empty((_PEOPLE, _ITEMS), dtype=np.float32)
        following = indptr[:-1].copy()
        for first in range(start, stop, _PEOPLE):
            last = min(first + _PEOPLE, stop)
            for item in range(0, right.shape[1], _ITEMS):
                tile = right[:, item : item + _ITEMS]
                scores = room.reshape(-1)[: (last - first) * tile.shape[1]].reshape(last - first, -1)
                np.matmul(left[first:last], tile, out=scores)
                given = (indptr, items, following, nearby, exact, chance)
                rank_tile(scores, first, item, *given, values, places)

    with one_algebra_thread():
        run(part, np.arange(len(left) + 1) * right.shape[1], out[1])
    return True


def _rank_common(
    base: Floats,
    liking: Liking | None,
    seen: tuple[Array, Array],
    closed: Indices,
    out: tuple[Singles, Indices],
) -> None:
    """Fill the lists where the base is the same for all: walk it downward until nothing can follow."""
    order = np.argsort(-base.astype(np.float32), kind="stable")
    shut = np.zeros(base.size, dtype=bool)
    shut[closed] = True
    order = order[~shut[order]]
    values, chance = out[0], Chance.of(liking, len(out[0]))

    def part(start: int, stop: int, places: Array) -> None:
        rank_common(start, stop, order, base, *seen, chance, values, places)

    run(part, seen[0] + out[0].shape[1] * np.arange(len(values) + 1), out[1])


@compiled
def _reaches(line: Array, bound: float) -> bool:
    """Return whether one of the first scores lies above a bound; a loop of fixed length is vectorized."""
    if line.size < _GROUP:
        return True
    above = np.int32(0)
    for j in range(_GROUP):
        above += np.int32(line[j] > bound)
    return above > 0  # type: ignore[return-value]


@compiled
def _insert(value: Any, item: int, values: Array, places: Array) -> None:
    """Insert an item that is better than the last of a list; of equal ones the first comes first."""
    place = values.size - 1
    while place > 0 and (
        values[place - 1] < value or (values[place - 1] == value and places[place - 1] > item)
    ):
        values[place], places[place] = values[place - 1], places[place - 1]
        place -= 1
    values[place], places[place] = value, item


@compiled
def _liked(person: int, item: int, chance: Chance) -> float:
    """Return the logarithm of the chance that a person likes an item."""
    score = np.float32(dot(chance.people[person], chance.items[item]) + chance.bias[item])
    above = (score - chance.usual[person]) / chance.deviation
    if chance.normal:
        return log_of_chance(above, chance.table, chance.slopes)
    turned = -LOGISTIC * above
    return -(max(turned, 0.0) + np.log1p(np.exp(-abs(turned))))  # type: ignore[no-any-return]


@compiled
def _offer(person: int, item: int, exact: ExactScores, chance: Chance, values: Array, places: Array) -> None:
    """Insert an item into a person's list if its exact score deserves it."""
    value = np.float32(dot(exact.people[person], exact.items[item]) + exact.bias[item])
    if chance.weight != 0 and value >= values[-1]:
        value = np.float32(value + chance.weight * _liked(person, item, chance))
    if value > values[-1] or (value == values[-1] and item < places[-1]):
        _insert(value, item, values, places)


@compiled
def _floor(line: Array, lanes: Array, top: Array, at: Array) -> float:
    """Return a number that as many scores reach as `top` has entries: one in each of so many lanes.

    The largest score of every lane is found without a branch, so the loop is vectorized.
    """
    lanes[:], top[:] = -np.inf, -np.inf
    for start in range(0, line.size - lanes.size + 1, lanes.size):
        part = line[start : start + _LANES]
        for j in range(_LANES):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    for j in range(_LANES):
        if lanes[j] > top[-1]:
            _insert(lanes[j], j, top, at)
    return top[-1]  # type: ignore[no-any-return]


@compiled
def rank_tile(
    scores: Array,
    first: int,
    offset: int,
    indptr: Array,
    seen: Array,
    following: Array,
    margins: Array,
    exact: ExactScores,
    chance: Chance,
    values: Array,
    places: Array,
) -> None:
    """Let the items from `offset` on into the lists of the people from `first` on, given rough scores.

    `following` holds where each person's next seen item stands.
    """
    width, lanes = scores.shape[1], np.empty(_LANES, np.float32)
    top, at = np.empty_like(values[0]), np.zeros_like(places[0])
    for row in range(scores.shape[0]):
        person, line = first + row, scores[row]
        while following[person] < indptr[person + 1] and seen[following[person]] < offset + width:
            line[seen[following[person]] - offset] = -np.inf
            following[person] += 1
        best, listed, margin = values[person], places[person], margins[person]
        bound = best[-1] - margin
        if offset == 0 and chance.weight == 0:
            bound = _floor(line, lanes, top, at) - 2 * margin
        for start in range(0, width, _GROUP):
            if not _reaches(line[start:], bound):
                continue
            for j in range(start, min(start + _GROUP, width)):
                if line[j] > bound:
                    _offer(person, offset + j, exact, chance, best, listed)
                    bound = max(bound, best[-1] - margin)


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
    """Fill the lists of a range of people from items in falling `order` of `base`."""
    last_seen_by = np.full(base.size, -1, np.int64)
    for person in range(start, stop):
        for entry in range(indptr[person], indptr[person + 1]):
            last_seen_by[seen[entry]] = person
        best, listed = values[person], places[person]
        for place in range(order.size):
            item = order[place]
            if np.float32(base[item]) < best[-1] or (chance.weight == 0 and listed[-1] >= 0):
                break
            if last_seen_by[item] == person:
                continue
            value = np.float32(base[item])
            if chance.weight != 0:
                value = np.float32(base[item] + chance.weight * _liked(person, item, chance))
            if value > best[-1] or (value == best[-1] and item < listed[-1]):
                _insert(value, item, best, listed)


@compiled
def rank_scores(scores: Array, values: Array, places: Array) -> None:
    """Fill the lists from all scores."""
    width = scores.shape[1]
    for row in range(scores.shape[0]):
        line, best = scores[row], values[row]
        for start in range(0, width, _GROUP):
            if not _reaches(line[start:], best[-1]):
                continue
            for j in range(start, min(start + _GROUP, width)):
                if line[j] > best[-1]:
                    _insert(line[j], j, best, places[row])
