"""Fill the tables of models in README.md and docs/models.md, and what the demo prints in docs/start.md."""

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
MODELS = Path(__file__).parent / "models.md"
START = Path(__file__).parent / "start.md"
# The models to use first, the one to start with on top; all others stand in models.md only.
FIRST = ("user-factorization", "popularity", "biases", "local-channel")


def first_models_table() -> str:
    """Return the models to use first as a Markdown table."""
    by_name = {row["name"]: row for row in describe_models()}
    return _table([by_name[name] for name in FIRST], ("name", "unit", "trust", "feedback", "summary"))


def models_table() -> str:
    """Return all models as a Markdown table: first those to use first, last those without privacy."""

    def order(row: dict[str, str]) -> tuple[int, bool, str]:
        name = row["name"]
        return FIRST.index(name) if name in FIRST else len(FIRST), row["unit"] == "nothing", name

    columns = ("name", "unit", "trust", "feedback", "summary", "source")
    return _table(sorted(describe_models(), key=order), columns)


def _table(rows: list[dict[str, str]], columns: tuple[str, ...]) -> str:
    titles = {
        "name": "model",
        "unit": "protects",
        "trust": "against",
        "feedback": "learns from",
        "summary": "what it does",
        "source": "source",
    }
    lines = ["| " + " | ".join(titles[one] for one in columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = (f"`{row[one]}`" if one == "name" else row[one] for one in columns)
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
        parts = {README: ("first-models", first_models_table()), MODELS: ("models", models_table())}
        if made.options.demo:
            parts[START] = ("demo", demo_output())
        for page, (part, content) in parts.items():
            filled = fill(page.read_text(encoding="utf8"), part, content)
            made.place(page).write_text(filled, encoding="utf8")
