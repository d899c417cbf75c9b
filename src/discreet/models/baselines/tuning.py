"""Tune baselines on a validation part, and state that they are not private.

What is hidden follows from a hash of people's ids, not from their order, so that shuffled data give the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats, Indices, Singles
from discreet.core.checks import require
from discreet.data.bounding import hash_ids, mix
from discreet.data.encoding import cells_of_rows
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.estimator import Estimator, check_budget
from discreet.privacy.guarantee import Guarantee, Neighbors, Trust, Unit

Draws = npt.NDArray[np.uint64]

# A search looks at this many ratings at most, of people drawn evenly: its time does not grow with the data.
_MOST_RATINGS = 1_000_000
# Of this many people a choice is hidden, at most.
_MOST_PEOPLE = 4_000
_DEPTH = 10


def sample_users(data: Interactions, most_ratings: int, seed: int) -> Interactions:
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


class HiddenInteractions(NamedTuple):
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


def hide_interactions(data: Interactions, seed: int) -> HiddenInteractions | None:
    """Hide one choice of each of some people who made at least two; None if nobody did.

    It is the latest where there are times: a bar is asked what comes next.
    """
    part = sample_users(data, _MOST_RATINGS, seed)
    several = np.flatnonzero(np.diff(part.indptr) > 1)
    if not several.size:
        return None
    first = np.argsort(_draws_of_people(part, seed)[several])[:_MOST_PEOPLE]
    people = np.sort(several[first])
    cells, hidden = cells_of_rows(part.indptr, people), np.zeros(part.n_ratings, dtype=np.bool_)
    later = np.zeros(cells.size) if part.times is None else ~part.times[cells]
    order = np.lexsort((_draws_of_cells(part, seed)[cells], later, part.rows()[cells]))
    hidden[cells[order[_starts(part, people)]]] = True
    return HiddenInteractions(part.where(~hidden), people, part.items[hidden].astype(np.int64))


def _starts(data: Interactions, people: Indices) -> Indices:
    """Return where each of these people's ratings start once they stand row after row."""
    sizes = np.diff(data.indptr)[people]
    return np.cumsum(sizes) - sizes


Point = dict[str, float]


class SearchDirection(NamedTuple):
    """Say how a setting is walked along: times `ratio` or over it, never outside `least` and `most`."""

    ratio: float
    least: float
    most: float


def walk(start: Point, directions: Mapping[str, SearchDirection], loss: Callable[[Point], float]) -> Point:
    """Return the point with the least loss that is found by walking each direction in turn, twice.

    Each point is tried once. The walk turns around after the first step that does not help: losses of
    regularized models have one valley in each setting.
    """
    tried: dict[tuple[float, ...], float] = {}

    def cost(point: Point) -> float:
        key = tuple(point.values())
        if key not in tried:
            tried[key] = loss(point)
        return tried[key]

    best = dict(start)
    for _ in range(2):
        for name, direction in directions.items():
            best = _along(best, name, direction, cost)
    return best


def _along(best: Point, name: str, direction: SearchDirection, cost: Callable[[Point], float]) -> Point:
    for ratio in (direction.ratio, 1 / direction.ratio):
        start = best
        while direction.least <= (value := best[name] * ratio) <= direction.most:
            step = {**best, name: value}
            if cost(step) >= cost(best):
                break
            best = step
        if best is not start:
            break
    return best


def only_without_privacy(estimator: Estimator) -> None:
    """Refuse every epsilon but infinity."""
    check_budget(estimator.epsilon, estimator.delta, gaussian=False)
    require(
        math.isinf(estimator.epsilon),
        "epsilon",
        estimator.epsilon,
        f"cannot be kept by {estimator.name}, which has no private version",
        "Pass math.inf (--epsilon inf), or choose another model.",
    )


def no_promise(facts: PublicFacts) -> Guarantee:
    """Return the promise of a bar: none."""
    return Guarantee(
        epsilon=math.inf,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=facts.assumptions(),
    )
