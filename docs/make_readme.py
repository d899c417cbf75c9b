"""Fill what pages take from the program: models, a label, sizes, what the demo prints."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

from making import Making
from rich.console import Console

from discreet import catalog, demo
from discreet.audit.questions import has_questions
from discreet.cli.demo import show_tour
from discreet.core.registry import FIRST
from discreet.data.facts import PublicFacts
from discreet.model_settings import describe_models, estimator
from discreet.report.label import label_table

README = Path(__file__).parents[1] / "README.md"
MODELS = Path(__file__).parent / "models.md"
RESEARCH = Path(__file__).parent / "research.md"
START = Path(__file__).parent / "start.md"
DATA = Path(__file__).parent / "data.md"
FEDERATED = Path(__file__).parent / "federated.md"
INSTALLS = README.parent / "benchmarks" / "results" / "install_sizes.json"
LABELS = Path(__file__).parent / "labels.md"
# What `discreet models` prints, kept so that it needs no model to be loaded.
TABLE = README.parent / "src" / "discreet" / "cli" / "models.json"


def first_models_table() -> str:
    """Return the models to use first as a Markdown table."""
    by_name = {row["name"]: row for row in describe_models()}
    return _table([by_name[name] for name in FIRST], ("name", "unit", "trust", "feedback", "summary"))


def model_table() -> str:
    """Return what `discreet models` prints as JSON."""
    return json.dumps(describe_models(), indent=1) + "\n"


def research_table() -> str:
    """Return the private methods that are not to be used first."""
    rows = [row for row in describe_models() if row["unit"] != "nothing" and row["name"] not in FIRST]
    return _table(rows, ("name", "unit", "trust", "feedback", "summary", "source"))


def baselines_table() -> str:
    """Return the models without privacy."""
    rows = [row for row in describe_models() if row["unit"] == "nothing"]
    return _table(rows, ("name", "feedback", "summary", "source"))


def federated_models() -> str:
    """Return the private models that run over parties as a Markdown list; those to use first come first."""

    def runs(name: str) -> bool:
        return has_questions(estimator(name, {"epsilon": 1.0}))

    names = [row["name"] for row in describe_models() if row["unit"] != "nothing"]
    ordered = sorted(filter(runs, names), key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    return "\n".join(f"- `{name}`" for name in ordered)


def example_label() -> str:
    """Return the label of a fit on a file with declared facts, as `discreet model label` prints it."""
    facts = PublicFacts(n_items=3_706, low=1, high=5, step=1, n_users=6_000)
    promise = estimator("user-factorization", {"epsilon": 1.0, "delta": 1e-6}).promise(facts)
    screen = io.StringIO()
    console = Console(file=screen, width=88)
    console.print(label_table(promise, "Privacy facts: user-factorization"))
    console.print(promise.sentence())
    lines = (line.rstrip() for line in screen.getvalue().splitlines())
    return "```text\n" + "\n".join(lines) + "\n```"


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


def installs_table() -> str:
    """Return what each extra adds to a plain installation, as measured."""
    measured = json.loads(INSTALLS.read_text(encoding="utf8"))["result"]
    plain = measured.pop("none")
    lines = ["| installed | MB | seconds |", "|---|---:|---:|"]
    lines.append(f"| `discreet` | {plain['megabytes']:,.0f} | {plain['seconds']:,.0f} |")
    for name, one in measured.items():
        lines.append(f"| `discreet[{name}]` | +{one['megabytes']:,.0f} | +{one['seconds']:,.0f} |")
    return "\n".join(lines)


def datasets_table() -> str:
    """Return the known datasets as a Markdown table."""
    lines = ["| name | users | items rated | ratings | scale | terms |", "|---|---:|---:|---:|---|---|"]
    for row in catalog.describe():
        sizes = " | ".join(f"{row[one]:,}" for one in ("users", "items", "ratings"))
        lines.append(f"| `{row['name']}` | {sizes} | {row['scale']} | {row['terms']} |")
    return "\n".join(lines)


def fill(text: str, part: str, content: str) -> str:
    """Replace what stands between the comments that mark a part."""
    pattern = re.compile(rf"(<!-- {part} -->\n).*?(<!-- /{part} -->)", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


#: What pages take from the program, under the name of the comments around it.
PARTS: list[tuple[Path, str, Callable[[], str]]] = [
    (MODELS, "models", first_models_table),
    (MODELS, "baselines", baselines_table),
    (RESEARCH, "research", research_table),
    (FEDERATED, "federated", federated_models),
    (LABELS, "label", example_label),
    (START, "installs", installs_table),
    (DATA, "datasets", datasets_table),
]


def build(made: Making) -> None:
    """Write the files of this module."""
    asked = [(START, "demo", demo_output)] if made.options.demo else []
    filled: dict[Path, str] = {}
    for page, part, content in PARTS + asked:
        filled[page] = fill(filled.get(page) or page.read_text(encoding="utf8"), part, content())
    filled[TABLE] = model_table()
    for page, text in filled.items():
        made.write(page, text)
