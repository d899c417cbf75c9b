"""Pages that take something from the program or from kept results: tables, labels, papers, the notebook."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from build import ROOT, Making
from rich.console import Console

from discreet import catalog, demo
from discreet.audit.questions import has_questions
from discreet.cli.demo import show_tour
from discreet.core.registry import FIRST
from discreet.data.facts import PublicFacts
from discreet.model_settings import describe_models, estimator
from discreet.models.user_factorization.settings import BOUND, EDGE, STATED, FactorizationSettings
from discreet.report.label import label_table
from discreet.reproduce import papers_folder, papers_pages

HERE = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"


def kept(name: str) -> dict[str, Any]:
    """Return a kept result with how it was measured."""
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf8"))
    return content


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    titles = list(head)
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def fill(text: str, part: str, content: str) -> str:
    """Replace what stands between the comments that mark a part."""
    pattern = re.compile(rf"(<!-- {part} -->\n).*?(<!-- /{part} -->)", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}{content}\n{match[2]}", text)


# Parts of pages that the program writes.

# What `discreet models` prints, kept so that it needs no model to be loaded.
TABLE = ROOT / "src" / "discreet" / "cli" / "models.json"


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
    cells = ([f"`{row[one]}`" if one == "name" else row[one] for one in columns] for row in rows)
    return markdown((titles[one] for one in columns), cells)


def demo_output() -> str:
    """Return what `discreet demo` prints, as a Markdown block."""
    screen = io.StringIO()
    show_tour(demo.run(), Console(file=screen, width=88))
    return "```\n" + screen.getvalue().strip() + "\n```"


def installs_table() -> str:
    """Return what each extra adds to a plain installation, as measured."""
    measured = kept("install_sizes")["result"]
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


#: What pages take from the program, under the name of the comments around it.
PARTS: list[tuple[Path, str, Callable[[], str]]] = [
    (HERE / "models.md", "models", first_models_table),
    (HERE / "models.md", "baselines", baselines_table),
    (HERE / "research.md", "research", research_table),
    (HERE / "federated.md", "federated", federated_models),
    (HERE / "labels.md", "label", example_label),
    (HERE / "start.md", "installs", installs_table),
    (HERE / "data.md", "datasets", datasets_table),
]


def write_parts(made: Making) -> None:
    """Fill what pages take from the program, and write the table of models."""
    asked = [(HERE / "start.md", "demo", demo_output)] if made.options.demo else []
    filled: dict[Path, str] = {}
    for page, part, content in PARTS + asked:
        filled[page] = fill(filled.get(page) or page.read_text(encoding="utf8"), part, content())
    filled[TABLE] = model_table()
    for page, text in filled.items():
        made.write(page, text)


# accuracy.md, from benchmarks/results/accuracy.json.

ACCURACY = HERE / "accuracy.md"
EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
NAMES = {
    "restaurant-consumer": "restaurants",
    "amazon-instant-video": "Amazon instant video",
    "movielens-100k": "MovieLens 100K",
    "movielens-latest-small": "MovieLens latest small",
    "discreet-demo": "discreet-demo",
    "movietweetings-100k": "MovieTweetings",
    "jester": "Jester",
    "movielens-1m": "MovieLens 1M",
    "amazon-sports": "Amazon sports",
}
LISTS = ("user-factorization", "choices-only", "implicit-objective", "popularity")
RATINGS = ("user-factorization", "covariance-svd", "frank-wolfe", "biases")
LATER = ("user-factorization", "choices-only", "recent-choices", "popularity", "recent-popularity")
# What a model is called on the page, where the results have another name for it.
SHOWN = {
    "choices-only": "user-factorization --implicit",
    "recent-choices": "user-factorization --implicit --set half_life=30",
    "recent-popularity": "popularity --set half_life=30",
}
BARS = {
    "hr@10": ("implicit-als", "ease", "item-knn", "markov-chain"),
    "rmse": ("als",),
    "later:hr@10": ("ease", "item-knn", "markov-chain"),
}


def accuracy_table(results: dict[str, Any], models: tuple[str, ...], metric: str) -> str:
    """Return one row for each data set and model, the best private model of each column in bold."""
    rows = []
    for name, title in NAMES.items():
        found = results["means"].get(name, {})
        shown = [model for model in models if any(metric in cell for cell in found.get(model, {}).values())]
        best = {epsilon: _best(found, shown, epsilon, metric) for epsilon in EPSILONS}
        for row, model in enumerate(shown):
            cells = [_score(found[model].get(epsilon, {}).get(metric), best[epsilon]) for epsilon in EPSILONS]
            head = f"{title} ({results['people'][name]:,})" if row == 0 else ""
            bar = _bar(found, metric) if row == 0 else ""
            rows.append([head, f"`{SHOWN.get(model, model)}`", *cells, bar])
    return markdown(["data (users)", "model", *EPSILONS, "best baseline"], rows)


def _best(found: dict[str, Any], models: list[str], epsilon: str, metric: str) -> float | None:
    values = [found[model][epsilon][metric] for model in models if metric in found[model].get(epsilon, {})]
    return (min(values) if metric == "rmse" else max(values)) if values else None


def _score(value: float | None, best: float | None) -> str:
    if value is None or best is None:
        return ""
    text = f"{value:.3f}"
    return f"**{text}**" if text == f"{best:.3f}" else text


def _bar(found: dict[str, Any], metric: str) -> str:
    without_noise = {bar: found.get(bar, {}).get("inf", {}) for bar in BARS[metric]}
    bars = {bar: cell[metric] for bar, cell in without_noise.items() if metric in cell}
    if not bars:
        return ""
    name = (min if metric == "rmse" else max)(bars, key=lambda bar: bars[bar])
    return f"{bars[name]:.3f} (`{name}`)"


def accuracy_filled(text: str, results: dict[str, Any]) -> str:
    """Return the page with its tables as measured."""
    text = fill(text, "lists", accuracy_table(results, LISTS, "hr@10"))
    text = fill(text, "later", accuracy_table(results, LATER, "later:hr@10"))
    return fill(text, "ratings", accuracy_table(results, RATINGS, "rmse"))


def write_accuracy(made: Making) -> None:
    """Fill the tables of accuracy.md: which model wins where."""
    made.write(ACCURACY, accuracy_filled(ACCURACY.read_text(encoding="utf8"), kept("accuracy")))


# constants.md, from benchmarks/results/ablation.json.

CONSTANTS = HERE / "constants.md"
# A difference of so many standard errors is called clear; with few seeds some of these are still chance.
ERRORS = 5.0
USUAL = FactorizationSettings()
CONSTANTS_HEAD = """# Constants of `user-factorization`

