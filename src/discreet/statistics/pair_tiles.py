"""Add users' pairs to a large matrix a few rows at a time, so that these rows stay in the processor's cache.

A matrix of thousands of items is larger than any near cache. Users have their items in all of its rows, so
adding user by user moves most of the matrix through memory again and again. Here the interactions of a whole
block of users are laid out once and sorted by tiles of rows. Each tile is then finished by itself, and no two
threads add to one row. Sums are integers: their order does not matter.

Float operations keep their order here, so that a pair at one time adds the same number in both places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core import Array, Floats, run
from discreet.core.kernels import strict, strict_inner
from discreet.statistics.statistic import Steps

# A tile has about so many sums of 32 bits, 3 MB. Smaller tiles fit into nearer caches, but then users' rows
# are read more often, which costs more.
_SUMS_PER_TILE = 6 << 17
# A row of a tile is added to the totals before a sum in it could reach this; 32 bits hold it and one more.
_MOST_UNITS = 2.0**30
# No pair weighs more units: a user's matrix has norm 1.
_MOST_WEIGHT = 2.0**24
# A decay below this adds no unit to a weight, and may as well be zero; tiny numbers would be slow.
_LEAST_DECAY = 1e-200


class PairEntries(NamedTuple):
    """Users' interactions with items of a matrix, user by user and in the order of time.

    `columns` are the items, `own` their weights (at most 1), and `scaled` the same in fixed-point units of
    the user: 0 where nothing is added. `steps` counts the user's distinct times. `first` is where a user
    begins, and `level` where the interactions at one time begin.
    """

    columns: npt.NDArray[np.uint32]
    own: Floats
    scaled: Floats
    steps: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    level: npt.NDArray[np.int32]

    @classmethod
    def empty(cls, size: int) -> PairEntries:
        """Return room for so many interactions."""
        places = (np.empty(size, np.int32) for _ in range(3))
        return cls(np.empty(size, np.uint32), np.empty(size), np.empty(size), *places)


def add_in_tiles(
    entries: PairEntries, longest: int, near: float, apart: float, ordered: bool, totals: Steps
) -> None:
    """Add the pairs of all users: a row for later, a column for earlier items.

    A pair s steps apart has the weight `apart` + (1 - `apart`) `near`^s. Half of a pair at one time is added
    in both places; if no pair is `ordered`, in one of them. `longest` bounds the length of a user's row.
    """
    height = max(1, _SUMS_PER_TILE // max(len(totals), 1))
    ends, by_tile = _by_tile(entries.columns, entries.scaled, height, -(-len(totals) // height))
    factors = _factors(near, apart, longest)
    nearest = _nearest(entries.steps, entries.first, factors.size - 1)
    run(add_tiles, ends, ends, by_tile, height, entries, nearest, factors, longest, ordered, totals)


@strict
def _by_tile(
    columns: Array, scaled: Array, height: int, tiles: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return where each tile's interactions begin, and the interactions by tile, user after user in each.

    Interactions that add nothing are skipped, also those whose numbers are not finite.
    """
    ends = np.zeros(tiles + 1, np.int64)
    for entry in range(columns.size):
        if scaled[entry] > 0:
            ends[columns[entry] // height + 1] += 1
    for tile in range(tiles):
        ends[tile + 1] += ends[tile]
    at, found = ends.copy(), np.empty(ends[tiles], np.int32)
    for entry in range(columns.size):
        if scaled[entry] > 0:
            tile = columns[entry] // height
            found[at[tile]] = entry
            at[tile] += 1
    return ends, found


@strict
def _factors(near: float, apart: float, longest: int) -> Floats:
    """Return the weights of pairs by their distance, up to that from which on they no longer change."""
    factors, decay = np.empty(longest + 2), 1.0
    for step in range(longest + 2):
        factors[step] = apart + (1 - apart) * decay
        if factors[step] == apart:
            return factors[: step + 1]
        decay *= near
        decay = decay if decay > _LEAST_DECAY else 0.0
    return factors


@strict
def _nearest(steps: Array, first: Array, farthest: int) -> npt.NDArray[np.int32]:
    """Return for each interaction the user's first one that is less than `farthest` steps before it."""
    nearest, here = np.empty(steps.size, np.int32), 0
    for entry in range(steps.size):
        here = max(here, first[entry])
        while here < entry and steps[entry] - steps[here] >= farthest:
            here += 1
        nearest[entry] = here
    return nearest


@strict_inner
def _weigh(
    scaled: float, own: Array, far: int, steps: Array, now: int, factors: Array, room: Array, units: Array
) -> None:
    """Write the weights of pairs with earlier interactions in fixed point.

    They are at most 2^24 units, so 32 bits hold them; processors convert to these faster. The first `far` all
    have the last of `factors`, which saves looking it up for most pairs of a long row. The others' factors
    are first collected in `room`: what then follows is compiled to vector instructions.
    """
    last, some, found = factors[factors.size - 1], steps[far:], room[: own.size - far]
    for near in range(some.size):
        found[near] = factors[np.uint32(now - some[near])]
    for earlier in range(far):
        units[earlier] = np.int32(scaled * own[earlier] * last)
    rest, close = own[far:], units[far:]
    for near in range(rest.size):
        close[near] = np.int32(scaled * rest[near] * found[near])


@strict_inner
def empty_row(row: Array, total: Array) -> None:
    """Add a row of 32-bit sums to its totals and start it again."""
    for column in range(row.size):
        total[column] += row[column]
        row[column] = 0


@strict_inner
def _add_ties(entry: int, entries: PairEntries, ordered: bool, line: Array) -> None:
    """Add half of the weight of pairs at one time; the one that is listed later decides how it is rounded."""
    columns, own, scaled, level = entries.columns, entries.own, entries.scaled, entries.level
    for same in range(level[entry], entry):
        line[columns[same]] += np.int32(scaled[entry] * own[same] / 2)
    if ordered:
        same = entry + 1
        while same < level.size and level[same] == level[entry]:
            line[columns[same]] += np.int32(scaled[same] * own[entry] / 2)
            same += 1


@strict
def add_tiles(
    start: int,
    stop: int,
    ends: Array,
    by_tile: Array,
    height: int,
    entries: PairEntries,
    nearest: Array,
    factors: Array,
    longest: int,
    ordered: bool,
    totals: Array,
) -> None:
    """Add all pairs in the rows of a range of tiles; `height` rows are a tile.

    An interaction's pairs are with different items, and own weights are at most 1. So none of its pairs adds
    more than `scaled` to a sum, and the sum of these bounds all sums of a row.
    """
    columns, own, scaled, steps, first, level = entries
    units, rows = np.empty(longest, np.int32), np.zeros((height, len(totals)), np.int32)
    room = np.empty(longest)
    for tile in range(start, stop):
        top, bounds = tile * height, np.zeros(height)
        for index in range(ends[tile], ends[tile + 1]):
            entry: Any = np.int64(by_tile[index])
            begin: Any = np.int64(first[entry])
            tied: Any = np.int64(level[entry])
            row: Any = np.int64(columns[entry]) - top
            line, before, here = rows[row], columns[begin:tied], scaled[entry]
            bounds[row] += min(here, _MOST_WEIGHT)
            if bounds[row] > _MOST_UNITS:
                empty_row(line, totals[top + row])
                bounds[row] = _MOST_WEIGHT
            far = max(min(np.int64(nearest[entry]), tied) - begin, 0)
            _weigh(here, own[begin:tied], far, steps[begin:tied], steps[entry], factors, room, units)
            for earlier in range(before.size):
                line[before[earlier]] += units[earlier]
            _add_ties(entry, entries, ordered, line)
        for row in range(min(height, len(totals) - top)):
            empty_row(rows[row], totals[top + row])
