"""The console for people. A module of its own, so that programs that ask for JSON do not wait for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Never

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from discreet.core.checks import visible


class Terminal(Console):
    """A console that reports a closed pipe to its caller, and obeys no letter of what it prints."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed; only our own styles reach the terminal as commands."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> Never:
        """Let `answering` decide."""
        raise BrokenPipeError


def plain_console(*, stderr: bool) -> Terminal:
    """Return a console that reads no markup: ids and file names may hold brackets and colons."""
    return Terminal(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=stderr)