`docs/build.py constants` writes this page from `benchmarks/results/ablation.json`, so don't edit it.
The values are in `src/discreet/models/user_factorization/settings.py`. All of them are public.

The sections on half and double show an ablation of the constants of version 0.2.
In version 0.3, one value replaces several of these constants.
We set each constant to half and to double its value (or to the largest value that the budget allows).
We then fitted a model on a validation part: the fit doesn't use each user's latest item, and the item
before it is hidden. Delta is 1e-5, and the noise is simulated.
A difference is the mean over seeds, compared with the usual value and the same seed.
A difference above {errors:g} standard errors is **bold**. With few seeds and many cells, a few bold
differences are due to chance. "=" means that no seed changed the result. "-" means that the fit doesn't
read the constant.
A larger HR@10 and a smaller RMSE are better.
"""


def _sides(sides: dict[str, Any] | None, name: str) -> str:
    """Return the differences at half and double in one column."""
    if sides is None:
        return ""
    if not sides or not any(name in (one or {}) for one in sides.values()):
        return "-"
    return " / ".join(_difference((sides.get(side) or {}).get(name)) for side in ("half", "double"))


def _difference(found: dict[str, float] | None) -> str:
    """Return one difference, in bold if it is above the noise."""
    if found is None:
        return "."
    if found["mean"] == 0 and found["error"] == 0:
        return "="
    text = f"{found['mean']:+.3f}"
    return f"**{text}**" if _is_clear(found) else text


def _is_clear(found: dict[str, float]) -> bool:
    """Return whether a difference is above the noise."""
    return abs(found["mean"]) > ERRORS * found["error"] and abs(found["mean"]) >= 5e-4


def _effects(results: dict[str, Any]) -> dict[str, set[str]]:
    """Return constants by what was seen: clear effects, no clear effect, no change at all, not read."""
    kinds: dict[str, set[str]] = {"clear": set(), "within noise": set(), "unchanged": set(), "unread": set()}
    for name in USUAL.described():
        cells = [
            one
            for data in results["data"].values()
            for side in data["constants"].get(name, {}).values()
            for key, one in (side or {}).items()
            if key != "value"
        ]
        if not cells:
            kinds["unread"].add(name)
        elif all(one["mean"] == 0 == one["error"] for one in cells):
            kinds["unchanged"].add(name)
        else:
            kinds["clear" if any(map(_is_clear, cells)) else "within noise"].add(name)
    return kinds


def constants_page(results: dict[str, Any]) -> str:
    """Return the page."""
    described = USUAL.described()
    values = (
        (f"`{name}`", f"{attrgetter(name)(USUAL):g}", one.meaning, one.chosen)
        for name, one in described.items()
    )
    lines = [CONSTANTS_HEAD.format(errors=ERRORS), "## Values", ""]
    lines += [markdown(("constant", "value", "meaning", "chosen"), values), "", *_compared(results["merged"])]
    for data, found in results["data"].items():
        usual = ", ".join(
            f"{name}: {one['mean']:.4f} ± {one['spread']:.4f}" for name, one in found["usual"].items()
        )
        lines += ["", f"## Half / double on {data}", ""]
        lines += [f"{found['seeds']} seeds. Usual values (mean and deviation over seeds): {usual}.", ""]
        measured = [_constant(name, found) for name in described if found["constants"].get(name)]
        lines += [markdown(("constant", "tried", *found["usual"]), measured)]
        unread = [f"`{name}`" for name in described if found["constants"].get(name) == {}]
        left = [f"`{name}`" for name in described if name not in found["constants"]]
        lines += ["", f"Not read by these fits: {', '.join(unread) or 'none'}."]
        lines += [f"Not measured: {', '.join(left) or 'none'}."]
    lines += ["", "## Summary", "", *_summary(_effects(results))]
    return "\n".join(lines) + "\n"


def _compared(merged: dict[str, dict[str, list[float]]]) -> list[str]:
    """Return the scores before and after constants were merged, with their deviation over seeds."""
    lines = [
        "## Before and after one value replaced several",
        "",
        "The validation parts are the same. We state mean and deviation over seeds of simulated noise.",
        "",
    ]
    rows = []
    for key, before in merged["before"].items():
        scores = [before, merged["after"][key]]
        shown = [f"{mean(one):.4f} ± {stdev(one) if len(one) > 1 else 0:.4f}" for one in scores]
        rows.append((key, len(before), *shown))
    return [*lines, markdown(("data, epsilon, purpose, metric", "seeds", "before", "after"), rows)]


def _constant(name: str, found: dict[str, Any]) -> list[str]:
    """Return a constant's row for one data set."""
    sides = found["constants"][name]
    tried = " / ".join("." if sides[side] is None else f"{sides[side]['value']:g}" for side in sides)
    return [f"`{name}`", tried, *(_sides(sides, one) for one in found["usual"])]


