"""Generate hundreds of millions of skewed, low-rank ratings for benchmarks, in sorted rows.

Ratings are made in blocks of about a million. A user's items come from evenly spread points mapped through
the popularity curve of the user's group, so they arrive in order. Items that collide are moved to the next
free item. Memory beyond the result is a few blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from discreet.core.checks import integer, require
from discreet.core.errors import CannotWrite
from discreet.core.randomness import experiment_generator
from discreet.data.datasets.synthetic import numbered
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions

_BLOCK = 1 << 20
_FACTORS = 8
_GROUPS = 8
_CURVE_POINTS = 1 << 18
_SCHEMA = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Float32}
# Times begin in the year 2000 and span about six years. A user's times span about half a year.
_FIRST_TIME, _TIME_BITS, _OWN_TIME_BITS = 946_684_800, 27, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeShape:
    """Numbers of users, items, and ratings. `LargeShape.of` keeps the proportions of a film service."""

    n_users: int
    n_items: int
    n_ratings: int

    def __post_init__(self) -> None:
        integer("n_users", self.n_users, least=1)
        integer("n_items", self.n_items, least=2)
        integer("n_ratings", self.n_ratings, least=self.n_users)
        most = self.n_users * self.n_items // 4
        require(
            self.n_ratings <= most,
            "n_ratings",
            self.n_ratings,
            must=f"fill at most a quarter of the matrix, {most}",
        )

    @classmethod
    def of(cls, n_ratings: int) -> LargeShape:
        """Return 480,000 users and 17,770 items at 100 million ratings, fewer of both below."""
        integer("n_ratings", n_ratings, least=1_000)
        share = n_ratings / 100_000_000
        n_items = round(17_770 * min(1, share**0.35))
        # In proportion, few ratings would fill more than a quarter of the matrix.
        n_users = max(20, round(480_000 * share), -(-4 * n_ratings // n_items))
        return cls(n_users=n_users, n_items=n_items, n_ratings=n_ratings)


def large(shape: LargeShape, *, seed: int = 0) -> Interactions:
    """Return ratings of 1 to 5 stars as interactions.

    This needs 8 bytes per rating and a few blocks of memory.
    """
    plan = _Plan(shape, seed)
    items = np.empty(shape.n_ratings, dtype=np.int32)
    values = np.empty(shape.n_ratings, dtype=np.float32)
    done = 0
    for _, block_items, block_values in plan.blocks():
        here = slice(done, done + len(block_items))
        items[here], values[here] = block_items, block_values
        done = here.stop
    facts = PublicFacts(n_items=shape.n_items, low=1, high=5, step=1, n_users=shape.n_users)
    return numbered(plan.counts, items, values, facts=facts, name=f"large {shape.n_ratings}")


def write_large(path: str | Path, shape: LargeShape, *, seed: int = 0, times: bool = False) -> Path:
    """Write the same ratings block by block to a `.parquet` or `.csv` file: user, item, rating.

    `times` adds a column, time, in seconds and in no order.
    """
    target = Path(path)
    require(target.suffix in (".parquet", ".csv"), "path", target.name, must="end in .parquet or .csv")

    schema = {**_SCHEMA, "time": pl.Int64} if times else _SCHEMA

    def frames(*_: object) -> Iterator[pl.DataFrame]:
        # Times have their own draws, so ratings are the same with and without them.
        draw = experiment_generator(seed, "large times")
        starts = _FIRST_TIME + draw.integers(0, 1 << _TIME_BITS, shape.n_users)
        for rows, items, values in _Plan(shape, seed).blocks():
            block = {"user": rows, "item": items, "rating": values}
            if times:
                block["time"] = starts[rows] + draw.integers(0, 1 << _OWN_TIME_BITS, rows.size)
            yield pl.DataFrame(block, schema=schema)

    ratings = register_io_source(frames, schema=schema)
    try:
        if target.suffix == ".csv":
            ratings.sink_csv(target)
        else:
            ratings.sink_parquet(target)
    except OSError as error:
        raise CannotWrite(path=target, why=error.strerror) from error
    return target


class _Plan:
    """The latent structure, which generates the ratings in blocks of whole users."""

    def __init__(self, shape: LargeShape, seed: int) -> None:
        draw = experiment_generator(seed, "large", shape.n_users, shape.n_items, shape.n_ratings)
        self.shape, self._draw = shape, draw
        self.counts = _counts(shape, draw)
        fame = -0.8 * np.log(draw.permutation(shape.n_items) + 20.0)
        self._item_factors = draw.normal(0, 0.25, (shape.n_items, _FACTORS)).astype(np.float32)
        self._item_bias = draw.normal(3.6, 0.4, shape.n_items).astype(np.float32)
        self._group_factors = draw.normal(0, 1, (_GROUPS, _FACTORS))
        appeal = fame + 0.8 * self._group_factors @ self._item_factors.T
        self._curves = np.stack([_curve(row) for row in np.exp(appeal)])

    def blocks(
        self,
    ) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]]:
        """Yield the user, item and value of every rating, sorted by user and item."""
        ends = np.cumsum(self.counts)
        first = 0
        while first < self.shape.n_users:
            begin = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, begin + _BLOCK)))
            yield self._block(np.arange(first, min(last, self.shape.n_users), dtype=np.int32))
            first = last

    def _block(
        self, users: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        draw, counts = self._draw, self.counts[users]
        local = np.repeat(np.arange(len(users)), counts)
        groups = draw.integers(0, _GROUPS, len(users))
        items = self._items(counts, local, groups)
        factors = self._group_factors[groups] + draw.normal(0, 0.7, (len(users), _FACTORS))
        bias = draw.normal(0, 0.4, len(users))
        stars = np.einsum("ij,ij->i", factors.astype(np.float32)[local], self._item_factors[items])
        stars += self._item_bias[items] + bias.astype(np.float32)[local]
        stars += np.float32(0.8) * draw.standard_normal(len(stars), dtype=np.float32)
        return users[local], items, np.clip(np.rint(stars), 1, 5)

    def _items(
        self, counts: npt.NDArray[np.int64], local: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        starts = np.cumsum(counts) - counts
        position = np.arange(len(local)) - starts[local]
        points = (position + self._draw.random(len(local))) / counts[local]
        drawn = self._curves[groups[local], (points * _CURVE_POINTS).astype(np.int64)]
        # Items rise strictly if item minus position never falls; an offset keeps rows apart.
        apart = local * (4 * self.shape.n_items)
        slack = np.maximum.accumulate(drawn - position + apart) - apart
        return (np.minimum(slack, self.shape.n_items - counts[local]) + position).astype(np.int32)


def _counts(shape: LargeShape, draw: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the number of ratings of each user: log-normal, at least one, together exactly `n_ratings`."""
    most = max(1, shape.n_items // 2)
    share = draw.lognormal(0, 1.1, shape.n_users)
    share *= (shape.n_ratings - shape.n_users) / share.sum()
    counts = np.minimum(1 + share.astype(np.int64), most)
    while left := shape.n_ratings - int(counts.sum()):
        free = draw.permutation(np.flatnonzero(counts < most))
        if left < len(free):
            free, each = free[:left], 1
        else:
            each = left // len(free)
        counts[free] = np.minimum(counts[free] + each, most)
    return counts


def _curve(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """Return the item at each of many evenly spaced points of the cumulative popularity."""
    share = np.cumsum(weights)
    points = (np.arange(_CURVE_POINTS) + 0.5) / _CURVE_POINTS
    return np.minimum(np.searchsorted(share / share[-1], points), len(weights) - 1).astype(np.int32)
