"""Bound each user's contribution, by rules that read only that user's own ratings.

A rule that depends on other users (keep the rarest items, keep the first lines of the file) would let one
user change which ratings of another are used, and no sensitivity would hold.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from discreet.data.encoding import cells_of_rows, count_not_finite, sort_runs
from discreet.data.errors import WeightsOverflow
from discreet.data.facts import LEAST_WEIGHT, MOST_WEIGHT, Declarations
from discreet.data.vocabulary import Vocabulary

_BLOCK = 1 << 22
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def clip_to_scale(values: npt.NDArray[np.float32], low: float, high: float) -> npt.NDArray[np.float32]:
    """Return the values inside [low, high]; the same array if they already are.

    The ends are rounded inward to 32 bits, so that no stored value exceeds the declared scale.
    """
    least, most = _round_inward(low, high)
    if values.size == 0 or (values.min() >= least and values.max() <= most):
        return values
    return np.clip(values, least, most)


def _round_inward(low: float, high: float) -> tuple[np.float32, np.float32]:
    least, most = np.float32(low), np.float32(high)
    if float(least) < low:
        least = np.nextafter(least, np.float32(math.inf))
    if float(most) > high:
        most = np.nextafter(most, np.float32(-math.inf))
    return (least, most) if least <= most else (np.float32(low), np.float32(low))


def keep_per_user(
    indptr: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    times: npt.NDArray[np.int64] | None,
    users: Vocabulary,
    catalog: Vocabulary,
    cap: int,
) -> npt.NDArray[np.bool_]:
    """Mark at most `cap` ratings a user: the latest, and among equals (or without times) by a public hash.

    The hash mixes the user's and the item's external ids: it depends neither on the numbering, which other
    users shape, nor on the order of the file, and it favors no item. A user whose ID is a row number has
    none of their own (without one row, all after it would be called otherwise): there the user's items
    take its place, and users with the same items keep the same.
    """
    keep = np.ones(items.size, dtype=np.bool_)
    lengths = np.diff(indptr)
    heavy = np.flatnonzero(lengths > cap)
    if heavy.size == 0:
        return keep
    item_hash = hash_ids(catalog)
    # Hashed twice, so that a user and an item with the same id do not cancel out.
    named = None if users.is_positional else mix(hash_ids(users.take(heavy)))
    for first, last in _blocks(lengths[heavy]):
        people, sizes = heavy[first:last], lengths[heavy[first:last]]
        cells, starts = cells_of_rows(indptr, people), np.cumsum(sizes) - sizes
        own = item_hash[items[cells]]
        person = mix(np.bitwise_xor.reduceat(mix(own), starts)) if named is None else named[first:last]
        draw = mix(own ^ np.repeat(person, sizes))
        if times is None:
            age = (draw >> np.uint64(1)).view(np.int64)
        else:
            age = np.repeat(np.maximum.reduceat(times[cells], starts), sizes) - times[cells]
        keep[cells] = _mark_least(age, draw, starts, sizes, cap)
    return keep


def _mark_least(
    age: npt.NDArray[np.int64],
    draw: npt.NDArray[np.uint64],
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    cap: int,
) -> npt.NDArray[np.bool_]:
    """Mark the `cap` least ages of each run, and among equal ages those with the least draw."""
    limits = sort_runs(age, starts)[starts + cap - 1]
    limit = np.repeat(limits, sizes)
    below: npt.NDArray[np.bool_] = age < limit
    level: npt.NDArray[np.bool_] = age == limit
    left = cap - np.add.reduceat(below, starts, dtype=np.int64)
    ties = np.add.reduceat(level, starts, dtype=np.int64)
    excess = ties > left
    if excess.any():
        tied = np.flatnonzero(level & np.repeat(excess, sizes))
        run = np.repeat(np.arange(left[excess].size), ties[excess])
        position = np.arange(tied.size) - np.repeat(np.cumsum(ties[excess]) - ties[excess], ties[excess])
        in_order = tied[np.lexsort((draw[tied], run))]
        level[in_order[position >= left[excess][run]]] = False
    return below | level


def hash_ids(vocabulary: Vocabulary) -> npt.NDArray[np.uint64]:
    """Return a fixed public 64-bit hash of each id; it never changes between versions."""
    # Whole numbers are hashed as text: whether ids are read as numbers depends on other users' ids.
    texts = [str(identifier) for identifier in vocabulary.series.to_list()]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    letters = np.frombuffer("".join(texts).encode("utf-32-le"), dtype="<u4")
    starts = np.cumsum(lengths) - lengths
    # Longest first: those who have a letter at a position come before those who do not.
    order = np.argsort(-lengths, kind="stable")
    reach = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)), side="left")
    state = np.full(len(texts), _GOLDEN)
    for position, count in enumerate(reach.tolist()):
        some = order[:count]
        letter = letters[starts[some] + position].astype(np.uint64)
        # As old as the hash: a letter 0 does not count.
        state[some] = np.where(letter == 0, state[some], mix(state[some] ^ letter))
    return state


def mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble 64-bit numbers one to one: the output function of the splitmix64 generator."""
    state = state + _GOLDEN
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def _blocks(lengths: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut rows into runs of about four million ratings, so that sorting needs little memory."""
    ends = np.cumsum(lengths)
    cuts = np.flatnonzero(np.diff(ends // _BLOCK, prepend=0)).tolist()
    edges = [0, *[cut for cut in cuts if cut > 0], lengths.size]
    return list(pairwise(edges))


def clip_counts(counts: npt.NDArray[np.float32], declared: Declarations) -> npt.NDArray[np.float32]:
    """Return counts within a declared scale: how often an item will be chosen isn't known beforehand."""
    facts = declared.get("facts")
    if facts is not None and facts.weights:
        return clip_to_scale(counts, LEAST_WEIGHT, MOST_WEIGHT)
    low = declared.get("low") if facts is None else facts.low
    high = declared.get("high") if facts is None else facts.high
    kept = clip_to_scale(counts, -np.inf if low is None else low, np.inf if high is None else high)
    if count_not_finite(kept):
        raise WeightsOverflow()
    return kept
