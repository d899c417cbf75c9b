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
from threading import Event, Thread
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
        with _log.task() as report:
            yield report


@contextmanager
def shown_while(what: str) -> Iterator[None]:
    """Show what is done while the block runs, without a measure of how far it is."""
    with terminal_progress(None) as report:
        report(what, 0, 0)
        yield


# Seconds of work, or of waiting, before the first line of a log. Every next line comes after twice as long.
_QUIET, _PATIENT = 2.0, 10.0
# Seconds between two looks at the clock.
_LOOK = 0.5


class _Log:
    """Progress of the tasks that run, of which the innermost is shown in lines, few and ever fewer.

    A thread writes them, so that a step that takes long is shown as well. The processor's time counts more
    than the clock, so that a busy machine adds few lines.
    """

    def __init__(self) -> None:
        self._tasks: list[list[Any]] = []
        self._ended = Event()
        self._clocks = (0.0, 0.0)
        self._next_line = 1.0

    @contextmanager
    def task(self) -> Iterator[Progress]:
        """Yield the progress of one more task."""
        status: list[Any] = ["", 0, 0]

        def show(what: str, done: int, total: int) -> None:
            raise_lost()
            status[:] = what, done, total

        if not self._tasks:
            self._clocks, self._next_line, self._ended = (process_time(), monotonic()), 1.0, Event()
            Thread(target=self._watch, args=(self._ended,), daemon=True).start()
        self._tasks.append(status)
        try:
            yield show
        finally:
            # Two tasks that haven't begun are equal.
            self._tasks = [task for task in self._tasks if task is not status]
            if not self._tasks:
                self._ended.set()

    def _watch(self, ended: Event) -> None:
        while not ended.wait(_LOOK):
            self.write_if_due()

    def write_if_due(self) -> None:
        """Write a line about the innermost task that has begun, if the last line is long ago."""
        work, seconds = process_time() - self._clocks[0], monotonic() - self._clocks[1]
        used = max(work / _QUIET, seconds / _PATIENT)
        begun = [status for status in self._tasks if status[0]]
        if used < self._next_line or not begun:
            return
        self._next_line = 2 * used
        what, done, total = begun[-1]
        left = f", about {seconds * (total - done) / done:,.0f} s left" if 0 < done < total else ""
        far = f"{done:,} of {total:,}{left}" if total else f"{seconds:,.0f} s so far"
        sys.stderr.write(f"discreet: {what}: {far}\n")


_log = _Log()


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
        # A task of unknown length has one step, and is shown at once.
        if total and (now - begun < _PATIENCE or now - drawn < _REDRAWN):
            return
        drawn, said = now, f"{what}: {done:,} of {total:,}" if total else f"{what}..."
        bar = f'<progress value="{done}" max="{total}"></progress> {escape(said)}' if total else escape(said)
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
