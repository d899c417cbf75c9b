"""Show lists of items as a table or JSON, and write lists for many users to a file."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.errors import WrongForm
from discreet.core.files import refuse_output, write_whole

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from discreet.models.fitted import FittedModel

Listed = Sequence[tuple[str | int, float]]
Column = tuple[str, Sequence[float | None]]
Shown = tuple[str, Sequence[float | str | None]]
Beside = Mapping[str | int, dict[str, str]]
_KIND = "file of lists"
# A table on a terminal of 80 columns fits this many public columns.
_MOST_SHOWN = 2


def public_columns(titles: Path | None, model: FittedModel, items: Iterable[str | int]) -> Beside:
    """Return the public columns shown next to item IDs: from the given table, else from the model."""
    if titles is None:
        return model.titles(items)
    from discreet.data.item_tables import read_public_table

    return read_public_table(titles, model.catalog)


def items_json(listed: Listed, beside: Beside, more: Column | None = None) -> list[dict[str, Any]]:
    """Return a list of items as JSON objects. Public columns are last and replace none of ours.

    `more` is a column next to the score. If it has no value for any item, it is omitted.
    """
    name, values = ("", [None] * len(listed)) if more is None else more
    return [
        {**beside.get(item, {}), "item": item, "score": score, **({} if value is None else {name: value})}
        for (item, score), value in zip(listed, values, strict=True)
    ]


def items_table(
    listed: Listed, beside: Beside, score: str = "score", more: Shown | None = None, digits: int = 3
) -> Table:
    """Return a list of items as a table. IDs are folded, never cut. `more` is a column next to the score."""
    from rich.table import Table

    names = list(next(iter(beside.values()), {}))[:_MOST_SHOWN]
    known = more is not None and any(value is not None for value in more[1])
    table = Table("#", "item", *names, score, *([more[0]] if more is not None and known else []))
    for column in table.columns[1 : 2 + len(names)]:
        column.overflow = "fold"
    for rank, (item, value) in enumerate(listed, start=1):
        row = beside.get(item, {})
        extra = [_number(more[1][rank - 1])] if more is not None and known else []
        cells = (row.get(name, "") for name in names)
        table.add_row(str(rank), str(item), *cells, f"{value:.{digits}f}", *extra)
    return table


def _number(value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return "-" if value is None else f"{value:.2f}"


def write_lists(lists: pl.DataFrame, out: Path, beside: Beside, force: bool, inputs: Sequence[Path]) -> int:
    """Write the lists of many users and return how many users have a list."""
    import polars as pl

    if out.suffix not in (".csv", ".parquet"):
        raise WrongForm(option="--out", form="NAME.csv or NAME.parquet")
    refuse_output(out, force=force, kind=_KIND, is_ours=is_lists, inputs=inputs)
    if beside:
        rows = [
            {"item": item, **{f"item_{name}": text for name, text in row.items()}}
            for item, row in beside.items()
        ]
        lists = lists.join(pl.DataFrame(rows), on="item", how="left", maintain_order="left")
    content = io.BytesIO()
    if out.suffix == ".parquet":
        lists.write_parquet(content)
    else:
        lists.write_csv(content)
    write_whole(out, content.getvalue())
    return int(lists["user"].n_unique())


def is_lists(path: Path) -> bool:
    """Return whether a file has lists that this command wrote."""
    import polars as pl

    try:
        scan = pl.scan_parquet if path.suffix == ".parquet" else pl.scan_csv
        return scan(path, glob=False).collect_schema().names()[:4] == ["user", "rank", "item", "score"]
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return False


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
    """Write the lists of a folder of shards, on a cluster if given. Return the number of users."""
    from discreet.core.progress import terminal_progress
    from discreet.models.lists import closed_items
    from discreet.sources.cluster import on_cluster
    from discreet.sources.connection import connected
    from discreet.sources.lists import Wanted, write_lists
    from discreet.sources.shards import open_shards

    if out.suffix != ".parquet":
        raise WrongForm(option="--out", form="NAME.parquet")
    refuse_output(out, force=force, kind="file of lists", is_ours=is_lists, inputs=[file])
    closed = closed_items(fitted, limits["among"], limits["exclude"])
    shards = open_shards(folder)
    with terminal_progress(None) as show, nullcontext() if on is None else connected(on) as client:
        shards = replace(shards, report=lambda done, total: show("shards", done, total))
        if client is not None:
            on_cluster(shards, client)
        options = {name: limits[name] for name in ("exclude_seen", "rank_by", "diversify", "now")}
        write_lists(fitted, shards, out, Wanted(k=k, closed=closed, **options), client=client)
    return shards.n_users
