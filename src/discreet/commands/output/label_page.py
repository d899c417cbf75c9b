"""A label for other places than the terminal: Markdown, and one HTML page without any outside request."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from discreet.checks import visible
from discreet.privacy.guarantee import Guarantee

# What Markdown would obey within a line; an underscore inside a word it does not.
_MARKUP = frozenset("\\|`*[]")
STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --line: #999; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e4; --paper: #16181a; --line: #666; }
}
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 46rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
.facts { border: 2px solid var(--ink); padding: 0 .6rem .6rem; }
.facts h1 { border-bottom: .5rem solid var(--ink); }
"""


def label_markdown(label: Mapping[str, Any], signed: str) -> str:
    """Return the label as two Markdown tables."""
    promise = Guarantee.from_json(label["guarantee"])
    lines = [
        f"## Privacy facts: {_cell(label['name'])}",
        "",
        _cell(promise.sentence()),
        "",
        "| | |",
        "|---|---|",
    ]
    lines += [f"| {what} | {_cell(value)} |" for what, value in promise.rows()]
    lines += ["", "| array | where it comes from |", "|---|---|"]
    lines += [f"| {_cell(name)} | {_cell(origin)} |" for name, origin in label["provenance"].items()]
    return "\n".join([*lines, "", _cell(signed)]) + "\n"


def label_html(label: Mapping[str, Any], signed: str) -> str:
    """Return the label as one page."""
    promise = Guarantee.from_json(label["guarantee"])
    facts = _rows(promise.rows())
    origins = _rows(label["provenance"].items())
    whole = page(
        f"Privacy facts: {label['name']}",
        f'<section class="facts"><h1>Privacy facts: {escape(str(label["name"]))}</h1>'
        f"<p>{escape(promise.sentence())}</p><table>{facts}</table><p>{escape(signed)}</p></section>"
        f"<h2>What is inside</h2><table><tr><th>array</th><th>where it comes from</th></tr>{origins}</table>",
    )
    return visible(whole)


def page(title: str, body: str) -> str:
    """Return one HTML page with our style and nothing from outside."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _rows(pairs: Any) -> str:
    return "".join(f"<tr><th>{escape(str(a))}</th><td>{escape(str(b))}</td></tr>" for a, b in pairs)


def _cell(text: object) -> str:
    """Return text as it is for a reader of Markdown, though a stranger may have written it."""
    plain = " ".join(str(text).split())
    return escape("".join(f"\\{letter}" if letter in _MARKUP else letter for letter in plain), quote=False)
