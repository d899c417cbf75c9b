"""Write the page at /docs from the description of the service: parameters, fields and examples to copy.

The usual page loads scripts from elsewhere; this one has none, and its style is a file of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid #8886; padding: .5rem 0 1rem; }
h2 { font-size: 1.05rem; margin: .5rem 0; overflow-wrap: anywhere; }
h3 { font-size: .95rem; margin: .75rem 0 .25rem; }
p { margin: .25rem 0; }
pre { background: #8882; padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; overflow-wrap: anywhere; }
"""
_REF = "#/components/schemas/"


def docs_page(schema: Mapping[str, Any]) -> str:
    """Return the page as HTML; everything from the description is escaped."""
    info = schema["info"]
    title = escape(info["title"])
    parts = [
        _operation(schema, f"{method.upper()} {path}", about)
        for path, methods in schema["paths"].items()
        for method, about in methods.items()
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="/docs.css"><h1>{title}</h1><p>{escape(info["description"])}</p>'
        f'{"".join(parts)}<p>For programs: <a href="/openapi.json">openapi.json</a>.</p></html>'
    )


def _operation(schema: Mapping[str, Any], called: str, about: Mapping[str, Any]) -> str:
    said = f"{about['summary']}. {about.get('description', '')}".strip()
    parameters = [
        (one["name"], one["schema"], one.get("required", False)) for one in about.get("parameters", ())
    ]
    content = about.get("requestBody", {}).get("content", {}).get("application/json", {})
    shown = f"<h2><code>{escape(called)}</code></h2><p>{escape(said)}</p>"
    shown += _table("Parameters", parameters)
    for name, kind in _bodies(schema, content.get("schema", {})):
        needed = kind.get("required", ())
        fields = [(field, form, field in needed) for field, form in kind.get("properties", {}).items()]
        shown += _table(f"Fields ({name})", fields)
    for example in content.get("examples", {}).values():
        text = json.dumps(example["value"], ensure_ascii=False)
        shown += f"<h3>Example: {escape(example['summary'])}</h3><pre>{escape(text)}</pre>"
    return f"<section>{shown}</section>"


def _bodies(schema: Mapping[str, Any], body: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the kinds of bodies by name."""
    names = [one.get("$ref", "").removeprefix(_REF) for one in body.get("anyOf", (body,))]
    known = schema.get("components", {}).get("schemas", {})
    return [(name, known[name]) for name in names if name in known]


def _table(title: str, fields: list[tuple[str, Any, bool]]) -> str:
    rows = [
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(_form(form))}</td>"
        f"<td>{'needed' if needed else escape(_default(form))}</td></tr>"
        for name, form, needed in fields
    ]
    return f"<h3>{escape(title)}</h3><table>{''.join(rows)}</table>" if rows else ""


# What JSON schemas call kinds of values, and how limits of them are said.
_LIMITS = {
    "minimum": "from {}",
    "maximum": "to {}",
    "maxLength": "at most {} letters",
    "maxItems": "at most {}",
}


def _form(form: Mapping[str, Any]) -> str:
    """Say what a value is in a few words."""
    if "anyOf" in form:
        kinds = dict.fromkeys(_form(one) for one in form["anyOf"] if one.get("type") != "null")
        return " or ".join(kinds)
    kind = form.get("$ref", "").removeprefix(_REF) or str(form.get("type", "any"))
    if kind == "array" and "items" in form:
        kind = f"list of ({_form(form['items'])})"
    limits = [words.format(form[name]) for name, words in _LIMITS.items() if name in form]
    return " ".join([kind, *limits])


def _default(form: Mapping[str, Any]) -> str:
    default = form.get("default")
    return "" if default is None else f"default {json.dumps(default)}"
