"""Tune baselines on a validation part, and state that they are not private.

The hidden part depends on a hash of user ids, not on their order, so that shuffled data give the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.core import Floats, Indices, Singles
from discreet.data import Interactions, PublicFacts, cells_of_rows, hash_ids, mix
from discreet.models.errors import NoPrivateVersion
from discreet.models.estimator import Estimator, check_budget
from discreet.privacy import Guarantee, Neighbors, Trust, Unit, assumptions_of

Draws = npt.NDArray[np.uint64]

# A search uses about this many ratings at most, of a uniform sample of users: its time is bounded.
_MOST_RATINGS = 1_000_000
# At most this many users have one interaction hidden.
_MOST_USERS = 4_000
_DEPTH = 10


def sample_users(data: Interactions, most_ratings: int, seed: int) -> Interactions:
    """Return all users, or a uniform sample of users who have about `most_ratings` together."""
    if data.n_ratings <= most_ratings:
        return data
    order = np.argsort(_user_draws(data, seed))
    upto = int(np.searchsorted(np.cumsum(np.diff(data.indptr)[order]), most_ratings)) + 1
    return data.select_users(np.sort(order[:upto]))


def _user_draws(data: Interactions, seed: int) -> Draws:
    return mix(hash_ids(data.users) ^ np.uint64(seed))


def interaction_draws(data: Interactions, seed: int) -> Draws:
    """Return a hash of each interaction that depends on the ids of its user and item and the seed only."""
    return mix(_user_draws(data, seed)[data.rows()] ^ mix(data.items.astype(np.uint64)))


class HiddenInteractions(NamedTuple):
    """Interactions to train on, and one hidden interaction of each of some users."""

    train: Interactions
    people: Indices
    items: Indices

    def loss(self, scores: Singles) -> float:
        """Return one minus the NDCG@10 of the hidden interactions; `scores` has a row for each user."""
        seen = self.train.select_users(self.people)
        own = scores[np.arange(self.people.size), self.items]
        scores = scores.copy()
        scores[seen.rows(), seen.items] = -np.inf
        above = np.count_nonzero(scores > own[:, None], axis=1)
        level = np.count_nonzero(scores == own[:, None], axis=1)
        rank: Floats = above + (level - 1) / 2
        return 1 - float(np.where(rank < _DEPTH, 1 / np.log2(rank + 2), 0.0).mean())


def hide_interactions(data: Interactions, seed: int) -> HiddenInteractions | None:
    """Hide one interaction of each of some users who have at least two; return None if no user has.

    Where the data have times it is the latest one, so that the baseline predicts what comes next.
    """
    part = sample_users(data, _MOST_RATINGS, seed)
    several = np.flatnonzero(np.diff(part.indptr) > 1)
    if not several.size:
        return None
    first = np.argsort(_user_draws(part, seed)[several])[:_MOST_USERS]
    people = np.sort(several[first])
    cells, hidden = cells_of_rows(part.indptr, people), np.zeros(part.n_ratings, dtype=np.bool_)
    later = np.zeros(cells.size) if part.times is None else ~part.times[cells]
    order = np.lexsort((interaction_draws(part, seed)[cells], later, part.rows()[cells]))
    # The first of each user's rows, one user after the other.
    sizes = np.diff(part.indptr)[people]
    hidden[cells[order[np.cumsum(sizes) - sizes]]] = True
    return HiddenInteractions(part.where(~hidden), people, part.items[hidden].astype(np.int64))


Point = dict[str, float]


class SearchDirection(NamedTuple):
    """How a setting is searched: multiplied or divided by `ratio`, between `least` and `most`."""

    ratio: float
    least: float
    most: float


def walk(start: Point, directions: Mapping[str, SearchDirection], loss: Callable[[Point], float]) -> Point:
    """Return the best point found by coordinate descent: each direction in turn, twice.

    Each point is tried once. A search along a direction turns around after the first step that does not help:
    the loss of a regularized model has one minimum in each setting.
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


def no_promise(facts: PublicFacts) -> Guarantee:
    """Return the guarantee of a baseline: none."""
    return Guarantee(
        epsilon=math.inf,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        assumes=assumptions_of(facts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Estimator):
    """A method without privacy, to compare with."""

    epsilon: float = math.inf
    delta: float = 0.0

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the guarantee: none."""
        return no_promise(facts)

    def _check_budget(self) -> None:
        """Raise for every epsilon but infinity."""
        check_budget(self.epsilon, self.delta, gaussian=False)
        if not math.isinf(self.epsilon):
            raise NoPrivateVersion(model=self.name)
