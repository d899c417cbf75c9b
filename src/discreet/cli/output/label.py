"""Show a label: as a table, as Markdown, or as an HTML page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
<<<<<<< HEAD
=======
from pathlib import Path
>>>>>>> afdce24b (Give assumptions of a guarantee kinds instead of sentences)
from typing import Any

from rich.table import Table
from rich.text import Text

from discreet.core.checks import visible
from discreet.core.pages import Html, element, facts_table, page, table
<<<<<<< HEAD
from discreet.privacy.accounting.rounding import number_above
from discreet.privacy.guarantee import Guarantee

#: The kind of its page, by which we know our own.
PAGE = "label"
=======
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.report.guarantee import listed_assumptions
from discreet.report.numbers import number_above
>>>>>>> afdce24b (Give assumptions of a guarantee kinds instead of sentences)


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
<<<<<<< HEAD
=======


#: The names of what is written, in messages.
DRAFT, PAGE = "draft of a registry entry", "label"
_FIRST = b"url_slug: "
_OPEN = "To be filled in"
_UNITS = {Unit.USER: "User-level", Unit.RATING: "Person-item-level", Unit.VALUE: "Rating-level"}
_MODELS = {Trust.LOCAL: "Local", Trust.CENTRAL: "Central", Trust.JOINT: "Central"}
_TRUST = {
    Trust.LOCAL: "Only a person's own device is trusted: noise is added before anything leaves it.",
    Trust.CENTRAL: "The holder of the data is trusted; nobody who sees the release is.",
    Trust.JOINT: "The holder of the data is trusted. Nobody else is, except each person with the "
    "recommendations computed from their own history (joint differential privacy).",
}
_NEIGHBORS = {
    Neighbors.ADD_OR_REMOVE: "Neighboring datasets differ in the presence of one unit (added or removed).",
    Neighbors.REPLACE: "Neighboring datasets differ in the content of one unit (replaced).",
}


def is_draft(path: Path) -> bool:
    """Return whether a file begins as our drafts do."""
    try:
        with path.open("rb") as file:
            return file.read(len(_FIRST)) == _FIRST
    except OSError:
        return False


def registry_draft(label: Mapping[str, Any]) -> str:
    """Return a draft in YAML for the label of a model.

    Raises:
        ParameterError: The model makes no promise, so there is nothing to register.
    """
    promise = Guarantee.from_json(label["guarantee"])
    if not math.isfinite(promise.epsilon):
        raise ParameterError("This model makes no promise, so there is no deployment to register.")
    if promise.simulated:
        raise ParameterError("This model was made with simulated noise, which protects nobody; fit it again.")
    slug = "".join(letter if letter.isalnum() else "-" for letter in str(label["name"]).lower())
    return yaml_text({"url_slug": slug, "deployment": _deployment(label, promise)})


def _deployment(label: Mapping[str, Any], promise: Guarantee) -> dict[str, Any]:
    pure = promise.delta == 0
    return {
        "basic": _basic(label),
        "dp_variant": {
            "variant_name": "Pure DP" if pure else "Approximate DP",
            "data_domain": "Interactions of people with items, with or without ratings: one row of bounded "
            "ratings per person.",
            "unprotected_quantities": "\n".join(f"- {text}" for text in listed_assumptions(promise))
            or "None.",
        },
        "privacy_loss": {
            "privacy_unit": _UNITS[promise.unit],
            "privacy_unit_details": f"{dict(promise.rows())['Protects']}. {_NEIGHBORS[promise.neighbors]}",
            "number_of_privacy_units": 1,
            "privacy_parameters": {"epsilon": promise.epsilon} | ({} if pure else {"delta": promise.delta}),
            "privacy_parameters_details": promise.sentence(),
        },
        "deployment_model": {
            "model_name": "Central" if promise.reads_raw_ratings else _MODELS[promise.trust],
            "model_name_details": f"Against {dict(promise.rows())['Against']}.",
            "trust_assumptions": _TRUST[Trust.CENTRAL if promise.reads_raw_ratings else promise.trust],
            "actors": _OPEN,
            "release_type": _OPEN,
            "release_type_details": "One model file; further releases are counted in the operator's ledger.",
            "data_source_type": _OPEN,
            "data_source_type_details": _OPEN,
            "access_type": "Non-interactive",
            "access_type_details": "The released numbers are in one file, which states the origin of each.",
        },
        "accounting": _accounting(promise),
        "implementation": _implementation(label, promise),
        "administrative": {
            "evidence_sources": {
                "proof": {"evidence_source_type": "Source code", "note": _evidence(promise)}
            },
            "status": "Draft",
            "registry_authors": [_OPEN],
            "tier": 2,
        },
    }


def _basic(label: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"Recommendations by {label['name']}",
        "data_curators": [{"data_curator_name": _OPEN, "data_curator_type": _OPEN}],
        "description": f"A recommender ({label['name']}) learned from ratings or implicit feedback with "
        "discreet.",
        "intended_use": _OPEN,
        "data_product_type": "Machine learning model",
        "data_product_region": _OPEN,
        "data_product_sector": _OPEN,
        # The day of the draft; the schema wants a date.
        "publication_date": datetime.now(UTC).date().isoformat(),
    }


def _accounting(promise: Guarantee) -> dict[str, str]:
    return {
        "composition": "All releases of one fit are composed beforehand and paid in a ledger as one promise.",
        "post_processing": "Shrinkage by the known noise, factorization of released sums, and ranking; "
        "a person's own vector is computed from their own history on request.",
    }


def _implementation(label: Mapping[str, Any], promise: Guarantee) -> dict[str, str]:
    origins = "\n".join(f"- {name}: {origin}" for name, origin in label["provenance"].items())
    return {
        "preprocessing_and_hyperparameter_tuning": "Ratings are clipped to the declared scale and rows "
        "bounded one person at a time. Settings: " + json.dumps(label["parameters"]),
        "mechanisms": "Exact integer noise in fixed point (a power of two) from an AES stream keyed by the "
        "operating system.\n" + origins,
        "justification": _OPEN,
        "utility": _OPEN,
        "additional_information": f"Model file of discreet, format {label['version']}.",
    }


def _evidence(promise: Guarantee) -> str:
    if promise.basis is Basis.PROVED:
        return f"The promise is proved in {promise.proof}, which comes with the package."
    return "The promise is as published; we could not prove it."


def yaml_text(value: Any, indent: int = 0) -> str:
    """Return mappings, lists and scalars as YAML; strings are quoted as in JSON, so none is misread."""
    pad = "  " * indent
    if isinstance(value, Mapping):
        parts = []
        for key, inner in value.items():
            nested = isinstance(inner, Mapping | list)
            parts.append(
                f"{pad}{key}:" + ("\n" + yaml_text(inner, indent + 1) if nested else f" {_scalar(inner)}\n")
            )
        return "".join(parts)
    lines = []
    for inner in value:
        if isinstance(inner, Mapping):
            first, *rest = yaml_text(inner, indent + 1).splitlines(keepends=True)
            lines.append(f"{pad}- {first.lstrip()}" + "".join(rest))
        else:
            lines.append(f"{pad}- {_scalar(inner)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    """Return a scalar as YAML, which reads 1e-06 as a string and 1.0e-06 as a number."""
    text = json.dumps(value)
    if isinstance(value, float) and "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text
>>>>>>> afdce24b (Give assumptions of a guarantee kinds instead of sentences)
