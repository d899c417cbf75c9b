"""Write pages for readers: one stylesheet, tables that scroll by themselves, no script, no request.

The report of a comparison, an audit, a ledger, a label, a continual release and synthetic data are pages.
Results are shown in notebooks as tables. Every text is escaped here: names and ids come from files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from functools import cache, partial
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core import first_bytes, refuse_output, write_whole

if TYPE_CHECKING:
    from rich.table import Table

# Among the first bytes of every page; by it we know our own.
_MARK, _HEAD = '<meta name="generator" content="discreet, {}">', 512


class Html(str):
    """Text that is HTML already and must not be escaped again."""

    __slots__ = ()


def page(title: str, body: Iterable[str], *, kind: str, narrow: bool = False) -> str:
    """Return one page with our style and no external content; `body` is HTML, `kind` states what it is."""
    main = '<main class="narrow">' if narrow else "<main>"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{_MARK.format(kind)}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n"
        f"{main}\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n"
    )


def is_page(path: Path, *, kind: str) -> bool:
    """Return whether we wrote this file as a page of this kind, by its generator line."""
    return _MARK.format(kind).encode() in first_bytes(path, _HEAD)


def refuse_page(
    path: Path, *, kind: str, force: bool, inputs: Iterable[Path] = (), content: bytes | None = None
) -> None:
    """Raise, before any work, for a page that can't be written or would replace another file."""
    ours = partial(is_page, kind=kind)
    refuse_output(path, force=force, kind=f"{kind} page", is_ours=ours, inputs=inputs, content=content)


def write_page(path: Path, content: str, *, kind: str, force: bool) -> None:
    """Write a page of this kind; one that exists is replaced with `force` only, and other files never."""
    refuse_page(path, kind=kind, force=force)
    write_whole(path, content.encode())


@cache
def _style() -> str:
    return resources.files("discreet.report").joinpath("page.css").read_text("utf-8")


def element(tag: str, content: str, kind: str = "") -> Html:
    """Return an element with this content, which is escaped unless it is `Html`, and a class."""
    named = f' class="{kind}"' if kind else ""
    return Html(f"<{tag}{named}>{_escaped(content)}</{tag}>")


def details(summary: str, content: str) -> Html:
    """Return what opens with a click."""
    return Html(f"<details><summary>{escape(summary)}</summary>{_escaped(content)}</details>")


def meter(share: float, words: str) -> Html:
    """Return a bar that is filled by this share."""
    wide = 100 * min(max(share, 0.0), 1.0)
    return Html(
        f'<div class="meter" role="img" aria-label="{escape(words)}">'
        f'<div style="width:{wide:.4g}%"></div></div>'
    )


def bar(share: float) -> Html:
    """Return a bar of this share of a column's width, below a number with the same value."""
    return Html(f'<span class="bar" style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></span>')


def bullets(lines: Iterable[str]) -> Html:
    """Return a list with a bullet before each line."""
    return Html(f"<ul>{''.join(element('li', line) for line in lines)}</ul>")


def facts_table(rows: Iterable[tuple[str, str]], about: str) -> Html:
    """Return a table of names and values; a name that comes again is written once."""
    lines, previous = [], None
    for what, value in rows:
        said = "" if what == previous else what
        cell = f'<th scope="row">{_escaped(said)}</th>' if said else "<td></td>"
        lines.append(f"<tr>{cell}<td>{_escaped(value)}</td></tr>")
        previous = what
    return _scrolling(f'<table class="facts"><tbody>{"".join(lines)}</tbody></table>', about)


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    about: str,
    *,
    numbers: Collection[int] = (),
    kinds: Sequence[str] = (),
    kind: str = "",
) -> Html:
    """Return a table whose first column names the row.

    Columns in `numbers` are set to the right; `kinds` has a class for each row, `kind` is that of the table.
    """

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(
            _cell(text, "th" if column == 0 else tag, number=column in numbers, head=tag == "th")
            for column, text in enumerate(row)
        )

    lines = [
        f"<tr{_class(kinds[place] if kinds else '')}>{cells(row, 'td')}</tr>"
        for place, row in enumerate(rows)
    ]
    top = f"<thead><tr>{cells(head, 'th')}</tr></thead>"
    named = _class(kind or ("numbers" if numbers else ""))
    return _scrolling(f"<table{named}>{top}\n<tbody>\n{chr(10).join(lines)}\n</tbody></table>", about)


def _cell(text: str, tag: str, *, number: bool, head: bool) -> str:
    scope = "" if tag == "td" else ' scope="col"' if head else ' scope="row"'
    return f"<{tag}{scope}{_class('number' if number else '')}>{_escaped(text)}</{tag}>"


def _scrolling(content: str, about: str) -> Html:
    """Return a region that scrolls sideways, also with the keys."""
    return Html(
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(about)}">{content}</div>'
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _escaped(text: str) -> str:
    return text if isinstance(text, Html) else escape(text, quote=False)


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


class TableView(ABC):
    """A result that shows itself as a table: in notebooks, and in terminals that print with rich."""

    __slots__ = ()

    @abstractmethod
    def _table(self) -> tuple[Sequence[str], Iterable[Sequence[object]], str]:
        """Return the header, which may be empty, the rows, and the caption."""

    def _repr_html_(self) -> str:
        header, rows, caption = self._table()
        return html_table(rows, header=header, caption=caption)

    def __rich__(self) -> Table:
        """Return the same table for `rich.print`."""
        from rich.table import Table
        from rich.text import Text

        header, rows, caption = self._table()
        listed = [[Text(_text(cell)) for cell in row] for row in rows]
        columns = header or [""] * max(map(len, listed), default=0)
        table = Table(title=Text(caption), show_header=bool(header))
        for name in columns:
            table.add_column(Text(name))
        for row in listed:
            table.add_row(*row)
        return table


def _row(cells: Sequence[object], tag: str) -> str:
    # To the left also where a notebook's own style puts numbers to the right.
    written = (f'<{tag} style="text-align:left">{escape(_text(cell))}</{tag}>' for cell in cells)
    return f"<tr>{''.join(written)}</tr>"


def _text(cell: object) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
