"""Open DATA as a data source: in memory, from shards, or from shards on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options.declared import Reading
from discreet.cli.output.printing import remark
from discreet.core.checks import ParameterError, integer

if TYPE_CHECKING:
    from discreet.distributed.shards import ShardFolder
    from discreet.statistics.data_source import DataSource

On = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="Process a folder of shards on a cluster: dask://local or dask://HOST:PORT.",
        rich_help_panel="More",
    ),
]
# The options that still apply to a folder of shards; all others were fixed when it was made.
_LATER = ("people", "max_per_user", "implicit")


@contextmanager
def opened(
    source: str, reading: Reading, name: str | None, on: str | None, show: Callable[[str, int, int], None]
) -> Iterator[DataSource]:
    """Yield the data source of a path or a dataset's name; sums over shards report progress to `show`."""
    from discreet.distributed.shards import is_shard_folder

    if not is_shard_folder(source):
        if on is not None:
            raise ParameterError("--on needs a folder of shards. Make one with `discreet shard`.")
        yield reading.load(source, name)
        return
    shards = shards_of(source, reading, name)
    shards = replace(shards, report=lambda done, total: show("shards", done, total))
    if on is None:
        yield shards
        return
    from discreet.distributed.cluster import on_cluster
    from discreet.distributed.connection import connected

    with connected(on) as client:
        remark(f"discreet: the cluster's dashboard is at {client.dashboard_link}")
        yield on_cluster(shards, client)


def shards_of(folder: str, reading: Reading, name: str | None) -> ShardFolder:
    """Open a folder of shards with the present options; refuse options fixed when it was made."""
    from discreet.distributed.shards import open_shards

    for field in fields(reading):
        if field.name not in _LATER and getattr(reading, field.name) != field.default:
            option = "--" + field.name.replace("_", "-")
            raise ParameterError(f"{option} was fixed when {folder} was made. Pass it to `discreet shard`.")
    shards = open_shards(folder)
    facts = shards.facts
    if reading.implicit and facts.low != facts.high:
        raise ParameterError(
            f"{folder} holds ratings. For implicit feedback make it with `discreet shard --implicit`."
        )
    if reading.people is not None:
        facts = replace(facts, n_users=integer("--people", reading.people, least=1))
    if reading.max_per_user is not None:
        facts = facts.with_cap(integer("--max-per-user", reading.max_per_user, least=1))
    return replace(shards, facts=facts, called=name)
