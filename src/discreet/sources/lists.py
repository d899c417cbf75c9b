"""Recommend to all users in a folder of shards, shard by shard, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from discreet.core import CannotWrite, folder_aside
from discreet.core.errors import DiscreetError
from discreet.models import STARS, FittedModel, Wanted, recommend_rows, requested
from discreet.sources.cluster import Whereabouts, in_order, opened_once, same
from discreet.sources.errors import DifferentCatalog
from discreet.sources.shards import ShardFolder

# Lists are made in groups of users with about so many ratings.
_RATINGS_AT_A_TIME = 1 << 20


def shard_lists(
    model: FittedModel, shards: ShardFolder, number: int, wanted: Wanted
) -> Iterator[pl.DataFrame]:
    """Yield the lists of a shard's users, in groups."""
    for people in shards.people(number, _RATINGS_AT_A_TIME):
        yield recommend_rows(model, requested(model, people, wanted.now), wanted)


def write_lists(
    model: FittedModel, shards: ShardFolder, out: Path, wanted: Wanted, *, client: Any = None
) -> None:
    """Write lists to a Parquet file (user, rank, item, score, expected stars); none are kept.

    With a `client` its workers make the lists; they open the folder by its path.
    """
    if shards.catalog != model.catalog:
        raise DifferentCatalog
    schema = {
        "user": pl.String() if shards.manifest.text_ids else pl.Int64(),
        "rank": pl.Int64(),
        "item": pl.String() if model.catalog.is_text else pl.Int64(),
        "score": pl.Float64(),
        **({STARS: pl.Float64()} if model.scorer.predicts_stars else {}),
    }
    failed: list[BaseException] = []

    def frames(*_: object) -> Iterator[pl.DataFrame]:
        made = _here(model, shards, wanted) if client is None else _there(model, shards, wanted, client)
        try:
            for frame in made:
                yield frame.cast(schema)  # type: ignore[arg-type]
        # The writer would wrap it in its own error, and a sentence would become a traceback.
        except BaseException as error:
            failed.append(error)

    with folder_aside(out) as aside:
        try:
            register_io_source(frames, schema=schema).sink_parquet(aside / "lists.parquet")
            if failed:
                raise failed[0]
            (aside / "lists.parquet").replace(out)
        except DiscreetError:
            raise
        except OSError as error:
            raise CannotWrite(path=out, why=error.strerror) from error


def _here(model: FittedModel, shards: ShardFolder, wanted: Wanted) -> Iterator[pl.DataFrame]:
    for number in range(shards.n_shards):
        yield from shard_lists(model, shards, number, wanted)
        if shards.report is not None:
            shards.report(number + 1, shards.n_shards)


def _there(model: FittedModel, shards: ShardFolder, wanted: Wanted, client: Any) -> Iterator[pl.DataFrame]:
    """Yield lists that workers make, a few shards ahead of the writer."""
    sent, where = client.submit(same, model, pure=False), Whereabouts.of(shards)
    ahead = 2 * max(len(client.ncores()), 1)

    def begin(number: int) -> Any:
        return client.submit(_all_of, sent, where, number, wanted, pure=False)

    for done, made in enumerate(in_order(client, begin, shards.n_shards, ahead), start=1):
        yield from made
        if shards.report is not None:
            shards.report(done, shards.n_shards)


def _all_of(model: FittedModel, where: Whereabouts, number: int, wanted: Wanted) -> list[pl.DataFrame]:
    return list(shard_lists(model, opened_once(where), number, wanted))
