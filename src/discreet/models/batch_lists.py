"""Rank items for many users with compiled loops: the lists that `best_places` of all scores would give.

Scores of a few users and items at a time are multiplied in single precision, in a buffer that the
processor's cache has room for. They only show which items may reach a list: items and their order are
decided by exact scores of those few. Equal scores keep the order of the catalog. Items with weights between
them (`PairedLists`) come first, the others after them.

Between items with weights, a user's mixture is `(1 - blend) exp(base) + blend Z follows`, with Z the sum of
`exp(base)` over these items. Its logarithm is what lists are ordered by, so the mixture itself shows which
items may reach a list. Products are computed in double precision, because Z needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from discreet.core import Array, Floats, Indices, Singles, one_algebra_thread, run
from discreet.core.kernels import compiled, dot, inner
from discreet.data import Interactions
from discreet.models.lists import Wanted, listable
from discreet.models.scorers.log_chance_kernels import log_of_chance
from discreet.models.scorers.next_items_kernels import add_neighbors, packed
from discreet.models.scorers.ranking import (
    LEAST,
    LOGISTIC,
    PER_UNIT,
    Followed,
    Liking,
    LinearScores,
    Ranking,
    chance_table,
)
from discreet.models.scorers.scorer import Scorer

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


# Users whose mixtures are computed together: so many that preparing the items for a product hardly counts.
_MIXED = 64
# What a mixture computed in another order of operations may be wrong by, in its logarithm.
_ROUNDING = 2.0**-22
# What liking leaves is rounded up by this factor, so that no item is lost to rounding, and is never less.
_MORE, _LEAST_FACTOR = 1 + 2.0**-20, 1e-300
# Twice the rounding of single precision: what one term of a sum may be wrong by, with a margin.
_ROUNDING_MARGIN = 2.0**-23
# The largest magnitude that single precision handles safely.
_MOST = 1e30
# A bound below all mixtures; items that may not be listed have minus infinity.
_ANY = -1.0
# Exponentials of numbers up to this neither overflow nor vanish, also if many are added.
_SAFE = 300.0


class Seen(NamedTuple):
    """The items that each user has seen."""

    indptr: Indices
    items: Array

    def among(self, names: Indices, n_items: int) -> Seen:
        """Return the same for some items, which are numbered by their places there."""
        place = np.full(n_items, -1, dtype=np.int64)
        place[names] = np.arange(names.size)
        own = place[self.items]
        return Seen(np.append(0, np.cumsum(own >= 0))[self.indptr], own[own >= 0])


class BlendedScores(NamedTuple):
    """What compiled loops need next to the mixtures' first part.

    `own` are the places among the paired items of each user's interactions, -1 for others, and `recency`
    their weights. `kept` and `blended` are the logarithms of each user's shares. `shut` items may not be
    listed.
    """

    indptr: Array
    own: Array
    recency: Array
    neighbors: Array
    halves: Array
    shut: Array
    seen: Array
    ends: Array
    margins: Array
    kept: Array
    blended: Array


class MostLiked(NamedTuple):
    """What shows how much liking leaves of a mixture at most, for paired items.

    `people` and `items` are vectors in single precision, with biases, whose products are ratings. A rating
    times `scale` plus a user's `shift` is a place in the table of `factors`. Rounding is in the shift.
    """

    people: Singles
    items: Singles
    scale: float
    shifts: Floats
    factors: Floats

    @classmethod
    def of(cls, chance: Chance, names: Indices) -> Self:
        """Return the same for these items; without liking, nothing."""
        if not chance.weight:
            return cls(np.zeros((0, 0), np.float32), np.zeros((0, 0), np.float32), 0.0, *[np.zeros(0)] * 2)
        vectors, bias = chance.items[names], chance.bias[names]
        reach = np.linalg.norm(chance.people, axis=1) * np.linalg.norm(vectors, axis=1).max(initial=0.0)
        reach += np.abs(bias).max(initial=0.0) + np.abs(chance.usual)
        # Where single precision could overflow, every place is beyond the table.
        wrong = np.where(reach < _MOST, (vectors.shape[1] + 8) * _ROUNDING_MARGIN * reach, np.inf)
        edges = LEAST + np.arange(1, chance.table.size) / PER_UNIT
        logarithms = chance.table[1:] if chance.normal else -np.logaddexp(0.0, -LOGISTIC * edges)
        # The chance at the upper end of each cell, and above the last one. Zero would lose minus infinity.
        factors = np.maximum(np.exp(chance.weight * logarithms), _LEAST_FACTOR) * _MORE
        return cls(
            np.column_stack([chance.people, np.ones(len(chance.people))]).astype(np.float32),
            np.ascontiguousarray(np.column_stack([vectors, bias]).T.astype(np.float32)),
            PER_UNIT / chance.deviation,
            ((wrong - chance.usual) / chance.deviation - LEAST) * PER_UNIT,
            np.append(factors, 1.0),
        )

    def ratings(self, start: int, stop: int) -> Singles:
        """Return rough ratings of a range of users; none if liking counts nothing."""
        found: Singles = self.people[start:stop] @ self.items
        return found


class PairedLists(NamedTuple):
    """The exact scores of paired items, and what is mixed with them.

    `turned` has the vectors, one line a factor, and last the biases. Scores are `safe` if exponentials of
    them neither overflow nor vanish.
    """

    exact: ExactScores
    mixture: BlendedScores
    chance: Chance
    liked: MostLiked
    turned: Floats
    safe: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        base: LinearScores,
        followed: Followed,
        seen: Seen,
        closed: Indices,
        margins: Floats,
        chance: Chance,
        shifts: Floats,
    ) -> Self:
        """Return the same numbers in the form of compiled loops; `shifts` gets what all scores change by."""
        paired, items = followed.next_items, followed.next_items.items
        own = paired.places(followed.people)
        shut = np.zeros(len(base.items), dtype=bool)
        shut[closed] = True
        # Seen items keep the order of their rows; which place each has is all that is needed.
        place = np.full(len(base.items), -1, dtype=np.int64)
        place[items] = np.arange(items.size)
        kept, blended = np.log1p(-followed.blend), np.log(followed.blend)
        nearby = margins + _ROUNDING * (1 + np.log(items.size) - kept)
        turned = np.column_stack([base.items[items], base.bias[items]]).T
        mixture = BlendedScores(
            followed.people.indptr,
            own,
            followed.recency.astype(np.float32),
            *packed(paired.neighbors, paired.weights),
            np.flatnonzero(shut[items]),
            place[seen.items],
            seen.indptr,
            nearby,
            kept,
            blended,
        )
        vectors = np.ascontiguousarray(base.items[items])
        exact = ExactScores(np.ascontiguousarray(base.people), vectors, base.bias[items], items, shifts)
        # Each user's row alone decides whether scores may be large, so no other row changes the rounding.
        reach = np.linalg.norm(base.people, axis=1) * np.linalg.norm(vectors, axis=1).max()
        safe = reach + np.abs(exact.bias).max() < _SAFE
        return cls(exact, mixture, chance, MostLiked.of(chance, items), np.ascontiguousarray(turned), safe)

    def rank(self, first: int, last: int, values: Singles, places: Indices) -> None:
        """Insert the paired items into the lists of a range of users."""
        room, people = np.empty((_MIXED, self.turned.shape[1])), np.ones((_MIXED, len(self.turned)))
        for start in range(first, last, _MIXED):
            count = min(_MIXED, last - start)
            people[:count, :-1] = self.exact.people[start : start + count]
            lines, largest = np.matmul(people[:count], self.turned, out=room[:count]), np.zeros(count)
            large = ~self.safe[start : start + count]
            if large.any():
                largest[large] = lines[large].max(axis=1)
                lines -= largest[:, None]
            np.exp(lines, out=lines)
            numbers = (self.mixture, self.exact, self.chance, self.liked.scale, self.liked.shifts)
            ratings = self.liked.ratings(start, start + count)
            rank_mixtures(lines, start, largest, *numbers, self.liked.factors, ratings, values, places)


@inner
def _sums(line: Array, follows: Array) -> tuple[float, float]:
    """Set negative weights to zero; return the sums of `exp(base)` and of the weights."""
    total, speaks = 0.0, 0.0
    for j in range(line.size):
        total += line[j]
        follows[j] = max(follows[j], 0.0)
        speaks += follows[j]
    return total, speaks


@inner
def _mix(line: Array, follows: Array, rest: float, other: float, lanes: Array) -> None:
    """Turn `exp(base)` into the mixture, and write the largest of each lane; a rest of items has no lane."""
    lanes[:] = -np.inf
    whole = line.size - line.size % LANES
    for start in range(0, whole, LANES):
        part, own = line[start : start + LANES], follows[start : start + LANES]
        for j in range(LANES):
            part[j] = rest * part[j] + other * own[j]
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]
    for j in range(whole, line.size):
        line[j] = rest * line[j] + other * follows[j]


@inner
def _lose(line: Array, ratings: Array, scale: float, shift: float, factors: Array, lanes: Array) -> None:
    """Multiply a mixture by what liking leaves of it at most, and write the largest of each lane."""
    last = factors.size - 1
    for j in range(line.size):
        place = scale * ratings[j] + shift
        # What is not a number is beyond the table, too.
        cell = (place if place > 0 else 0.0) if place < last else last
        line[j] *= factors[np.int32(cell)]
    lanes[:] = -np.inf
    for start in range(0, line.size - LANES + 1, LANES):
        part = line[start : start + LANES]
        for j in range(LANES):
            lanes[j] = part[j] if part[j] > lanes[j] else lanes[j]


@inner
def _shut(line: Array, closed: Array, seen: Array) -> None:
    """Mark the items that may not be listed; seen items that are not paired have a place of -1."""
    for place in closed:
        line[place] = -np.inf
    for place in seen:
        if place >= 0:
            line[place] = -np.inf


@inner
def _score(base: float, follows: float, level: float) -> Any:
    """Return the logarithm of a mixture: `follows` is an item's part of the weights.

    `level` is the logarithm of the probability that follows weights.
    """
    if follows > 0:
        other = np.log(follows) + level
        base = max(base, other) + np.log1p(np.exp(-abs(base - other)))
    return np.float32(base)


@inner
def _bound(last: Any, largest: float, margin: float) -> float:
    """Return what a mixture must exceed for its logarithm to reach the last of a list."""
    least = np.exp(last - largest - margin)
    return least if least > 0 else _ANY


@compiled
def rank_mixtures(
    lines: Array,
    first: int,
    largest: Array,
    mixture: BlendedScores,
    exact: ExactScores,
    chance: Chance,
    scale: float,
    shifts: Array,
    factors: Array,
    ratings: Array,
    values: Array,
    places: Array,
) -> None:
    """Insert paired items into the lists of the users from `first` on, given `exp(base - largest)`.

    Where exponentials are safe `largest` is 0. `MostLiked` has the numbers before `values`.
    """
    width, lanes, follows = lines.shape[1], np.empty(LANES), np.empty(lines.shape[1])
    top, at = np.empty(values.shape[1]), np.zeros_like(places[0])
    neighbors, halves, bits = mixture.neighbors, mixture.halves, np.empty(mixture.halves.shape[1], np.int32)
    items, bias, names = exact.items, exact.bias, exact.names
    weight, chance_items, chance_bias = chance.weight, chance.items, chance.bias
    given: Any = (weight, chance.deviation, chance.normal, chance.table, chance.slopes)
    for row in range(lines.shape[0]):
        person, line, margin = first + row, lines[row], mixture.margins[first + row]
        follows[:] = 0.0
        entries = slice(mixture.indptr[person], mixture.indptr[person + 1])
        add_neighbors(mixture.own[entries], mixture.recency[entries], neighbors, halves, bits, follows)
        total, speaks = _sums(line, follows)
        shift, part = (mixture.kept[person], 1 / speaks) if speaks > 0 else (0.0, 0.0)
        exact.shifts[person] = shift
        level = largest[row] + np.log(total) + mixture.blended[person]
        rest, other = np.exp(shift), np.exp(mixture.blended[person]) * total * part
        _shut(line, mixture.shut, mixture.seen[mixture.ends[person] : mixture.ends[person + 1]])
        _mix(line, follows, rest, other, lanes)
        if weight != 0:
            _lose(line, ratings[row], scale, shifts[person], factors, lanes)
        best, listed = values[person], places[person]
        own, usual, liking = (
            exact.people[person],
            chance.usual[person],
            chance.people[person if weight else 0],
        )
        least = last_of(lanes, top, at) * np.exp(-2 * margin)
        bound = least if least > 0 else _ANY
        # With liking the largest come first, in a pass of their own, and leave little to try after them.
        passes = 2 if weight != 0 and least > 0 else 1
        for again in range(passes):
            if again:
                bound = _bound(best[-1], largest[row], margin)
            rises = again + 1 == passes
            for start in range(0, width, GROUP):
                if not reaches(line[start:], bound):
                    continue
                for j in range(start, min(start + GROUP, width)):
                    if line[j] > bound:
                        line[j], gain, item = -np.inf, 0.0, names[j]
                        if weight != 0:
                            gain = liked(liking, chance_items[item], chance_bias[item], usual, *given)
                        value = _score(dot(own, items[j]) + bias[j] + shift, follows[j] * part, level)
                        value = np.float32(value + gain)
                        enter(value, item, best, listed)
                        if rises and best[-1] > -np.inf:
                            bound = max(bound, _bound(best[-1], largest[row], margin))


StarsAt = Callable[[Indices, Indices], Floats | None]

# Users and items whose scores are computed together.
_PEOPLE, _ITEMS = 64, 4096
# Lengths of users' vectors for which limits are computed.
_LENGTHS = 33
# Users folded in at once.
_FOLDED = 1 << 14


def many_lists(
    scorer: Scorer, histories: Interactions, wanted: Wanted, *, scores_at_once: int
) -> Iterator[tuple[Indices, Indices, Floats, StarsAt]]:
    """Yield users in blocks: their rows, the places and scores of their lists, and what predicts ratings."""
    start, most = 0, max(1, scores_at_once // max(len(histories.catalog), 1))
    while start < histories.n_users:
        people = histories.span(start, min(start + _FOLDED, histories.n_users))
        every = np.arange(people.n_users)
        ranking = scorer.ranking(people, every, wanted.rank_by)
        found = ranking and best_of(ranking, people, wanted)
        if ranking is not None and found is not None:
            stars: StarsAt = ranking.expected_stars
        else:
            people, every = people.span(0, min(most, people.n_users)), every[:most]
            worth = scorer.worth_by(people, every, wanted.rank_by)
            listable(worth, people if wanted.exclude_seen else None, every, wanted.closed)
            found, stars = best_of_scores(worth, wanted.k), partial(scorer.expected_stars, people)
        yield start + every, found[0], found[1].astype(np.float64), stars
        start += people.n_users


def best_of(ranking: Ranking, people: Interactions, wanted: Wanted) -> tuple[Indices, Singles] | None:
    """Return the best items of each of these users and their scores, or None if numbers are too large.

    Rows with fewer items end with scores of minus infinity.
    """
    k, closed = min(wanted.k, len(people.catalog)), wanted.closed
    values = np.full((people.n_users, k), -np.inf, dtype=np.float32)
    places = np.full((people.n_users, k), -1, dtype=np.int64)
    seen = Seen(people.indptr if wanted.exclude_seen else np.zeros_like(people.indptr), people.items)
    if isinstance(ranking.base, LinearScores):
        found = _rank_linear(ranking.base, ranking, seen, closed, (values, places))
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
    base: LinearScores, ranking: Ranking, seen: Seen, closed: Indices, out: tuple[Singles, Indices]
) -> bool:
    """Fill the lists by products with item vectors; return False where single precision would overflow."""
    margins = _margins(base, closed)
    if not margins.max(initial=0.0) < _MOST * 2.0**-23:
        return False
    chance = Chance.of(ranking.liking, len(base.people))
    shifts, paired = np.zeros(len(base.people)), None
    others = np.ones(len(base.items), dtype=bool)
    others[closed] = False
    if ranking.following is not None:
        paired = PairedLists.of(base, ranking.following, seen, closed, margins, chance, shifts)
        others[ranking.following.next_items.items] = False
    exact = _by_bias(base, np.flatnonzero(others), shifts)
    right = np.ascontiguousarray(np.column_stack([exact.items, exact.bias]).T.astype(np.float32))
    left = np.column_stack([base.people, np.ones(len(base.people))]).astype(np.float32)
    nearby, limits = margins.astype(np.float32), _limits(exact, margins)
    values, own = out[0], seen.among(exact.names, len(base.items))

    def part(start: int, stop: int, places: Array) -> None:
        room = np.empty((_PEOPLE, _ITEMS), dtype=np.float32)
        for first in range(start, stop, _PEOPLE):
            last = min(first + _PEOPLE, stop)
            if paired is not None:
                paired.rank(first, last, values, places)
            for tile, item in enumerate(range(0, right.shape[1], _ITEMS)):
                reached = limits[first:last, tile] + shifts[first:last] >= values[first:last, -1]
                asked, items = first + np.flatnonzero(reached), right[:, item : item + _ITEMS]
                if not asked.size:
                    continue
                scores = room.reshape(-1)[: asked.size * items.shape[1]].reshape(asked.size, -1)
                np.matmul(left[asked], items, out=scores)
                rank_tile(scores, asked, item, *own, nearby, exact, chance, values, places)

    with one_algebra_thread():
        run(part, np.arange(len(left) + 1) * len(base.items), out[1])
    return True


def _margins(base: LinearScores, closed: Indices) -> Floats:
    """Return how far a user's scores in single precision may lie from the exact ones.

    A sum of products differs from the exact one by less than the number of terms times the rounding.
    """
    bias = base.bias.copy()
    bias[closed] = 0.0
    reach = np.linalg.norm(base.people, axis=1) * np.linalg.norm(base.items, axis=1).max(initial=0.0)
    terms = base.items.shape[1] + 8
    margins: Floats = terms * _ROUNDING_MARGIN * (reach + np.abs(bias).max(initial=0.0)) + 1e-30
    return margins


def _by_bias(base: LinearScores, items: Indices, shifts: Floats) -> ExactScores:
    """Return exact scores of some items, those of the largest bias first."""
    names = items[np.argsort(-base.bias[items], kind="stable")]
    people, vectors = np.ascontiguousarray(base.people), np.ascontiguousarray(base.items[names])
    return ExactScores(people, vectors, base.bias[names], names, shifts)


def _limits(exact: ExactScores, margins: Floats) -> Floats:
    """Return what no score of a user exceeds in each tile: a product is at most that of both lengths.

    The largest of bias plus length times the user's length is convex in that, so it is computed for a few
    lengths, and a user has the limit of the next larger one.
    """
    lengths, own = np.linalg.norm(exact.items, axis=1), np.linalg.norm(exact.people, axis=1)
    grid = np.linspace(0.0, own.max(initial=0.0), _LENGTHS)
    starts = np.arange(0, lengths.size, _ITEMS)
    most = [np.maximum.reduceat(exact.bias + length * lengths, starts) for length in grid if starts.size]
    table = np.array(most).reshape(grid.size, starts.size)
    found: Floats = table[np.minimum(np.searchsorted(grid, own), grid.size - 1)] + margins[:, None]
    return found


def _rank_common(
    base: Floats,
    liking: Liking | None,
    seen: Seen,
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
