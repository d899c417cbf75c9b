"""Write the page at /docs from the description of the service: fields, commands to copy, and answers.

FastAPI's page is Swagger UI: 1.7 MB of scripts and style (fastapi-offline 1.7.7), which need `unsafe-inline`
in the content security policy. The same origin serves the device's page, whose policy admits none but its own
scripts. This page has about 10 KB, no scripts, and its style is a file of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid #8886; padding: .5rem 0 1rem; }
h2 { font-size: 1.05rem; margin: .5rem 0; overflow-wrap: anywhere; }
h3 { font-size: .95rem; margin: .75rem 0 .25rem; }
p { margin: .25rem 0; }
pre { background: #8882; padding: .75rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: .25rem 0; }
summary { margin: .5rem 0; cursor: pointer; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; font-weight: normal; }
th { white-space: nowrap; }
"""
_REF = "#/components/schemas/"
_JSON = "application/json"
_HOST = re.compile(r"[A-Za-z0-9.\-]+(:\d+)?|\[[0-9a-fA-F:]+\](:\d+)?")
# Where the address of the service will be: no address has these letters.
_PLACE = "__address__"
_CODE = re.compile(r"`([^`]+)`")


def at_host(page: str, host: str) -> str:
    """Return a page of `docs_page` with the address where it was asked for."""
    return page.replace(_PLACE, host if _HOST.fullmatch(host) else "localhost:8080")


def docs_page(schema: Mapping[str, Any]) -> str:
    """Return the page as HTML, for `at_host`; everything from the description is escaped."""
    info = schema["info"]
    title = escape(info["title"])
    parts = [
        _operation(schema, method.upper(), path, about)
        for path, methods in schema["paths"].items()
        for method, about in methods.items()
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="/docs.css"><h1>{title}</h1><p>{_words(info["description"])}</p>'
        f'{"".join(parts)}<p>For programs: <a href="/openapi.json">openapi.json</a>.</p></html>'
    )


def _words(text: str) -> str:
    """Return text as HTML; text in backticks is code, and line breaks of the source are spaces."""
    return _CODE.sub(r"<code>\1</code>", escape(" ".join(text.split()), quote=False))


def _operation(schema: Mapping[str, Any], method: str, path: str, about: Mapping[str, Any]) -> str:
    said = f"{about['summary']}. {about.get('description', '')}".strip()
    shown = f"<h2><code>{escape(f'{method} {path}')}</code></h2><p>{_words(said)}</p>"
    parameters = [
        (one["name"], one["schema"], one.get("required", False)) for one in about.get("parameters", ())
    ]
    shown += _table("Parameters", parameters)
    content = about.get("requestBody", {}).get("content", {})
    body = content.get(_JSON, {})
    shown += "".join(_fields(schema, *one) for one in _kinds(schema, body.get("schema", {})))
    for name, command in _commands(method, path, about):
        shown += f"<h3>{escape(f'Example: {name}' if name else 'Example')}</h3><pre>{escape(command)}</pre>"
    return f"<section>{shown}{_answer(schema, about)}</section>"


