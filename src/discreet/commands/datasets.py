"""`discreet datasets`: the known data, and fetching it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from discreet.commands.options.completing import complete_dataset
from discreet.commands.options.declared import AsJson
from discreet.commands.output.printing import emit, show


def datasets(
    action: Annotated[str | None, typer.Argument(help="`get` to fetch a dataset.")] = None,
    name: Annotated[
        str | None, typer.Argument(help="The dataset to get.", autocompletion=complete_dataset)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the known datasets, or `get NAME` to fetch one into the cache."""
    from discreet.data.datasets import catalog

    if action is None:
        rows = catalog.describe()
        if as_json:
            emit({"datasets": rows})
        else:
            _show_datasets(rows)
        return
    if action != "get" or name is None:
        raise typer.BadParameter("say `discreet datasets` or `discreet datasets get NAME`.")
    from discreet.models.progress import terminal_progress

    with terminal_progress(None) as progress:
        path = catalog.get(name, progress=progress)
    if as_json:
        emit({"name": name, "path": str(path)})
    else:
        terms = catalog.DATASETS[name].terms
        show(f"{name} is at {path}\nTerms: {terms}")


def _show_datasets(rows: list[dict[str, object]]) -> None:
    table = Table("dataset", "users", "items", "ratings", "scale", "here")
    for column in (0, 3):
        table.columns[column].no_wrap = True
    for row in rows:
        counts = (f"{row[key]:,}" for key in ("users", "items", "ratings"))
        here = str(row["here"]) if row["here"] in ("no", "built in") else "yes"
        table.add_row(str(row["name"]), *counts, str(row["scale"]), here)
    show(table, "`discreet datasets get NAME` fetches one and shows its terms.")
