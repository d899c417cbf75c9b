"""Write docs/papers.md and the page of each paper from the committed results."""

from __future__ import annotations

from pathlib import Path

from making import making

from discreet.reproduce import papers_folder, papers_pages

HERE = Path(__file__).parent


def pages() -> dict[str, str]:
    """Return the pages as the committed results have them, by their place in docs/."""
    return papers_pages(papers_folder(), HERE)


if __name__ == "__main__":
    with making(__doc__) as made:
        for place, text in pages().items():
            made.place(HERE / place).write_text(text, encoding="utf8")
