"""Make lists for everybody in a folder of shards, shard by shard, here or on a cluster."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from discreet.arrays import Indices
from discreet.checks import DataError, FileError
from discreet.crowds.cluster import opened_once
from discreet.models.fitted import FittedModel
from discreet.models.lists import recommend_rows
from discreet.shards.folder import ShardFolder

# Lists are made for the people behind so many ratings at a time.
_RATINGS_AT_A_TIME = 1 << 20


def write_lists(
    model: FittedModel,
    shards: ShardFolder,
    out: Path,
    k: int = 10,
    *,
    exclude_seen: bool = True,
    closed: Indices | None = None,
    client: Any = None,
) -> None:
    """Write everybody's `k` best items to a Parquet file: user, rank, item, score; lists are not kept.

    With a `client` its workers make the lists; they see the folder by its path.
    """
    if shards.catalog != model.catalog:
        raise DataError("The shards name another catalog than the model was fitted on.")
    closed = np.zeros(0, dtype=np.int64) if closed is None else closed
    schema = {
        "user": pl.String() if shards.manifest.text_ids else pl.Int64(),
        "rank": pl.Int64(),
        "item": pl.String() if model.catalog.is_text else pl.Int64(),
        "score": pl.Float64(),
    }
    made = _here if client is None else _there

    def frames(*_: object) -> Iterator[pl.DataFrame]:
        for frame in made(model, shards, k, exclude_seen, closed, client):
            yield frame.cast(schema)  # type: ignore[arg-type]

    with tempfile.TemporaryDirectory(dir=out.absolute().parent, prefix=".discreet-") as aside:
        try:
            register_io_source(frames, schema=schema).sink_parquet(Path(aside) / "lists.parquet")
            (Path(aside) / "lists.parquet").replace(out)
        except OSError as error:
            raise FileError(f"{out} cannot be written: {error.strerror}.") from error


def lists_of(
    model: FittedModel, shards: ShardFolder, number: int, k: int, exclude_seen: bool, closed: Indices
) -> Iterator[pl.DataFrame]:
    """Yield the lists of a shard's people, some at a time."""
    for people in shards.people(number, _RATINGS_AT_A_TIME):
        yield recommend_rows(model, people, k, exclude_seen=exclude_seen, closed=closed)


def _here(
    model: FittedModel, shards: ShardFolder, k: int, exclude_seen: bool, closed: Indices, client: None
) -> Iterator[pl.DataFrame]:
    for number in range(shards.n_shards):
        yield from lists_of(model, shards, number, k, exclude_seen, closed)
        if shards.report is not None:
            shards.report(number + 1, shards.n_shards)


def _there(
    model: FittedModel, shards: ShardFolder, k: int, exclude_seen: bool, closed: Indices, client: Any
) -> Iterator[pl.DataFrame]:
    """Let workers make lists, a few shards ahead of what is written."""
    sent = client.submit(_same, model, pure=False)
    folder = str(shards.folder.resolve())
    ahead = 2 * max(len(client.scheduler_info()["workers"]), 1)
    waiting: deque[Any] = deque()
    for number in range(shards.n_shards):
        waiting.append(client.submit(_all_of, sent, folder, number, k, exclude_seen, closed, pure=False))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
        if shards.report is not None:
            shards.report(number + 1, shards.n_shards)
    while waiting:
        yield waiting.popleft().result()


def _same(model: FittedModel) -> FittedModel:
    return model


def _all_of(
    model: FittedModel, folder: str, number: int, k: int, exclude_seen: bool, closed: Indices
) -> pl.DataFrame:
    return pl.concat(lists_of(model, opened_once(folder), number, k, exclude_seen, closed))
