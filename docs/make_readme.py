"""Fill the README's generated parts: what the demo prints and the table of models."""

from __future__ import annotations

import io
import re
from pathlib import Path

from making import making
from rich.console import Console

from discreet import demo
from discreet.cli.demo import show_tour
from discreet.recipes import describe_models

README = Path(__file__).parents[1] / "README.md"


def models_table() -> str:
    """Return the models as a Markdown table."""
    lines = [
        "| model | protects | against | learns from | what it does | source |",
        "|---|---|---|---|---|---|",
    ]
    for row in describe_models():
        cells = (
            f"`{row['name']}`",
            row["unit"],
            row["trust"],
            row["feedback"],
            row["summary"],
            row["source"],
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def demo_output() -> str:
    """Return what `discreet demo` prints, as a Markdown block."""
    screen = io.StringIO()
    show_tour(demo.run(), Console(file=screen, width=88))
    return "```\n" + screen.getvalue().strip() + "\n```"


def fill(text: str, part: str, content: str) -> str:
    """Replace what stands between the comments that mark a part."""
    pattern = re.compile(rf"(<!-- {part} -->\n).*?(<!-- /{part} -->)", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


if __name__ == "__main__":
    with making(__doc__, demo="also run the demo and show what it prints") as made:
        readme = fill(README.read_text(encoding="utf8"), "models", models_table())
        if made.options.demo:
            readme = fill(readme, "demo", demo_output())
        made.place(README).write_text(readme, encoding="utf8")
