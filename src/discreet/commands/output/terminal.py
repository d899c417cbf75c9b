"""The console for people. A module of its own, so that programs that ask for JSON do not wait for it."""

from __future__ import annotations

from typing import Never

from rich.console import Console


class Terminal(Console):
    """A console that reports a closed pipe instead of ending the program on its own."""

    def on_broken_pipe(self) -> Never:
        """Let `answering` decide."""
        raise BrokenPipeError


def plain_console(*, stderr: bool) -> Terminal:
    """Return a console that reads no markup: ids and file names may hold brackets and colons."""
    return Terminal(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=stderr)