def _summary(kinds: dict[str, set[str]]) -> list[str]:
    """Return which constants matter here."""
    words = {
        "clear": "An effect above the noise",
        "within noise": "Differences within the noise",
        "unchanged": "No change at all",
        "unread": "Not read, not measured, or new",
    }
    lines = []
    for kind, names in kinds.items():
        listed = ", ".join(f"`{name}`" for name in USUAL.described() if name in names)
        lines.append(f"- {words[kind]} ({len(names)}): {listed or 'none'}.")
    chosen = [one.chosen for one in USUAL.described().values()]
    fixed = sum(one in (BOUND, EDGE, STATED) for one in chosen)
    keep = (
        f"Of {len(chosen)} settings, {len(chosen) - fixed} are tuned. Three tuned constants are elsewhere: "
        "`COUNT_PART` in `statistics/typical.py`, and two in `models/scorers/factors.py` that all models "
        f"with counts share. The other {fixed} settings bound time, memory, or sizes, are the edge of the "
        "noise in theory, or are a documented cost. Numbers with a reason are next to their code, such as "
        "weights of count^-1/2, which give all sums one variance."
    )
    return [*lines, "", keep]


def write_constants(made: Making) -> None:
    """Write constants.md: the tuned constants of user-factorization, and what each is worth."""
    made.write(CONSTANTS, constants_page(kept("ablation")))


# Papers.


def pages_of_papers() -> dict[str, str]:
    """Return the pages as the committed results have them, by their place in docs/."""
    return papers_pages(papers_folder(), HERE)


def write_papers(made: Making) -> None:
    """Write papers.md and the page of each paper from the committed results."""
    for place, text in pages_of_papers().items():
        made.write(HERE / place, text)


# The notebook. A notebook server does the same; this needs no more than the package.

NOTEBOOK = HERE / "tutorial.ipynb"


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


def write_tutorial(made: Making) -> None:
    """Run the cells of the notebook in order and keep what they show; noise is new each time."""
    found = executed(json.loads(NOTEBOOK.read_text(encoding="utf8")))
    made.write(NOTEBOOK, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
