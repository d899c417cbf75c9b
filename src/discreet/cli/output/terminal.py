"""Print for readers on a console. A module of its own, so that JSON output does not load it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Never

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from discreet.core.checks import visible


class Terminal(Console):
    """Report a closed pipe to the caller, and never let printed text control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the output; only our own styles reach the terminal as control codes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> Never:
        """Let `answering` decide."""
        raise BrokenPipeError


def plain_console(*, stderr: bool) -> Terminal:
    """Return a console that interprets no markup: ids and file names may contain brackets and colons."""
    return Terminal(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=stderr)
