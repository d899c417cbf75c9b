"""Write docs/papers.md from the committed results of the papers."""

from __future__ import annotations

from pathlib import Path

from making import making

from discreet.reproduce import papers_folder, papers_page

PAGE = Path(__file__).parent / "papers.md"


def text() -> str:
    """Return the page as the committed results have it."""
    return papers_page(papers_folder(), PAGE.parent)


if __name__ == "__main__":
    with making(__doc__) as made:
        made.place(PAGE).write_text(text(), encoding="utf8")
