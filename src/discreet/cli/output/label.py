"""Show a label: as a table, as Markdown, or as an HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from rich.table import Table
from rich.text import Text

from discreet.core.checks import visible
from discreet.privacy.guarantee import Guarantee
from discreet.report.numbers import number_above
from discreet.report.pages import Html, element, facts_table, page, table

#: The kind of its page, by which we know our own.
PAGE = "label"


def label_table(guarantee: Guarantee, title: str) -> Table:
    """Return the table that `discreet label` prints: the promise, line by line."""
    table = Table(title=Text(title, style="bold"), show_header=False, min_width=60)
    table.add_column("what", style="bold", no_wrap=True)
    table.add_column("value")
    previous = ""
    for what, value in guarantee.rows():
        table.add_row("" if what == previous else what, Text(value))
        previous = what
    return table


# Characters with a meaning in a line of Markdown; an underscore inside a word has none.
_MARKUP = frozenset("\\|`*[]")


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


def by_origin(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each origin once, with the names of the arrays that have it."""
    names: dict[str, list[str]] = {}
    for name, origin in provenance.items():
        names.setdefault(str(origin), []).append(str(name))
    return [(origin, ", ".join(some)) for origin, some in names.items()]


def label_html(label: Mapping[str, Any], signed: str) -> str:
    """Return the label as one page."""
    promise = Guarantee.from_json(label["guarantee"])
    title = f"Privacy facts: {label['name']}"
    card = [
        element("h1", title),
        _amount(promise),
        element("p", promise.sentence()),
        facts_table(promise.rows(), "The promise"),
        element("p", signed),
    ]
    origins = [(names, origin) for origin, names in by_origin(label["provenance"])]
    body = [
        element("section", Html("".join(card)), "card"),
        element("h2", "What the file contains"),
        table(("arrays", "where they come from"), origins, "Origin of each array"),
    ]
    return visible(page(title, body, kind=PAGE, narrow=True))


def _amount(promise: Guarantee) -> Html:
    """Return the promise in large letters."""
    if math.isinf(promise.epsilon):
        return element("p", "NOT PRIVATE", "amount")
    numbers = f"<span>ε = {number_above(promise.epsilon)}</span>"
    if promise.delta:
        numbers += f"<span>δ = {number_above(promise.delta)}</span>"
    return Html(f'<p class="amount">{numbers}</p>')


def _cell(text: object) -> str:
    """Return untrusted text escaped, so that Markdown shows it literally."""
    plain = " ".join(str(text).split())
    return escape("".join(f"\\{letter}" if letter in _MARKUP else letter for letter in plain), quote=False)
