"""`discreet reproduce`: a paper's numbers, measured again."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from discreet.commands.options.declared import AsJson
from discreet.commands.output.printing import emit, remark, show


def reproduce(
    paper: Annotated[str, typer.Argument(help="Which paper: a folder of `papers/`.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and smaller data: minutes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments and hold them against its printed numbers; needs a checkout."""
    from discreet.reproduce import reproduce as run

    rows = run(paper, quick=quick, say=remark)
    if as_json:
        emit(rows)
        return
    table = Table("where", "measure", "expected", "measured", "runs", "holds", title=paper)
    for row in rows:
        measured = "-" if row["measured"] is None else f"{row['measured']:.4g} ± {row['spread']:.2g}"
        expected = f"{row['rule']} {row['expected']:g} ± {row['tolerance']:g}"
        holds = "yes" if row["holds"] else "no"
        table.add_row(row["where"], row["measure"], expected, measured, str(row["runs"]), holds)
    show(table)
