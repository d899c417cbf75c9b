"""`discreet papers`: print bounds of papers for public sizes, and repeat their experiments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from discreet.cli import lib
from discreet.cli.errors import OptionMissing, WrongForm
from discreet.cli.options.declared import AsJson
from discreet.cli.output.printing import Output, emit, remark, show
from discreet.core import one_of, terminal_progress, write_whole
from discreet.papers import PAPERS


def theory(
    paper: Annotated[
        str, typer.Argument(help=f"The paper: {', '.join(PAPERS)}.", autocompletion=lambda: list(PAPERS))
    ],
    *,
    users: int,
    items: int,
    ratings: int,
    epsilon: float,
    settings: Annotated[list[str] | None, "--set"] = None,
) -> Output:
    """Print the bounds of a paper for your sizes. Reads no data, so all numbers must be public.

    Options:
        users: Public number of users.
        items: Public number of items.
        ratings: Public number of ratings or interactions.
        epsilon: Epsilon of the mechanism.
        settings: Set a number that the bounds depend on, as name=value.
    """
    known = lib.theories()
    one_of("paper", paper, known)
    kind, bounds = known[paper]
    sizes = lib.PublicSizes(users=users, items=items, ratings=ratings, epsilon=epsilon)
    chosen = kind(**lib.parse_fields(kind, "This theory", settings or ()))
    found = bounds(sizes, chosen)
    empty = sum(one.vacuous for one in found)
    vacuous = f"{empty} of {len(found)} bounds are vacuous: an answer without learning is as good."
    return Output(
        {"paper": paper, "settings": asdict(chosen), "bounds": [one.to_json() for one in found]},
        f"Theory of {paper}\n",
        *(_lines(one) for one in found),
        *[vacuous] * (empty > 0),
    )


def _lines(bound: lib.Bound) -> str:
    """Return a line with the value and its status, and an indented line with the note."""
    note = bound.note
    if bound.vacuous and bound.without is not None:
        note = f"VACUOUS: {bound.without:.3g} needs no learning. {note}"
    return f"{bound.name:<45}{bound.value:>11.4g}  {bound.standing}, {bound.where}\n    {note}"


def reproduce(
    paper: Annotated[str | None, typer.Argument(help=f"The paper: {', '.join(PAPERS)}, or audit.")] = None,
    *,
    every: Annotated[bool, "--all"] = False,
    quick: bool = False,
    out: Path | None = None,
    minutes: float | None = None,
    draws: Annotated[int | None, typer.Option(min=1)] = None,
    data: list[str] | None = None,
    as_json: AsJson = False,
) -> None:
    """Run the experiments of papers and compare with the printed numbers.

    Options:
        every: Reproduce all papers, one after the other.
        quick: Use fewer runs and less data, which takes about two minutes.
        out: Write numbers, figures and one page to this folder. A stopped run resumes there.
        minutes: Begin no step after this many minutes and judge what was reached; 0 only judges.
        draws: Make at most this many draws of every experiment.
        data: Your copy of a dataset that the paper used, as NAME=PATH, such as ml-10m=FOLDER.
    """
    if every == (paper is not None):
        raise OptionMissing(options=("a paper", "--all"))
    found: dict[str, list[lib.Verdict]] = {}
    for name in lib.paper_names() if every else [lib.paper_called(paper or "")]:
        with terminal_progress(None) as report:
            found[name] = lib.reproduce(
                name,
                size="quick" if quick else "full",
                out=out,
                say=remark,
                progress=report,
                minutes=math.inf if minutes is None else minutes,
                draws=draws,
                data=copies(data or ()),
            )
        if not as_json:
            show(*summary(name, found[name], quick=quick))
    if out is not None:
        remark(f"All results are on one page: {write_pages(out, None if every else next(iter(found)))}")
    if as_json:
        rows = {name: [verdict.to_json() for verdict in verdicts] for name, verdicts in found.items()}
        emit(rows if every else next(iter(rows.values())))


def write_pages(out: Path, paper: str | None) -> Path:
    """Write the page of one paper, or of all papers with an overview. Return the page to open first."""
    pages = lib.papers_pages(out, out) if paper is None else {f"{paper}.md": lib.paper_page(paper, out, out)}
    for place, text in pages.items():
        (out / place).parent.mkdir(parents=True, exist_ok=True)
        write_whole(out / place, text.encode())
    return out / next(iter(pages))


def copies(named: Sequence[str]) -> dict[str, Path]:
    """Return the paths of datasets by their names."""
    found = {}
    for text in named:
        name, _, path = text.partition("=")
        if not name or not path:
            raise WrongForm(option="--data", form="NAME=PATH", given=text)
        found[name] = Path(path)
    return found


def summary(name: str, verdicts: Sequence[lib.Verdict], *, quick: bool = False) -> list[str]:
    """Return one line for each part of a paper, and the counts of outcomes, in fewer than 40 lines.

    A quick run has too few draws to decide much, so the counts of the full run follow, if they are at hand.
    """
    paper = lib.claims_of(name)
    counts = lib.count_verdicts(paper, verdicts).split("; ")
    rows = [
        f"{_cut(row.what, 38):<40}{_cut(lib.row_verdict(row, verdicts).replace('**', ''), 38)}"
        for row in paper.rows
    ]
    said = [f"In sum, {one}" for one in counts]
    full = lib.committed(name, lib.papers_folder()) if quick else []
    if any(verdict.measured is not None for verdict in full):
        said += ["A quick run has too few draws to decide most statements."]
        said += [f"In the full run, {one}" for one in lib.count_verdicts(paper, full).split("; ")]
    return [_cut(f"{name}: {paper.title}", 78), *rows, *(line for one in said for line in wrap(one, 78))]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
