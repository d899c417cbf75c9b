"""Print for readers on a console. A separate module, so that JSON output doesn't load it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Never

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from discreet.core.checks import visible


class Terminal(Console):
    """An output that reports a closed pipe to the caller and never lets printed text control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the output. Only our own styles reach the terminal as control codes."""
        for segment in super().render(renderable, options):
            # Most text is plain, and then looking is cheaper than rewriting.
            plain = segment.control or segment.text == "\n" or segment.text.isprintable()
            yield segment if plain else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> Never:
        """Leave the decision to `answering`."""
        raise BrokenPipeError


def plain_console(*, stderr: bool) -> Terminal:
    """Return a console without markup, because IDs and file names may contain brackets and colons."""
    return Terminal(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=stderr)
