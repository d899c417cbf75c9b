"""Read new ratings in batches, from memory, from a folder of shards or on a Dask cluster.

Batches enter one after the other. A user's shards are one, so all of a user's new ratings are in one batch,
and what enters is bit by bit what one file would give. Should ids that differ in blanks put a user into two
shards, the second batch knows what the first one used: the bound on a user's year has for any batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core import Floats, instance, logger
from discreet.data import UNKNOWN, Interactions, PublicFacts, Vocabulary, refuse_unsound
from discreet.follow.errors import UndeclaredItems, UsersUnnamed
from discreet.sources import ClusterSource, ShardFolder, Whereabouts, in_order, opened_once

#: What new ratings may come from.
Source = Interactions | ShardFolder | ClusterSource
# Shards that are read ahead of the one that enters: more would fill the memory of who enters them.
_AHEAD = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """New ratings: users' ids as text, each once, and for every rating its user, item and value.

    Values run from -1 to 1 on the declared scale. `undeclared` counts ratings that were excluded because
    their items were not declared.
    """

    ids: list[str]
    users: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]
    values: Floats
    undeclared: int = 0

    @classmethod
    def of(
        cls, data: Interactions, catalog: Vocabulary, facts: PublicFacts, *, drop_unknown: bool = False
    ) -> Batch:
        """Read interactions; ratings of items that were not declared are rejected, or ignored.

        A rating whose value is not finite, or whose item the data's catalog lacks, is excluded by itself.
        """
        if data.users.is_positional:
            raise UsersUnnamed()
        places = catalog.index_of(data.catalog.series).astype(np.int64)
        usable = (data.items >= 0) & (data.items < places.size) & np.isfinite(data.values)
        items = np.full(data.items.size, UNKNOWN, dtype=np.int64)
        items[usable] = places[data.items[usable]]
        known = items >= 0
        unknown = int(np.count_nonzero(usable & ~known))
        if unknown and not drop_unknown:
            raise UndeclaredItems(count=unknown, of=items.size)
        named = canonical_ids(data.users.series)
        number = {one: place for place, one in enumerate(dict.fromkeys(named))}
        rows = np.array([number[one] for one in named], dtype=np.int64)[data.rows()]
        half = (facts.high - facts.low) / 2
        middle = (facts.high + facts.low) / 2
        values = (
            np.clip((data.values.astype(np.float64) - middle) / half, -1, 1) if half else np.zeros(items.size)
        )
        return cls(
            ids=list(number), users=rows[known], items=items[known], values=values[known], undeclared=unknown
        )


def canonical_ids(users: pl.Series | Sequence[str | int]) -> list[str]:
    """Return ids without blanks around them: the same user must be known again in every file."""
    named: list[str] = pl.Series(users).cast(pl.String).str.strip_chars().to_list()
    return named


def check_kind(data: object) -> None:
    """Raise an error for anything but a data source; ratings are not read."""
    if data is not None and not isinstance(data, ShardFolder | ClusterSource):
        instance("data", data, Interactions)


def check_source(data: object) -> None:
    """Raise an error for anything but a data source, and for impossible values; nothing is entered."""
    check_kind(data)
    if isinstance(data, Interactions):
        refuse_unsound(data)


def remark_on_weights(data: Interactions) -> None:
    """Log for the data owner that weights of repeated rows don't add up."""
    if data.schema is None or not data.schema.weight:
        return
    if data.facts.low == data.facts.high:
        logger.warning(
            "A continual release ignores how much rows weigh: weights only decide which rows enter."
        )
    elif data.schema.duplicates != "count":
        logger.warning(
            "A continual release doesn't add up weights: if several rows have the same user and item, the "
            "weight of one row is the rating. To use sums, add them up before you pass the file."
        )


def batches(
    data: Source | None, catalog: Vocabulary, facts: PublicFacts, *, drop_unknown: bool = False
) -> Iterator[Batch]:
    """Yield new ratings batch by batch; a folder of shards is read run by run, so memory stays bounded."""
    if isinstance(data, ClusterSource):
        yield from _on_workers(data, catalog, facts, drop_unknown)
    elif isinstance(data, ShardFolder):
        for shard in range(data.n_shards):
            for people in data.people(shard):
                yield Batch.of(people, catalog, facts, drop_unknown=drop_unknown)
    elif data is not None:
        yield Batch.of(data, catalog, facts, drop_unknown=drop_unknown)


def _on_workers(
    source: ClusterSource, catalog: Vocabulary, facts: PublicFacts, drop_unknown: bool
) -> Iterator[Batch]:
    """Have workers read shards, and yield what they found, in the order of shards.

    The book of what entered stays with anyone who follows the year, so batches come to it, not sums.
    """
    where = Whereabouts.of(source.shards)

    def begin(shard: int) -> Any:
        return source.client.submit(_read_shard, where, shard, catalog, facts, drop_unknown, pure=False)

    for made in in_order(source.client, begin, source.shards.n_shards, _AHEAD):
        yield from made


def _read_shard(
    where: Whereabouts, number: int, catalog: Vocabulary, facts: PublicFacts, drop_unknown: bool
) -> list[Batch]:
    """Return the batches of one shard, on a worker."""
    runs = opened_once(where).people(number)
    return [Batch.of(one, catalog, facts, drop_unknown=drop_unknown) for one in runs]
