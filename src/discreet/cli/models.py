"""`discreet models` and `discreet data datasets`: list models and datasets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from discreet.cli import lib
from discreet.cli.errors import WrongForm
from discreet.cli.messages import usage_error
from discreet.cli.options.parsing import complete_dataset
from discreet.cli.output.printing import Output, show
from discreet.core import ESTIMATORS, FIRST, terminal_progress

Row = dict[str, str | None]


# Models without privacy that the short list also shows, for comparison.
_COMPARED = ("ease", "als")


def models(*, everything: Annotated[bool, "--all"] = False) -> Output:
    """List the recommended models, or all models: what they protect, and what they learn from.

    Options:
        everything: List all models, including those of papers, and all baselines.
    """
    rows = described()
    audited = [{**row, "last_audit": _last_audit(str(row["name"]))} for row in rows]
    return Output({"models": audited}, lambda: _show_models(rows, everything=everything))


def _show_models(rows: list[Row], *, everything: bool) -> None:
    for title, some in _groups(rows) if everything else _short_list(rows):
        table = Table("model", "protects", "against", "learns from", show_lines=True, title=title)
        table.columns[0].width, table.columns[3].no_wrap = 41, True
        for row in some:
            also = f"\nIn the paper: {row['also']}." if row["also"] else ""
            what = Text.assemble((str(row["name"]), "bold"), "\n", str(row["summary"]), also)
            learns = str(row["feedback"]).replace(" or ", "\nor ")
            table.add_row(what, row["unit"], row["trust"], learns)
        show(table)
    if not everything:
        show(f"`discreet models --all` lists all {len(rows)} models, by paper.")


def _short_list(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the models to use first, and two to compare with."""
    by_name = {row["name"]: row for row in rows}
    yield "To use first", [by_name[name] for name in FIRST]
    yield "To compare with, not private", [by_name[name] for name in _COMPARED]


def _groups(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield titles and models: those to use first, then by paper, then the others."""
    by_name = {row["name"]: row for row in rows}
    yield "To use first", [by_name[name] for name in FIRST]
    for paper, title in lib.PAPERS.items():
        own = [row for row in rows if (row["group"], row["paper"]) == ("papers", paper)]
        yield f"{paper}: {title}", own
    for group, title in (("baselines", "Baselines, not private"), ("others", "Models of other packages")):
        some = [row for row in rows if row["group"] == group]
        if some:
            yield title, some


def described() -> list[Row]:
    """Return `describe_models()`. If all models are our own, a table answers and no model is loaded."""
    if all(ESTIMATORS.package(name) == "discreet" for name in ESTIMATORS):
        return own_models()

    return lib.describe_models()


def own_models() -> list[Row]:
    """Return the descriptions of the models of this package."""
    text = resources.files("discreet.cli").joinpath("models.json").read_text(encoding="utf8")
    kept: list[Row] = json.loads(text)
    return kept


def _last_audit(name: str) -> dict[str, Any] | None:
    found = lib.last_audit(name)
    return None if found is None else found.to_json()


def datasets(
    action: str | None = None,
    name: Annotated[str | None, typer.Argument(autocompletion=complete_dataset)] = None,
) -> Output:
    """List the known datasets, or download one into the cache with `get NAME`.

    Options:
        action: `get` downloads a dataset.
        name: The dataset to download.
    """
    if action is None:
        rows = lib.catalog.describe()
        return Output({"datasets": rows}, lambda: _show_datasets(rows))
    if action != "get" or name is None:
        raise usage_error(
            WrongForm(option="The argument", form="`discreet data datasets get NAME`", given=action)
        )

    with terminal_progress(None) as progress:
        path = lib.catalog.get(name, progress=progress)
    terms = lib.catalog.DATASETS[name].terms
    return Output({"name": name, "path": str(path)}, f"{name} is at {path}\nTerms: {terms}")


def _show_datasets(rows: list[dict[str, object]]) -> None:
    table = Table("dataset", "users", "items", "ratings", "scale", "here")
    for column in (0, 3):
        table.columns[column].no_wrap = True
    for row in rows:
        counts = (f"{row[key]:,}" for key in ("users", "items", "ratings"))
        here = str(row["here"]) if row["here"] in ("no", "built in") else "yes"
        table.add_row(str(row["name"]), *counts, str(row["scale"]), here)
    show(table, "`discreet data datasets get NAME` downloads one and shows its terms.")
