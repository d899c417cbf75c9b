"""`discreet reproduce`: papers' numbers, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.checks import ParameterError
from discreet.commands.options.declared import AsJson
from discreet.commands.output.printing import emit, remark, show

if TYPE_CHECKING:
    from discreet.reproduce import Verdict


def reproduce(
    paper: Annotated[str | None, typer.Argument(help="Which paper: a folder of `papers/`.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All papers, one after the other.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and smaller data: minutes.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep numbers, figures and one page here; the same again goes on after a stop."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run papers' experiments and hold them against the printed numbers; needs a checkout."""
    from discreet.commands.output.reproducing import progress, table
    from discreet.files import write_whole
    from discreet.reproduce import names, papers_page
    from discreet.reproduce import reproduce as run

    if every == (paper is not None):
        raise ParameterError("Name one paper, or --all for every one.")
    found: dict[str, list[Verdict]] = {}
    for name in names() if every else [paper or ""]:
        with progress(name) as (say, tick):
            found[name] = run(name, size="quick" if quick else "full", out=out, say=say, tick=tick)
        if not as_json:
            show(table(name, found[name]))
    if out is not None and every:
        write_whole(out / "papers.md", papers_page(out, out).encode())
        remark(f"Everything is on one page: {out / 'papers.md'}")
    if as_json:
        rows = {name: [verdict.to_json() for verdict in verdicts] for name, verdicts in found.items()}
        emit(rows if every else rows[paper or ""])
