"""Lists for everybody in a folder of shards, written as they are made."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.checks import ParameterError
from discreet.commands.output.lists import is_lists
from discreet.files import refuse_output

if TYPE_CHECKING:
    from discreet.models.fitted import FittedModel


def write_shard_lists(
    fitted: FittedModel,
    file: Path,
    folder: str,
    out: Path,
    k: int,
    limits: dict[str, Any],
    on: str | None,
    *,
    force: bool,
) -> int:
    """Write the lists, on a cluster if there is one; return how many people were asked for."""
    from discreet.crowds.cluster import on_cluster
    from discreet.crowds.connecting import connected
    from discreet.crowds.lists import Wanted, write_lists
    from discreet.models.lists import closed_items
    from discreet.models.progress import terminal_progress
    from discreet.shards.folder import open_shards

    if out.suffix != ".parquet":
        raise ParameterError("--out must end in .parquet: lists of a folder of shards are a Parquet file.")
    refuse_output(out, force=force, kind="file of lists", is_ours=is_lists, inputs=[file])
    closed = closed_items(fitted, limits["among"], limits["exclude"])
    shards = open_shards(folder)
    with terminal_progress(None) as show, nullcontext() if on is None else connected(on) as client:
        shards = replace(shards, report=lambda done, total: show("shards", done, total))
        if client is not None:
            on_cluster(shards, client)
        said = {name: limits[name] for name in ("exclude_seen", "rank_by", "diversify")}
        write_lists(fitted, shards, out, Wanted(k=k, closed=closed, **said), client=client)
    return shards.n_users
