"""Rank the items between which there are weights, for many users: a mixture of two probabilities.

A user's mixture is `(1 - blend) exp(base) + blend Z follows`, with Z the sum of `exp(base)` over these
items. Its logarithm is what lists are ordered by, so the mixture itself shows which items may reach a list;
only their logarithms are taken. Products are computed in double precision, for Z needs them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats, Indices, Singles
from discreet.core.kernels import compiled, dot, inner
from discreet.models.batch_kernels import (
    GROUP,
    LANES,
    Chance,
    ExactScores,
    enter,
    last_of,
    liked,
    reaches,
)
from discreet.models.scorers.next_items_kernels import add_neighbors, packed
from discreet.models.scorers.ranking import Followed, LinearScores

# Users whose mixtures are computed together: so many that preparing the items for a product hardly counts.
_PEOPLE = 64
# What a mixture computed in another order of operations may be wrong by, in its logarithm.
_ROUNDING = 2.0**-22
_LESS = 1 - 2.0**-20
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


class PairedLists(NamedTuple):
    """The exact scores of paired items, and what is mixed with them.

    `turned` has the vectors, one line a factor, and last the biases. Scores are `safe` if exponentials of
    them neither overflow nor vanish.
    """

    exact: ExactScores
    mixture: BlendedScores
    chance: Chance
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
        return cls(exact, mixture, chance, np.ascontiguousarray(turned), safe)

    def rank(self, first: int, last: int, values: Singles, places: Indices) -> None:
        """Insert the paired items into the lists of a range of users."""
        room, people = np.empty((_PEOPLE, self.turned.shape[1])), np.ones((_PEOPLE, len(self.turned)))
        for start in range(first, last, _PEOPLE):
            count = min(_PEOPLE, last - start)
            people[:count, :-1] = self.exact.people[start : start + count]
            lines, largest = np.matmul(people[:count], self.turned, out=room[:count]), np.zeros(count)
            large = ~self.safe[start : start + count]
            if large.any():
                largest[large] = lines[large].max(axis=1)
                lines -= largest[:, None]
            np.exp(lines, out=lines)
            rank_mixtures(lines, start, largest, self.mixture, self.exact, self.chance, values, places)


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
    values: Array,
    places: Array,
) -> None:
    """Insert paired items into the lists of the users from `first` on, given `exp(base - largest)`.

    Where exponentials are safe `largest` is 0.
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
                        rough, line[j], gain, item = line[j], -np.inf, 0.0, names[j]
                        if weight != 0:
                            gain = liked(liking, chance_items[item], chance_bias[item], usual, *given)
                            # What is lost is rounded down, so that no item is lost to rounding.
                            if rough * np.exp(gain * _LESS) <= bound and rises:
                                continue
                        value = _score(dot(own, items[j]) + bias[j] + shift, follows[j] * part, level)
                        value = np.float32(value + gain)
                        enter(value, item, best, listed)
                        if rises and best[-1] > -np.inf:
                            bound = max(bound, _bound(best[-1], largest[row], margin))
