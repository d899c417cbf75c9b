"""Replay a stream of ratings: cut it into releases, and ask models for what comes next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

import numpy as np

import discreet
from discreet.data.datasets import catalog
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.follow.settings import ONCE, Pace

DAY, MONTH = 86400, 30
DAYS = 365.0
# How interactions and ratings enter. Most users of MovieLens come once, which is public; those of
# MovieTweetings come back. Ratings do not fade, so nothing is kept back for a later time of the year.
DATASETS = {"movietweetings-100k": (Pace(), ONCE), "movielens-1m": (ONCE, ONCE)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Hold ratings in the order of their times, each pair of user and item once."""

    name: str
    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    times: np.ndarray
    scale: tuple[float, float]
    paces: tuple[Pace, Pace]
    period: float = 7.0

    @cached_property
    def release(self) -> np.ndarray:
        """Return the release at which each rating comes, counted from 0."""
        return ((self.times - self.times[0]) / (self.period * DAY)).astype(np.int64)

    @property
    def releases(self) -> int:
        """Return how many releases there are."""
        return int(self.release[-1]) + 1

    @property
    def first(self) -> int:
        """Return the first release that is asked for: after the first month, or half of a short stream."""
        return min(math.ceil(MONTH / self.period), self.releases // 2)

    @cached_property
    def n_items(self) -> int:
        """Return how many items there are."""
        return int(self.items.max()) + 1

    @cached_property
    def catalog(self) -> Vocabulary:
        """Return the items, declared from the start."""
        return Vocabulary.of(np.arange(self.n_items).tolist())

    def summary(self) -> dict[str, float | str]:
        """Return how large the stream is."""
        return {
            "dataset": self.name,
            "users": int(self.users.max()) + 1,
            "items": self.n_items,
            "ratings": int(self.users.size),
            "days": round(float(self.times[-1] - self.times[0]) / DAY, 1),
        }

    def facts(self, rated: bool) -> PublicFacts:
        """Return what is public."""
        low, high = self.scale if rated else (1.0, 1.0)
        return PublicFacts(n_items=self.n_items, low=low, high=high)

    def data(self, which: np.ndarray, rated: bool) -> Interactions:
        """Return the marked ratings, or choices, as data."""
        return Interactions.from_arrays(
            self.users[which],
            self.items[which],
            self.values[which] if rated else None,
            self.times[which],
            catalog=self.catalog,
            facts=self.facts(rated),
        )

    @cached_property
    def whole(self) -> dict[bool, Interactions]:
        """Return everything, as choices and as ratings."""
        everything = np.ones(self.users.size, dtype=bool)
        return {rated: self.data(everything, rated) for rated in (False, True)}

    def before(self, release: int, rated: bool) -> Interactions:
        """Return all ratings before a release."""
        data = self.whole[rated]
        known = data.where(data.times < self.times[0] + release * self.period * DAY)
        return known.select_users(np.diff(known.indptr) > 0)

    def date(self, release: int) -> str:
        """Return when a release is made."""
        moment = float(self.times[0] + release * self.period * DAY)
        return datetime.fromtimestamp(moment, UTC).isoformat()


def load(name: str, *, toy: bool) -> Stream:
    if toy:
        rng = np.random.default_rng(0)
        users, items = rng.integers(0, 20, 150), rng.integers(0, 15, 150)
        table = np.column_stack(
            [users, items, rng.integers(1, 6, 150), np.sort(rng.integers(0, 20 * DAY, 150))]
        )
        return arranged(name, table, (1.0, 5.0), (Pace(), Pace()))
    data = catalog.load(name)
    table = np.column_stack([data.rows(), data.items, data.values, data.times]).astype(np.int64)
    return arranged(name, table, (data.facts.low, data.facts.high), DATASETS[name])


def arranged(name: str, table: np.ndarray, scale: tuple[float, float], paces: tuple[Pace, Pace]) -> Stream:
    table = table[np.argsort(table[:, 3], kind="stable")]
    table = table[table[:, 3] < table[0, 3] + DAYS * DAY]
    _, first = np.unique(table[:, 0] << 32 | table[:, 1], return_index=True)
    table = table[np.sort(first)]
    users, items = (np.unique(table[:, k], return_inverse=True)[1] for k in (0, 1))
    return Stream(
        name=name,
        users=users,
        items=items,
        values=table[:, 2].astype(np.float32),
        times=table[:, 3],
        scale=scale,
        paces=paces,
    )


# Scoring: what comes at a release, asked of the model from before it.


def hits(stream: Stream, release: int, popularity: np.ndarray) -> np.ndarray:
    """Return of every active user whether the first new item is among the ten most popular not had before."""
    now = np.flatnonzero(stream.release == release)
    active, first = np.unique(stream.users[now], return_index=True)
    own = popularity[stream.items[now[first]]]
    ahead = (popularity[None, :] > own[:, None]).sum(axis=1)
    past = np.flatnonzero(stream.release < release)
    past = past[np.isin(stream.users[past], active)]
    who = np.searchsorted(active, stream.users[past])
    had = np.bincount(who, weights=popularity[stream.items[past]] > own[who], minlength=active.size)
    return ahead - had < 10


def personal_hits(stream: Stream, release: int, model: discreet.FittedModel) -> np.ndarray:
    """Return the same for a model with lists of each user's own."""
    histories, active, first = histories_at(stream, release, rated=False)
    worth = model.worth(histories, np.arange(active.size)).astype(np.float64)
    worth[histories.rows(), histories.items] = -np.inf
    own = worth[np.arange(active.size), stream.items[first]]
    return (worth > own[:, None]).sum(axis=1) < 10


def histories_at(stream: Stream, release: int, *, rated: bool):
    now = np.flatnonzero(stream.release == release)
    active, first = np.unique(stream.users[now], return_index=True)
    past = np.flatnonzero(stream.release < release)
    past = past[np.isin(stream.users[past], active)]
    histories = Interactions.from_arrays(
        stream.users[past],
        stream.items[past],
        stream.values[past] if rated else None,
        stream.times[past],
        catalog=stream.catalog,
        people=Vocabulary.of(active.tolist()),
        facts=stream.facts(rated),
    )
    return histories, active, now[first]


def squared_errors(stream: Stream, release: int, model: discreet.FittedModel) -> np.ndarray:
    histories, active, _ = histories_at(stream, release, rated=True)
    now = np.flatnonzero(stream.release == release)
    found = model.predict(histories, np.searchsorted(active, stream.users[now]), stream.items[now])
    return (found - stream.values[now]) ** 2
