"""Write docs/papers.md and the page of each paper from the committed results."""

from __future__ import annotations

from pathlib import Path

from making import Making

from discreet.reproduce import papers_folder, papers_pages

HERE = Path(__file__).parent


def pages() -> dict[str, str]:
    """Return the pages as the committed results have them, by their place in docs/."""
    return papers_pages(papers_folder(), HERE)


def build(made: Making) -> None:
    """Write the files of this module."""
    for place, text in pages().items():
        made.write(HERE / place, text)
