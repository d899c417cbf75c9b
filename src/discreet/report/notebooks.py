"""Show results in notebooks. Every text is escaped: ids and names come from files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# A notebook shows this many rows of a long table.
_MOST_ROWS = 50


def html_table(rows: Iterable[Sequence[object]], *, header: Sequence[str] = (), caption: str = "") -> str:
    """Return a table as HTML; of a long one, the first rows and how many there are."""
    listed = list(rows)
    shown = [_row(row, "td") for row in listed[:_MOST_ROWS]]
    if len(listed) > _MOST_ROWS:
        shown.append(f"<tr><td>and {len(listed) - _MOST_ROWS:,} more rows</td></tr>")
    top = f"<thead>{_row(header, 'th')}</thead>" if header else ""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{top}<tbody>{''.join(shown)}</tbody></table>"


def _row(cells: Sequence[object], tag: str) -> str:
    # To the left also where a notebook's own style puts numbers to the right.
    written = (f'<{tag} style="text-align:left">{escape(_text(cell))}</{tag}>' for cell in cells)
    return f"<tr>{''.join(written)}</tr>"


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
