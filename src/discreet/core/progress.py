"""Show the progress of a long task, and log what is done.

Messages hold public facts only, never a number computed from data. The exception is reading, where they may
hold counts as its errors do, and never a record. Like other libraries `discreet` adds no handler;
`logging.basicConfig(level=logging.INFO)` shows all messages.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from time import monotonic, process_time
from typing import Any

from discreet.core.interrupts import raise_lost

#: Called with a description of the task, the number of steps done, and the number of steps in all; 0 of 0 if
#: the number isn't known before the end.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Show nothing; on a command line, stop if Ctrl-C was pressed."""
    raise_lost()


@contextmanager
def terminal_progress(given: Progress | None) -> Iterator[Progress]:
    """Yield the given progress, or a bar on a terminal or in a notebook, or lines in a log."""
    if given is not None:
        yield given
    elif in_notebook():
        with _below_cell() as report:
            yield report
    elif sys.stderr.isatty():
        with _on_terminal() as report:
            yield report
    else:
        yield _in_log()


@contextmanager
def shown_while(what: str) -> Iterator[None]:
    """Show what is done while the block runs, without a measure of how far it is."""
    with terminal_progress(None) as report:
        report(what, 0, 0)
        yield


# Seconds of work before a log gets its first line. Every further line waits twice as long.
_QUIET = 20.0


def _in_log() -> Progress:
    """Return a progress that writes few lines, and none for a short task.

    The processor's time counts, so that a busy machine doesn't add lines.
    """
    begun, next_line = process_time(), _QUIET

    def show(what: str, done: int, total: int) -> None:
        nonlocal next_line
        raise_lost()
        used = process_time() - begun
        if used < next_line:
            return
        next_line = 2 * used
        left = f", about {used * (total - done) / done:,.0f} s left" if 0 < done < total else ""
        sys.stderr.write(f"discreet: {what}: {done:,} of {total:,}{left}\n")

    return show


@contextmanager
def _on_terminal() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import TimeElapsedColumn

    # The time moves on also while a step takes long.
    columns = (*Bar.get_default_columns(), TimeElapsedColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    tasks: dict[str, int] = {}

    def show(what: str, done: int, total: int) -> None:
        raise_lost()
        # Started late: a task without steps shows no bar.
        bar.start()
        if what not in tasks:
            tasks[what] = int(bar.add_task(what, total=total or None))
        bar.update(tasks[what], completed=done, total=total or None)  # type: ignore[arg-type]

    try:
        yield show
    finally:
        if tasks:
            bar.stop()


# Seconds before a notebook shows a bar, and between two drawings of it.
_PATIENCE, _REDRAWN = 1.0, 0.1


@contextmanager
def _below_cell() -> Iterator[Progress]:
    """Draw a bar below the cell of a notebook once a task takes long, and leave nothing behind.

    Widgets would leave an empty place in the saved notebook, and need another package.
    """
    display: Any = import_module("IPython.display").display
    begun, drawn = monotonic(), -math.inf
    place: Any = None

    def show(what: str, done: int, total: int) -> None:
        nonlocal drawn, place
        raise_lost()
        now = monotonic()
        if now - begun < _PATIENCE or now - drawn < _REDRAWN:
            return
        drawn, said = now, f"{what}: {done:,} of {total:,}"
        bar = f'<progress value="{done}" max="{total}"></progress> {escape(said)}'
        shown = {"text/html": bar, "text/plain": said}
        if place is None:
            place = display(shown, raw=True, display_id=True)
        else:
            place.update(shown, raw=True)

    try:
        yield show
    finally:
        if place is not None:
            place.update({"text/plain": ""}, raw=True)


logger = logging.getLogger("discreet")


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules
