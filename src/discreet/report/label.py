"""Show the label of a file: as a table, as Markdown, or as an HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from rich.table import Table
from rich.text import Text

from discreet.core.checks import visible
from discreet.report.guarantee import GuaranteeView, rows, sentence
from discreet.report.numbers import number_above
from discreet.report.odds import Odds, odds_picture
from discreet.report.pages import Html, element, facts_table, page, table

#: The kind of its page, by which we know our own.
PAGE = "label"


def label_table(guarantee: GuaranteeView, title: str) -> Table:
    """Return the table that `discreet label` prints: the guarantee, line by line."""
    table = Table(title=Text(title, style="bold"), show_header=False, min_width=60)
    table.add_column("what", style="bold", no_wrap=True)
    table.add_column("value")
    previous = ""
    for what, value in rows(guarantee):
        table.add_row("" if what == previous else what, Text(value))
        previous = what
    return table


# Characters with a meaning in a line of Markdown; an underscore inside a word has none.
_MARKUP = frozenset("\\|`*[]")


def label_markdown(label: Mapping[str, Any], guarantee: GuaranteeView, signed: str) -> str:
    """Return the label as two Markdown tables; `guarantee` is the one in the label."""
    lines = [
        f"## Privacy facts: {_cell(label['name'])}",
        "",
        _cell(sentence(guarantee)),
        "",
        "| | |",
        "|---|---|",
    ]
    lines += [f"| {what} | {_cell(value)} |" for what, value in rows(guarantee)]
    lines += ["", _cell(Odds.of(guarantee).sentence())] if guarantee.is_private else []
    lines += ["", "| array | where it comes from |", "|---|---|"]
    lines += [f"| {_cell(name)} | {_cell(origin)} |" for name, origin in label["provenance"].items()]
    return "\n".join([*lines, "", _cell(signed)]) + "\n"


def by_origin(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each origin once, with the names of the arrays that have it."""
    names: dict[str, list[str]] = {}
    for name, origin in provenance.items():
        names.setdefault(str(origin), []).append(str(name))
    return [(origin, ", ".join(some)) for origin, some in names.items()]


def label_html(label: Mapping[str, Any], guarantee: GuaranteeView, signed: str) -> str:
    """Return the label as one page; `guarantee` is the one in the label."""
    title = f"Privacy facts: {label['name']}"
    card = [
        element("h1", title),
        _amount(guarantee),
        element("p", sentence(guarantee)),
        facts_table(rows(guarantee), "The guarantee"),
        *_odds(guarantee),
        element("p", signed),
    ]
    origins = [(names, origin) for origin, names in by_origin(label["provenance"])]
    body = [
        element("section", Html("".join(card)), "card"),
        element("h2", "What the file contains"),
        table(("arrays", "where they come from"), origins, "Origin of each array"),
    ]
    return visible(page(title, body, kind=PAGE, narrow=True))


def _odds(guarantee: GuaranteeView) -> list[Html]:
    """Return the attacker's odds as a sentence and a picture; nothing if nobody is protected."""
    if not guarantee.is_private:
        return []
    odds = Odds.of(guarantee)
    return [element("p", odds.sentence()), odds_picture(odds)]


def _amount(guarantee: GuaranteeView) -> Html:
    """Return the guarantee in large letters."""
    if math.isinf(guarantee.epsilon):
        return element("p", "NOT PRIVATE", "amount")
    numbers = f"<span>ε = {number_above(guarantee.epsilon)}</span>"
    if guarantee.delta:
        numbers += f"<span>δ = {number_above(guarantee.delta)}</span>"
    return Html(f'<p class="amount">{numbers}</p>')


def _cell(text: object) -> str:
    """Return untrusted text escaped, so that Markdown shows it literally."""
    plain = " ".join(str(text).split())
    return escape("".join(f"\\{letter}" if letter in _MARKUP else letter for letter in plain), quote=False)
