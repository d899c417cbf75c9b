"""Show how far a paper has come, and what was found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from discreet.commands.output.printing import remark
from discreet.commands.output.terminal import plain_console

if TYPE_CHECKING:
    from rich.table import Table

    from discreet.reproduce import Verdict
    from discreet.reproduce.running import Tick


@contextmanager
def progress(name: str) -> Iterator[tuple[Callable[[str], None], Callable[[Tick], None]]]:
    """Yield ways to say something and to tell of a finished step: a bar on a terminal, lines elsewhere."""
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
    """Say how far a run has come and how long the rest may take."""
    if tick.seconds_left is None:
        return f"{tick.step}; {tick.done} steps done, no earlier run tells how many are left"
    minutes = max(1, round(tick.seconds_left / 60))
    return f"{tick.step}; {tick.done} of {tick.total} steps, about {minutes} min left"


def table(name: str, verdicts: Sequence[Verdict]) -> Table:
    """Return the claims with what was measured, the failing ones first."""
    from rich.table import Table

    from discreet.reproduce.page import count

    shown = Table(
        "where", "measure", "printed", "measured", "draws", "holds", title=f"{name}: {count(verdicts)} hold"
    )
    for verdict in sorted(verdicts, key=lambda each: each.holds):
        claim = verdict.claim
        measured = "-" if verdict.measured is None else f"{verdict.measured:.4g} ± {verdict.spread:.2g}"
        holds = ("yes" if verdict.holds else "no") + (" (sanity)" if claim.kind == "sanity" else "")
        shown.add_row(claim.where, claim.measure, claim.asked(), measured, str(verdict.runs), holds)
    return shown
