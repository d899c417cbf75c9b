"""Generate up to a billion skewed ratings with many factors for benchmarks, in sorted rows or as a log.

Ratings are made in blocks of about a million. A user's items come from evenly spread points mapped through
the popularity curve of the user's group, so they arrive in order. Items that collide are moved to the next
free item. Memory beyond the result is a few blocks. As in files of real services, factors get weaker one
after the other, catalogs have a long tail, and some items are chosen earlier than others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from discreet.core import CannotWrite, experiment_generator, integer, require
from discreet.data import Interactions, PublicFacts, numbered

_BLOCK = 1 << 20
_FACTORS = 40
_GROUPS = 32
_CURVE_POINTS = 1 << 17
# Predictions are made for so many ratings at a time, which stay in the processor's cache.
_ROWS = 1 << 14
# A log has so many stretches of time. Its files have so many rows.
_STRETCHES = 16
_FILE_ROWS = 1 << 22
_SCHEMA = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Float32}
# Times begin in the year 2000 and span about six years. A user's times span about half a year.
_FIRST_TIME, _TIME_BITS, _OWN_TIME_BITS = 946_684_800, 27, 24
# Part of a time that the item determines, so that users choose items in a similar order.
_ITEM_PART = 0.3


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
        """Return 480,000 users and 17,770 items at 100 million ratings; 2 million and 100,000 at 10^9."""
        integer("n_ratings", n_ratings, least=1_000)
        share = n_ratings / 100_000_000
        n_items = round(17_770 * share ** (0.35 if share < 1 else np.log10(100_000 / 17_770)))
        n_users = round(480_000 * share ** (1 if share < 1 else np.log10(2_000_000 / 480_000)))
        # In proportion, few ratings would fill more than a quarter of the matrix.
        n_users = max(20, n_users, -(-4 * n_ratings // n_items))
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
        for frame in _timed(shape, seed):
            yield frame.select(*schema)

    ratings = register_io_source(frames, schema=schema)
    try:
        if target.suffix == ".csv":
            ratings.sink_csv(target)
        else:
            ratings.sink_parquet(target)
    except OSError as error:
        raise CannotWrite(path=target, why=error.strerror) from error
    return target


def write_log(folder: str | Path, shape: LargeShape, *, seed: int = 0) -> Path:
    """Write the same ratings, with times, to a folder of Parquet files in the order of time.

    A user's rows are in many files. Memory is at most one file for each stretch of time, about 1.4 GB.
    """
    target = Path(folder)
    target.mkdir(parents=True)
    whole = (1 << _TIME_BITS) + (1 << _OWN_TIME_BITS)
    waiting: list[list[pl.DataFrame]] = [[] for _ in range(_STRETCHES)]
    numbers = iter(range(shape.n_ratings))

    def write(frames: list[pl.DataFrame]) -> None:
        pl.concat(frames).sort("time").write_parquet(target / f"part-{next(numbers):05d}.parquet")

    for frame in _timed(shape, seed):
        stretch = (pl.col("time") - _FIRST_TIME) * _STRETCHES // whole
        for (number,), some in frame.group_by(stretch, maintain_order=True):
            waiting[number].append(some)
            if sum(map(len, waiting[number])) >= _FILE_ROWS:
                write(waiting[number])
                waiting[number] = []
    for frames in filter(None, waiting):
        write(frames)
    return target


def _timed(shape: LargeShape, seed: int) -> Iterator[pl.DataFrame]:
    """Yield the ratings with times, which have their own draws: ratings are the same without them."""
    draw = experiment_generator(seed, "large times")
    starts = _FIRST_TIME + draw.integers(0, 1 << _TIME_BITS, shape.n_users)
    phases = _ITEM_PART * draw.random(shape.n_items, dtype=np.float32)
    for rows, items, values in _Plan(shape, seed).blocks():
        part = (1 - _ITEM_PART) * draw.random(rows.size, dtype=np.float32) + phases[items]
        times = starts[rows] + (part * (1 << _OWN_TIME_BITS)).astype(np.int64)
        yield pl.DataFrame(
            {"user": rows, "item": items, "rating": values, "time": times},
            schema={**_SCHEMA, "time": pl.Int64},
        )


class _Plan:
    """The latent structure, which generates the ratings in blocks of whole users."""

    def __init__(self, shape: LargeShape, seed: int) -> None:
        draw = experiment_generator(seed, "large", shape.n_users, shape.n_items, shape.n_ratings)
        self.shape, self._draw = shape, draw
        self.counts = _counts(shape, draw)
        # The top item then has 20 to 45 times the mean, the median item a sixth to a fifth of it.
        fame = -2.0 * np.log(draw.permutation(shape.n_items) + shape.n_items / 40)
        strengths = np.arange(1, _FACTORS + 1) ** -0.5
        strengths *= 0.7 / np.sqrt((strengths**2).sum())
        factors = draw.normal(0, 1, (shape.n_items, _FACTORS)) * strengths
        self._item_factors = factors.astype(np.float32)
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
        stars = self._preferences(factors.astype(np.float32), local, items)
        stars += self._item_bias[items] + bias.astype(np.float32)[local]
        stars += np.float32(0.8) * draw.standard_normal(len(stars), dtype=np.float32)
        return users[local], items, np.clip(np.rint(stars), 1, 5)

    def _preferences(
        self, factors: npt.NDArray[np.float32], local: npt.NDArray[np.int64], items: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float32]:
        found = np.empty(len(items), dtype=np.float32)
        for start in range(0, len(items), _ROWS):
            some = slice(start, start + _ROWS)
            np.einsum("ij,ij->i", factors[local[some]], self._item_factors[items[some]], out=found[some])
        return found

    def _items(
        self, counts: npt.NDArray[np.int64], local: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int32]:
        starts = np.cumsum(counts) - counts
        position = np.arange(len(local)) - starts[local]
        points = (position + self._draw.random(len(local))) / counts[local]
        below = (points * _CURVE_POINTS).astype(np.int64)
        curves, group = self._curves, groups[local]
        step = curves[group, below + 1] - curves[group, below]
        drawn = (curves[group, below] + (points * _CURVE_POINTS - below) * step).astype(np.int64)
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


def _curve(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return where among the items each of many evenly spaced points of the cumulative popularity is."""
    share = np.append(0.0, np.cumsum(weights))
    points = np.linspace(0, share[-1], _CURVE_POINTS + 1)
    places = np.interp(points, share, np.arange(share.size))
    last = np.nextafter(np.float32(len(weights)), np.float32(0))
    found: npt.NDArray[np.float32] = np.minimum(places.astype(np.float32), last)
    return found
