"""Run the cells of docs/tutorial.ipynb in order and keep what they show; noise is new each time.

A notebook server does the same. This needs no more than the package, so that a test can run it everywhere.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

from making import Making

NOTEBOOK = Path(__file__).parent / "tutorial.ipynb"


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return the notebook with the outputs of a run; an error ends it."""
    names: dict[str, Any] = {}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell = {**cell, "execution_count": count, "outputs": _run("".join(cell["source"]), names, count)}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _run(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run one cell; its last line, if it is an expression, is shown."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said, shown = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
    outputs: list[dict[str, Any]] = []
    if said.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(said.getvalue())})
    if shown is not None:
        data = {"text/plain": _lines(repr(shown))}
        if hasattr(shown, "_repr_html_"):
            data["text/html"] = _lines(shown._repr_html_())
        result = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
        outputs.append({**result, "data": data})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def as_markdown(notebook: dict[str, Any]) -> str:
    """Return the notebook as a page of the site."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", [])})
            if "text/html" in data:
                parts.append(f'<div class="shown">{"".join(data["text/html"])}</div>')
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join([*parts, ""])


def build(made: Making) -> None:
    """Write the files of this module."""
    found = executed(json.loads(NOTEBOOK.read_text(encoding="utf8")))
    written = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    made.write(NOTEBOOK, written)
