"""Show the progress of a long task, and log what is done.

Messages hold public facts only, never a number computed from data. The exception is reading, where they may
hold counts as its errors do, and never a record. Like other libraries `discreet` adds no handler;
`logging.basicConfig(level=logging.INFO)` shows all messages.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from discreet.core.display import in_notebook
from discreet.core.interrupts import raise_lost

#: Called with a description of the task, the number of steps done, and the number of steps in all.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Show nothing; on a command line, stop if Ctrl-C was pressed."""
    raise_lost()


@contextmanager
def terminal_progress(given: Progress | None) -> Iterator[Progress]:
    """Yield the caller's progress if given, else a bar on a terminal or in a notebook, else `silent`."""
    if given is not None:
        yield given
        return
    notebook = _shows_widgets()
    if not notebook and not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    # In a notebook only standard output is a widget that can be redrawn.
    bar = Bar(console=Console(stderr=not notebook), transient=True)
    tasks: dict[str, int] = {}

    def show(what: str, done: int, total: int) -> None:
        raise_lost()
        # Started late: a short task would leave an empty place in a notebook.
        bar.start()
        if what not in tasks:
            tasks[what] = int(bar.add_task(what, total=total))
        bar.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

    try:
        yield show
    finally:
        if tasks:
            bar.stop()


def _shows_widgets() -> bool:
    """Return whether rich can redraw a bar in this notebook; without ipywidgets it would warn instead."""
    return in_notebook() and find_spec("ipywidgets") is not None


logger = logging.getLogger("discreet")
