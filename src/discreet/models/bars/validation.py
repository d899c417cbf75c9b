"""Hide some choices from a bar while it looks for its settings; the test part stays unseen.

What is hidden follows from a hash of people's ids, not from their order, so that shuffled data give the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.arrays import Floats, Indices, Singles
from discreet.data.bounding import hash_ids, mix
from discreet.data.interactions import Interactions
from discreet.data.ordering import cells_of_rows

Draws = npt.NDArray[np.uint64]

# A search looks at this many ratings at most, of people drawn evenly: its time does not grow with the data.
_MOST_RATINGS = 1_000_000
# Of this many people a choice is hidden, at most.
_MOST_PEOPLE = 4_000
_DEPTH = 10


def part_of_people(data: Interactions, most_ratings: int, seed: int) -> Interactions:
    """Return everybody, or people drawn evenly until they have `most_ratings` together."""
    if data.n_ratings <= most_ratings:
        return data
    order = np.argsort(_draws_of_people(data, seed))
    upto = int(np.searchsorted(np.cumsum(np.diff(data.indptr)[order]), most_ratings)) + 1
    return data.select_users(np.sort(order[:upto]))


def _draws_of_people(data: Interactions, seed: int) -> Draws:
    return mix(hash_ids(data.users) ^ np.uint64(seed))


def _draws_of_cells(data: Interactions, seed: int) -> Draws:
    return mix(_draws_of_people(data, seed)[data.rows()] ^ mix(data.items.astype(np.uint64)))


class HiddenChoices(NamedTuple):
    """Hold choices to learn from, and one hidden choice of each of some people."""

    train: Interactions
    people: Indices
    items: Indices

    def loss(self, scores: Singles) -> float:
        """Return one minus the NDCG@10 of the hidden choices; `scores` has a row for each of the people."""
        seen = self.train.select_users(self.people)
        own = scores[np.arange(self.people.size), self.items]
        scores = scores.copy()
        scores[seen.rows(), seen.items] = -np.inf
        above = np.count_nonzero(scores > own[:, None], axis=1)
        level = np.count_nonzero(scores == own[:, None], axis=1)
        place: Floats = above + (level - 1) / 2
        return 1 - float(np.where(place < _DEPTH, 1 / np.log2(place + 2), 0.0).mean())


def hide_choices(data: Interactions, seed: int) -> HiddenChoices | None:
    """Hide one choice of each of some people who made at least two; None if nobody did.

    It is the latest where there are times: a bar is asked what comes next.
    """
    part = part_of_people(data, _MOST_RATINGS, seed)
    several = np.flatnonzero(np.diff(part.indptr) > 1)
    if not several.size:
        return None
    first = np.argsort(_draws_of_people(part, seed)[several])[:_MOST_PEOPLE]
    people = np.sort(several[first])
    cells, hidden = cells_of_rows(part.indptr, people), np.zeros(part.n_ratings, dtype=np.bool_)
    later = np.zeros(cells.size) if part.times is None else ~part.times[cells]
    order = np.lexsort((_draws_of_cells(part, seed)[cells], later, part.rows()[cells]))
    hidden[cells[order[_starts(part, people)]]] = True
    return HiddenChoices(part.where(~hidden), people, part.items[hidden].astype(np.int64))


def _starts(data: Interactions, people: Indices) -> Indices:
    """Return where each of these people's ratings start once they stand row after row."""
    sizes = np.diff(data.indptr)[people]
    return np.cumsum(sizes) - sizes
