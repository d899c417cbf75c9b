"""`discreet models` and `discreet datasets`: list models and datasets."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from discreet.cli.options.declared import AsJson
from discreet.cli.options.parsing import complete_dataset
from discreet.cli.output.printing import emit, show


def models(as_json: AsJson = False) -> None:
    """List all models: what they protect, against whom, and what they learn from."""
    from discreet.recipes import describe_models

    rows = describe_models()
    if as_json:
        emit({"models": [{**row, "last_audit": _last_audit(row["name"])} for row in rows]})
        return
    table = Table("model", "protects", "against", "learns from", show_lines=True)
    table.columns[3].no_wrap = True
    for row in rows:
        what = Text.assemble((row["name"], "bold"), "\n", row["summary"])
        table.add_row(what, row["unit"], row["trust"], row["feedback"].replace(" or ", "\nor "))
    show(table)


def _last_audit(name: str) -> dict[str, Any] | None:
    from discreet.audit.last_audits import last_audit

    found = last_audit(name)
    return None if found is None else found.to_json()


def datasets(
    action: Annotated[str | None, typer.Argument(help="`get` downloads a dataset.")] = None,
    name: Annotated[
        str | None, typer.Argument(help="The dataset to download.", autocompletion=complete_dataset)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the known datasets, or download one into the cache with `get NAME`."""
    from discreet.data.datasets import catalog

    if action is None:
        rows = catalog.describe()
        if as_json:
            emit({"datasets": rows})
        else:
            _show_datasets(rows)
        return
    if action != "get" or name is None:
        raise typer.BadParameter("use `discreet datasets` or `discreet datasets get NAME`.")
    from discreet.core.progress import terminal_progress

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
    show(table, "`discreet datasets get NAME` downloads one and shows its terms.")
