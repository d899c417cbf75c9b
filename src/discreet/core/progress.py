"""Show how far a long task has come, and log what is done; never a number computed from data.

Messages hold what is public, and of reading what an error would say, too: counts, never a record. Like other
libraries `discreet` adds no handler; `logging.basicConfig(level=logging.INFO)` shows all of it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Called with what is being done, how many steps are done, and how many there are.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def terminal_progress(given: Progress | None) -> Iterator[Progress]:
    """Yield the caller's progress, or a bar on a terminal, or silence elsewhere."""
    if given is not None:
        yield given
        return
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, int] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = int(bar.add_task(what, total=total))
            bar.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

        yield show


logger = logging.getLogger("discreet")
