"""Show the label of a file: as a table, as Markdown, or as an HTML page."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from discreet.core.checks import visible
from discreet.report.guarantee_wording import GuaranteeView, number_above, rows, sentence
from discreet.report.odds import Odds, odds_picture
from discreet.report.pages import Html, element, facts_table, page, table

#: The kind of its page, by which we know our own.
PAGE = "label"
#: The heading of the lines that only some readers need.
MORE = "For the privacy officer"


# Lines of a label that state what its guarantee rests on; the lines before them state the guarantee itself.
_RESTS_ON = ("Basis", "Noise", "Assumed", "Note", "Audit")

Lines = list[tuple[str, str]]


NOT_AUDITED = "This kind of model has not been audited in full. An audit isn't a proof."


class Known(NamedTuple):
    """What is shown with a label and isn't in it; the same on a terminal, a page, and a card.

    `method` and `used` are further lines about its use, `sentences` are about groups of users and limits,
    and `audit` is the last audit. Only a full label has `releases` and `officer`.
    """

    method: Sequence[tuple[str, str]] = ()
    used: Sequence[tuple[str, str]] = ()
    sentences: Sequence[str] = ()
    audit: str = ""
    releases: Sequence[tuple[str, str, str, str]] = ()
    officer: Sequence[tuple[str, str]] = ()


#: Nothing but the label.
ALONE = Known()


def grouped_rows(guarantee: GuaranteeView, used: Sequence[tuple[str, str]] = ()) -> dict[str, Lines]:
    """Return the lines of a label in three groups: the guarantee, what it rests on, and how it was used."""
    lines = rows(guarantee)
    groups = {
        "Guarantee": [line for line in lines if line[0] not in _RESTS_ON],
        "What it rests on": [line for line in lines if line[0] in _RESTS_ON],
        "How it was used": list(used),
    }
    return {title: some for title, some in groups.items() if some}


def label_table(guarantee: GuaranteeView, title: str, used: Sequence[tuple[str, str]] = ()) -> Table:
    """Return the table that `discreet model label` prints: the label, line by line, a section per group."""
    table = Table(title=Text(title, style="bold"), show_header=False, min_width=60)
    table.add_column("what", style="bold", no_wrap=True)
    table.add_column("value")
    for lines in grouped_rows(guarantee, used).values():
        previous = ""
        for what, value in lines:
            table.add_row("" if what == previous else what, Text(value))
            previous = what
        table.add_section()
    return table


# What the budget of a model with this purpose was spent on.
_PURPOSES = {
    "lists": "recommendations; rating values were ignored",
    "ratings": "predicted ratings",
    "both": "recommendations and predicted ratings",
}


def used_rows(label: Mapping[str, Any], signed_by: str | None) -> Lines:
    """Return how a release was made and used: purpose, day, program, schema, account, signature.

    A label may come from anybody, so every value is cut, and a value of another type is skipped.
    """
    parameters, origin = _mapping(label.get("parameters")), _mapping(label.get("origin"))
    schema = label.get("schema")
    purpose = "lists" if parameters.get("feedback") == "implicit" else str(parameters.get("purpose"))
    entry = f", entry {origin['entry']}" if isinstance(origin.get("entry"), int) else ""
    found = [
        ("Purpose", _PURPOSES.get(purpose, "")),
        ("Fitted", str(origin.get("date", ""))),
        ("Program", program_of(label)),
        ("Schema", schema_digest(schema) if isinstance(schema, dict) else ""),
        ("Account", f"{origin['account']}{entry}" if origin.get("account") else ""),
        ("Signed", f"with the key {signed_by}" if signed_by else "no"),
    ]
    return [(what, value[:_LONGEST]) for what, value in found if value]


def program_of(label: Mapping[str, Any]) -> str:
    """Return the version and the code digest of the program that made a file; empty if it states none."""
    origin = _mapping(label.get("origin"))
    return (
        f"discreet {origin.get('version')}, code {origin.get('code')}"[:_LONGEST]
        if origin.get("code")
        else ""
    )


# So many letters of a value from a file are shown.
_LONGEST = 120


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def schema_digest(schema: Mapping[str, Any]) -> str:
    """Return a short digest of a schema, by which two files can be compared."""
    text = json.dumps(schema, sort_keys=True).encode()
    return f"sha256 {hashlib.sha256(text).hexdigest()[:16]}"


#: The columns of a table of releases.
RELEASES = ("release", "mechanism", "noise", "bound")

# Characters with a meaning in a line of Markdown; an underscore inside a word has none.
_MARKUP = frozenset("\\|`*[]")


def label_markdown(
    label: Mapping[str, Any], guarantee: GuaranteeView, signed: str, known: Known = ALONE
) -> str:
    """Return the label as Markdown tables; `guarantee` is the one in the label."""
    lines = [
        f"## Privacy facts: {_cell(label['name'])}",
        "",
        _cell(sentence(guarantee)),
        "",
        "| | |",
        "|---|---|",
    ]
    for title, some in grouped_rows(guarantee, _used(label, known)).items():
        lines += [f"| **{title}** | |", *(f"| {what} | {_cell(value)} |" for what, value in some)]
    odds = [Odds.of(guarantee).sentence()] if guarantee.is_private else []
    for text in filter(None, (*odds, *known.sentences, known.audit)):
        lines += ["", _cell(text)]
    tables: list[tuple[Sequence[str], Sequence[Sequence[object]]]] = [
        (RELEASES, known.releases),
        (("array", "where it comes from"), [*label["provenance"].items()]),
        (("", ""), known.officer),
    ]
    for header, rows_of_it in tables:
        lines += ["", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"] if rows_of_it else []
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows_of_it]
    return "\n".join([*lines, "", _cell(signed)]) + "\n"


def by_origin(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return each origin once, with the names of the arrays that have it."""
    names: dict[str, list[str]] = {}
    for name, origin in provenance.items():
        names.setdefault(str(origin), []).append(str(name))
    return [(origin, ", ".join(some)) for origin, some in names.items()]