def _commands(method: str, path: str, about: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give a line for curl for each example of a body, or one without a body."""
    address = _address(path, about)
    for name, value in about.get("x-headers", {}).items():
        address += f" -H '{name}: {value}'"
    content = about.get("requestBody", {}).get("content", {})
    for example in content.get(_JSON, {}).get("examples", {}).values():
        text = json.dumps(example["value"], ensure_ascii=False).replace("'", "'\\''")
        yield example["summary"], f"curl -s {address} -d '{text}'"
    if method == "GET":
        yield "", f"curl -s {address}"
    elif content and not content.get(_JSON, {}).get("examples"):
        yield "", f"curl -s {address} -H 'Content-Type: {next(iter(content))}' --data-binary @FILE"


def _address(path: str, about: Mapping[str, Any]) -> str:
    """Return the address with an example of every parameter that is needed."""
    asked = []
    for one in about.get("parameters", ()):
        example = quote(about.get("x-examples", {}).get(one["name"], one["name"].upper()), safe="")
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", example)
        elif one.get("required"):
            asked.append(f"{one['name']}={example}")
    return f"'{_PLACE}{path}?{'&'.join(asked)}'" if asked else f"{_PLACE}{path}"


def _answer(schema: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """Show an answer, and the fields of all that it consists of."""
    content = about.get("responses", {}).get("200", {}).get("content", {})
    shown = ""
    for answer in content.values():
        if "example" in answer:
            text = answer["example"]
            text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
            shown += f"<h3>Answer, in this form</h3><pre>{escape(text)}</pre>"
        fields = "".join(_fields(schema, *one) for one in _kinds(schema, answer.get("schema", {})))
        if fields:
            shown += f"<details><summary>Fields of the answer</summary>{fields}</details>"
    return shown


def _kinds(schema: Mapping[str, Any], form: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the kinds of objects that a value has in it, each once, from the outside to the inside."""
    known = schema.get("components", {}).get("schemas", {})
    found: dict[str, Mapping[str, Any]] = {}
    waiting = [form]
    while waiting:
        one = waiting.pop(0)
        name = one.get("$ref", "").removeprefix(_REF) or (one.get("title", "") if "properties" in one else "")
        one = known.get(name, one)
        if name in found:
            continue
        if "properties" in one:
            found[name] = one
        waiting += [*one.get("anyOf", ()), *one.get("prefixItems", ()), *one.get("properties", {}).values()]
        waiting += [one["items"]] if isinstance(one.get("items"), Mapping) else []
    return list(found.items())


def _fields(schema: Mapping[str, Any], name: str, kind: Mapping[str, Any]) -> str:
    needed = kind.get("required", ())
    fields = [(field, form, field in needed) for field, form in kind.get("properties", {}).items()]
    return _table(f"Fields of {name}", fields, kind.get("description", ""))


def _table(title: str, fields: list[tuple[str, Any, bool]], about: str = "") -> str:
    rows = [
        f'<tr><th scope="row"><code>{escape(name)}</code></th><td>{escape(_said(form, needed))}</td></tr>'
        for name, form, needed in fields
    ]
    said = f"<p>{_words(about)}</p>" if about else ""
    return f"<h3>{escape(title)}</h3>{said}<table>{''.join(rows)}</table>" if rows else ""


def _said(form: Mapping[str, Any], needed: bool) -> str:
    default = form.get("default")
    rest = "; needed" if needed else "" if default is None else f"; default {json.dumps(default)}"
    return f"{_form(form)}{rest}"


# How limits of values are written.
_LIMITS = {
    "minimum": "from {}",
    "maximum": "to {}",
    "maxLength": "at most {} letters",
    "maxItems": "at most {}",
}
_NAMES = {"string": "text", "integer": "whole number", "boolean": "true or false"}


def _form(form: Mapping[str, Any]) -> str:
    """Return what a value is in a few words."""
    if "anyOf" in form:
        kinds = dict.fromkeys(_form(one) for one in form["anyOf"] if one.get("type") != "null")
        return " or ".join(kinds)
    kind = form.get("$ref", "").removeprefix(_REF) or str(form.get("type", "any"))
    kind = _NAMES.get(kind, kind)
    if kind == "array" and "prefixItems" in form:
        return f"[{', '.join(_form(one) for one in form['prefixItems'])}]"
    if kind == "array" and "items" in form:
        kind = f"list of {_grouped(_form(form['items']))}"
    if kind == "object" and isinstance(form.get("additionalProperties"), Mapping):
        kind = f"object with a {_form(form['additionalProperties'])} for each key"
    limits = [words.format(form[name]) for name, words in _LIMITS.items() if name in form]
    return " ".join([kind, *limits])


def _grouped(words: str) -> str:
    return f"({words})" if " or " in words else words
