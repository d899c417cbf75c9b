"""`discreet reproduce`: measure the numbers of published papers again."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options.declared import AsJson
from discreet.cli.output.printing import emit, remark, show
from discreet.cli.output.terminal import plain_console
from discreet.core.checks import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

    from discreet.reproduce import Verdict
    from discreet.reproduce.running import Tick


def reproduce(
    paper: Annotated[str | None, typer.Argument(help="The paper: the name of a folder in `papers/`.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Reproduce all papers, one after the other.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer runs and smaller data; takes minutes.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write numbers, figures and one page to this folder. A stopped run resumes there."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Begin no step after so many minutes and judge what was reached; 0 only judges."),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Make at most so many draws of every experiment.", min=1)
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Your copy of a data set that may not be passed on, as NAME=FOLDER (netflix=...)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the experiments of papers and compare with the printed numbers."""
    from discreet.core.files import write_whole
    from discreet.reproduce import names, papers_pages
    from discreet.reproduce import reproduce as run

    if every == (paper is not None):
        raise ParameterError("Name one paper, or pass --all.")
    found: dict[str, list[Verdict]] = {}
    for name in names() if every else [paper or ""]:
        with progress(name) as (say, tick):
            found[name] = run(
                name,
                size="quick" if quick else "full",
                out=out,
                say=say,
                tick=tick,
                minutes=math.inf if minutes is None else minutes,
                draws=draws,
                data=copies(data or ()),
            )
        if not as_json:
            show(table(name, found[name]))
    if out is not None and every:
        for place, text in papers_pages(out, out).items():
            (out / place).parent.mkdir(parents=True, exist_ok=True)
            write_whole(out / place, text.encode())
        remark(f"All results are on one page: {out / 'papers.md'}")
    if as_json:
        rows = {name: [verdict.to_json() for verdict in verdicts] for name, verdicts in found.items()}
        emit(rows if every else rows[paper or ""])


def copies(named: Sequence[str]) -> dict[str, Path]:
    """Return the folders of data sets by their names."""
    found = {}
    for text in named:
        name, _, folder = text.partition("=")
        if not name or not Path(folder).exists() or not folder:
            raise ParameterError(f"data={text!r} must be NAME=FOLDER with a folder that exists.")
        found[name] = Path(folder)
    return found


@contextmanager
def progress(name: str) -> Iterator[tuple[Callable[[str], None], Callable[[Tick], None]]]:
    """Yield functions for remarks and finished steps: a progress bar on a terminal, lines elsewhere."""
    if not sys.stderr.isatty():
        yield remark, lambda tick: remark(f"{name}: {sentence(tick)}")
        return
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, console=plain_console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None, said="")
        yield (
            bar.console.print,
            lambda tick: bar.update(task, completed=tick.done, total=tick.total, said=sentence(tick)),
        )


def sentence(tick: Tick) -> str:
    """Return a sentence about the progress of a run and the time left."""
    if tick.seconds_left is None:
        return f"{tick.step}; {tick.done} steps done, number of steps left unknown"
    minutes = max(1, round(tick.seconds_left / 60))
    return f"{tick.step}; {tick.done} of {tick.total} steps, about {minutes} min left"


def table(name: str, verdicts: Sequence[Verdict]) -> Table:
    """Return the claims with their measurements, by verdict."""
    from rich.table import Table

    from discreet.reproduce import claims_of
    from discreet.reproduce.details import measured
    from discreet.reproduce.page import count

    paper = claims_of(name)
    title = f"{name}: {count(paper, verdicts)}"
    shown = Table("where", "measure", "asked", "measured", "draws", "verdict", title=title)
    for verdict in sorted(verdicts, key=lambda each: each.outcome):
        claim = verdict.claim
        said = f"{verdict.outcome}" + (" (sanity)" if claim.kind == "sanity" else "")
        shown.add_row(claim.where, claim.measure, claim.asked(), measured(verdict), str(verdict.runs), said)
    return shown