def label_html(label: Mapping[str, Any], guarantee: GuaranteeView, signed: str, known: Known = ALONE) -> str:
    """Return the label as one page; `guarantee` is the one in the label."""
    title = f"Privacy facts: {label['name']}"
    card = [
        element("h1", title),
        _amount(guarantee),
        element("p", sentence(guarantee)),
        *_groups(guarantee, _used(label, known)),
        *_odds(guarantee),
        *(element("p", text) for text in (*known.sentences, known.audit, signed) if text),
    ]
    origins = [(names, origin) for origin, names in by_origin(label["provenance"])]
    body = [
        element("section", Html("".join(card)), "card"),
        *(
            [element("h2", "Releases"), table(RELEASES, list(known.releases), "Releases and their noise")]
            if known.releases
            else []
        ),
        element("h2", "What the file contains"),
        table(("arrays", "where they come from"), origins, "Origin of each array"),
        *([element("h2", MORE), facts_table(list(known.officer), MORE)] if known.officer else []),
    ]
    return visible(page(title, body, kind=PAGE, narrow=True))


def _used(label: Mapping[str, Any], known: Known) -> Lines:
    """Return the lines about a release's use. A sentence about its signature follows below them."""
    return [*known.method, *used_rows(label, None)[:-1], *known.used]


def _groups(guarantee: GuaranteeView, used: Lines) -> list[Html]:
    """Return a table for each group of lines; the first one needs no heading."""
    found: list[Html] = []
    for title, lines in grouped_rows(guarantee, used).items():
        found += [element("h2", title)] if found else []
        found.append(facts_table(lines, title))
    return found


def _odds(guarantee: GuaranteeView) -> list[Html]:
    """Return the attacker's odds as a sentence and a picture; nothing if no user is protected."""
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
