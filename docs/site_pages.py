"""Make the pages of the site that come from elsewhere: README, proofs, commands, API, errors."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import mathematics
from pages import FIRST, NOTEBOOK, as_markdown

import discreet
from discreet import collect, federated, model_settings

ROOT = Path(__file__).parents[1]
# The pages by need: tutorials, how-to guides, reference, explanation (Diátaxis). A page of docs/ that isn't
# listed here appears under Other.
ORDER: dict[str, dict[str, str]] = {
    "Tutorials": {
        "Overview": "index.md",
        "Quickstart": "start.md",
        "Notebook": "tutorial.md",
        "A year at a shop": "a_year.md",
    },
    "How-to": {
        "Prepare data": "data.md",
        "Choose a model and an epsilon": "choosing.md",
        "Evaluate": "evaluation.md",
        "Keep recommendations fresh": "fresh.md",
        "Serve a model": "serving.md",
        "Recommend on the device": "on_device.md",
        "Export to other tools": "exporting.md",
        "Share synthetic data": "give_data_away.md",
        "Collect ratings without seeing them": "collecting.md",
        "Train across companies": "federated.md",
        "Scale out": "scale.md",
        "Audit a model or your code": "audit.md",
        "Troubleshooting by symptom": "symptoms.md",
        "Migrate from 0.2": "migration.md",
    },
    "Reference": {
        "All pages": "contents.md",
        "Overview of commands and errors": "reference.md",
        "Commands": "reference/commands.md",
        "Models in Python": "reference/python.md",
        "Data in Python": "reference/data.md",
        "Guarantees and ledgers in Python": "reference/privacy.md",
        "Evaluation in Python": "reference/evaluation.md",
        "Exceptions": "reference/errors.md",
        "discreet.collect": "reference/collect.md",
        "discreet.federated": "reference/federated.md",
        "Errors": "troubleshooting.md",
        "Models": "models.md",
        "Research methods": "research.md",
        "Labels and formats": "labels.md",
        "Accuracy": "accuracy.md",
        "Results": "results.md",
        "Glossary": "glossary.md",
        "Stability policy": "stability.md",
        "Changelog": "changelog.md",
    },
    "Explanation": {
        "Concepts": "concepts.md",
        "What the guarantee doesn't cover": "limits.md",
        "How many users do you need?": "how_many_users.md",
        "Methodology": "methodology.md",
        "For privacy officers": "privacy_officers.md",
        "Compared with other libraries": "compared.md",
    },
    "Reproduced papers": {
        "Papers": "papers.md",
        "Commands": "paper_commands.md",
        "One-bit": "papers/one-bit.md",
        "Frank-Wolfe": "papers/frank-wolfe.md",
        "Local mixture": "papers/mixture.md",
        "Collection": "papers/collection.md",
        "Implicit": "papers/dpimf.md",
        "Claims under audit": "papers/audit.md",
    },
    "Project": {
        "Contributing": "contributing.md",
        "Architecture": "architecture.md",
        "Add a model": "adding_a_model.md",
        "Tuned constants": "constants.md",
    },
}
# What new users searched for and did not find, and the page that has it.
SEARCHED = {
    "timestamp": "data",
    "baseline": "evaluation",
    "embedding": "exporting",
    "vector store": "exporting",
    "implicit feedback": "evaluation",
    "duplicates": "data",
    "cold start": "models",
    "incremental training": "fresh",
    "retrain": "a_year",
}
# Symptoms as users type them, written down before the pages that answer them, and the pages that answer. One
# of these pages must be among the first three results.
SYMPTOMS = {
    "all recommendations are popular items": ("symptoms",),
    "every user gets the same recommendations": ("symptoms",),
    "first fit is slow": ("symptoms",),
    "label says private if": ("symptoms", "labels"),
    "budget exceeded": ("symptoms", "a_year"),
    "fit failed but budget is spent": ("symptoms",),
    "duplicate user item pairs": ("symptoms", "data"),
    "wrong date format day month": ("symptoms", "data"),
    "out of memory": ("symptoms", "scale"),
    "new item is never recommended": ("symptoms", "models"),
    "recommendations for a user without history": ("start", "symptoms", "models"),
    "predicted ratings are all the same": ("symptoms",),
    "accuracy worse than baseline": ("symptoms", "evaluation"),
    "good offline scores but poor live results": ("symptoms", "evaluation"),
    "user asks to be deleted": ("a_year", "fresh", "symptoms"),
    "csv encoding error": ("data", "symptoms"),
    "how many users do I need": ("how_many_users",),
    "party does not answer": ("federated", "symptoms"),
    "can I publish evaluation scores": ("evaluation", "symptoms"),
    "model is simulated": ("symptoms", "limits", "labels"),
    "filter rows by event type": ("data", "symptoms"),
    "how much privacy budget is left": ("symptoms", "a_year"),
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


@functools.cache
def generated() -> dict[str, str]:
    """Return the text of every page that is not a file of `docs/`, by its place in the site."""
    pages = {
        "index.md": _moved(ROOT / "README.md", "index.md"),
        "changelog.md": _moved(ROOT / "CHANGELOG.md", "changelog.md"),
        "contributing.md": _moved(ROOT / "CONTRIBUTING.md", "contributing.md"),
        "proofs/index.md": proofs_page(),
        "tutorial.md": as_markdown(json.loads(NOTEBOOK.read_text(encoding="utf8"))),
        "troubleshooting.md": troubleshooting_page(),
        "reference/commands.md": commands_page(),
        **api_pages(),
    }
    for path in sorted((ROOT / "proofs").glob("*.md")):
        place = f"proofs/{path.name}"
        linked = re.sub(r"(?<!\[)`proofs/(\w+)\.md`", r"[`proofs/\1.md`](\1.md)", _moved(path, place))
        pages[place] = mathematics.set_page(linked)
    return pages


def relinked(text: str, source: Path, place: str) -> str:
    """Return a page with links that hold in the site; what the site does not have is no link there."""

    def fixed(match: re.Match[str]) -> str:
        image, words, target = match.groups()
        path, _, mark = target.partition("#")
        if "://" in target or not path or target.startswith("mailto:"):
            return match[0]
        found = Path(os.path.normpath(source.parent / path))
        inside = _place(found)
        if inside is None:
            return words
        here = PurePosixPath(place).parent
        return f"{image}[{words}]({os.path.relpath(inside, here)}{'#' + mark if mark else ''})"

    return _LINK.sub(fixed, text)


def _place(path: Path) -> str | None:
    """Return where the site keeps a file of the repository."""
    homes = {
        ROOT / "README.md": "index.md",
        ROOT / "CHANGELOG.md": "changelog.md",
        ROOT / "CONTRIBUTING.md": "contributing.md",
        ROOT / "proofs": "proofs/index.md",
        NOTEBOOK: "tutorial.md",
    }
    if path in homes:
        return homes[path]
    if path.suffix in (".md", ".png", ".svg") and path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    if path.suffix == ".md" and path.is_relative_to(ROOT / "proofs"):
        return f"proofs/{path.name}"
    if path in _paper_pictures():
        return path.relative_to(ROOT).as_posix()
    return None


@functools.cache
def _paper_pictures() -> list[Path]:
    """Return the figures of the papers, which the site shows from where they are."""
    return sorted([*(ROOT / "papers").glob("*/results/*.png"), *(ROOT / "papers").glob("*/results/*.svg")])


def _moved(path: Path, place: str) -> str:
    return relinked(path.read_text(encoding="utf8"), path, place)


def proofs_page() -> str:
    """List the proofs by the titles of their notes."""
    lines = [
        "# Proofs",
        "",
        "One note for each mechanism and estimator: assumptions, claim, proof, code.",
        "",
    ]
    for path in sorted((ROOT / "proofs").glob("*.md")):
        title = path.read_text(encoding="utf8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join([*lines, ""])


def commands_page() -> str:
    """Describe every verb from the program itself."""
    from discreet.cli.application import command
    from discreet.cli.verbs import OLD, OLD_PARTS, commands

    lines = ["# Commands", "", "Made from the program; `discreet COMMAND --help-all` prints the same.", ""]
    for words in commands():
        lines += _command(" ".join(("discreet", *words)), command(words))
    lines += ["## Old names", "", "They work in this version and print a hint.", ""]
    lines += ["| old | new |", "|---|---|"]
    moved = {(old,): new for old, new in OLD.items()}
    moved |= {(old, part): new for old, parts in OLD_PARTS.items() for part, new in parts.items()}
    for old, new in moved.items():
        lines.append(f"| `discreet {' '.join(old)}` | `discreet {' '.join(new)}` |")
    lines.append("")
    return "\n".join(lines)


def _command(called: str, command: Any) -> list[str]:
    lines = [f"## {called}", "", (command.help or "").strip(), "", "| option | meaning |", "|---|---|"]
    for parameter in command.params:
        names = ", ".join(f"`{name}`" for name in parameter.opts) if parameter.opts else f"`{parameter.name}`"
        if parameter.param_type_name == "argument":
            names = f"`{(parameter.name or '').upper()}`"
        words = _cell(getattr(parameter, "help", None) or "")
        needed = " *(needed)*" if parameter.required else ""
        if parameter.name != "help":
            lines.append(f"| {names} | {words}{needed} |")
    return [*lines, ""]


# The names of `discreet` that are no models, by page.
_NAMES = {
    "data": "read from_frame catalog Interactions PublicFacts Vocabulary PrivateCatalog PrivateScale "
    "synthesize",
    "privacy": "Guarantee Unit Neighbors Trust Basis Ledger plan PrivacyRandom",
    "evaluation": "trial Trial evaluate compare Evaluation write_report "
    "evaluate_privately choose_privately fit_and_evaluate",
    "errors": "DiscreetError ParameterError DataError FileError PrivacyError BudgetError",
}
_TITLES = {
    "data": "Data",
    "privacy": "Guarantees, ledgers, plans and noise",
    "evaluation": "Evaluation",
    "errors": "Exceptions",
}
# What stands in signatures and is no name of the package itself.
_KEYWORDS = {
    "data": (
        "reading.readers.ReadOptions",
        "reading.readers.SourceOptions",
        "reading.readers.TableOptions",
        "facts.Declarations",
        "guessing.TextOptions",
        "roles.Choice",
        "reading.readers.Zeros",
    )
}


def api_pages() -> dict[str, str]:
    """Return the pages of the Python API; mkdocstrings writes signatures, sections and sources into them."""
    pages = {"reference/python.md": _models_page()}
    for name, listed in _NAMES.items():
        pages[f"reference/{name}.md"] = "\n".join(
            [
                f"# {_TITLES[name]}",
                "",
                *_members("discreet", listed.split()),
                *_members("discreet.data", _KEYWORDS.get(name, ())),
            ]
        )
    for package in (collect, federated):
        name = package.__name__
        title = f"# {name}\n\n{inspect.getdoc(package)}\n"
        pages[f"reference/{name.partition('.')[2]}.md"] = "\n".join([title, *_members(name, package.__all__)])
    return pages


def _models_page() -> str:
    """Return the page of all models: the one to start with first, those without privacy last."""
    elsewhere = {name for listed in _NAMES.values() for name in listed.split()}
    classes = {
        found.name: name
        for name in discreet.__all__
        if name not in elsewhere
        and inspect.isclass(found := getattr(discreet, name))
        and issubclass(found, discreet.Estimator)
        and found is not discreet.Estimator
    }
    baselines = [name for name in classes if model_settings.is_never_private(name)]
    others = [name for name in classes if name not in (*FIRST, *baselines)]
    lines = ["# Models in Python", "", "`estimator.fit(data)` returns a `FittedModel`, which recommends.", ""]
    for title, names in (
        ("Models to start with", [classes[name] for name in FIRST]),
        ("What every model does", ["Estimator", "FittedModel", "load"]),
        ("Other private models", [classes[name] for name in others]),
        ("Baselines without privacy", [classes[name] for name in baselines]),
    ):
        lines += [f"## {title}", "", *_members("discreet", names)]
    return "\n".join(lines)


def _members(package: str, names: Iterable[str]) -> list[str]:
    return [line for name in names for line in (f"::: {package}.{name}", "")]


def troubleshooting_page() -> str:
    """List every error of the program with its message."""
    from discreet.cli.error_codes import described, error_classes

    rows = [described(kind) for kind in error_classes().values()]
    lines = [
        "# Errors",
        "",
        "An error has a code, such as `out-of-range`. `discreet errors CODE` explains it. In Python, the",
        "code and the fields in braces are attributes of the error. Over HTTP they are fields of the answer.",
        "",
        "| code | message |",
        "|---|---|",
        *(f"| `{row['code']}` | {_cell(row['message'])} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ").replace("[", "\\[")


def on_config(config: Any) -> Any:
    """Put the pages that are there into order."""
    # Exported names are computed, which a reader of source code cannot follow; the pages name each of them.
    logging.getLogger("mkdocs.plugins.griffe").addFilter(lambda record: "__all__" not in record.getMessage())
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} | set(
        generated()
    )
    named = {page for pages in ORDER.values() for page in pages.values()}
    nav: list[Any] = [
        {section: [{title: page} for title, page in pages.items() if page in there]}
        for section, pages in ORDER.items()
    ]
    proofs = sorted(
        page for page in there - named if page.startswith("proofs/") and page != "proofs/index.md"
    )
    nav.append({"Proofs": ["proofs/index.md", *proofs]})
    decisions = sorted(page for page in there - named if page.startswith("decisions/"))
    nav.append({"Decisions": [*decisions]})
    others = sorted(there - named - {*proofs, *decisions, "proofs/index.md"})
    nav += [{"Other": others}] if others else []
    config.nav = nav
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    from mkdocs.structure.files import File

    for place, text in generated().items():
        files.append(File.generated(config, place, content=text))
    for path in _paper_pictures():
        place = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def search_boost(place: str) -> float:
    """Return the weight of a page in the search: symptoms first, and records of the project last."""
    if place == "symptoms.md":
        return 3.0
    known = {page for section in ("Tutorials", "How-to", "Explanation") for page in ORDER[section].values()}
    return 1.0 if place in {*known, "models.md", "labels.md", "research.md", "reference.md"} else 0.2


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fix links of pages that are files of `docs/`, and set the weight of the page in the search."""
    page.meta["search"] = {"boost": search_boost(page.file.src_uri)}
    source = ROOT / "docs" / page.file.src_uri
    return relinked(markdown, source, page.file.src_uri) if source.exists() else markdown


def unfound_symptoms(found: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the symptoms whose pages are not among the first three results."""
    return [symptom for symptom, pages in SYMPTOMS.items() if not {*found[symptom][:3]} & {*pages}]


def first_results(site: Path, queries: Iterable[str]) -> dict[str, list[str]]:
    """Return the first pages that the search of a built site finds for each query; needs node."""
    program = Path(__file__).with_name("site_search.js")
    answered = subprocess.run(
        ["node", program, site], input=json.dumps([*queries]), capture_output=True, text=True, check=True
    )
    found: dict[str, list[str]] = json.loads(answered.stdout)
    return found


def missing_words(index: dict[str, Any]) -> list[str]:
    """Return words that users search for and that the index doesn't have for the page they want."""
    texts: dict[str, str] = {}
    for part in index["docs"]:
        page = part["location"].partition(".html")[0]
        texts[page] = f"{texts.get(page, '')} {part['title']} {part['text']}".lower()
    return [word for word, page in SEARCHED.items() if word not in texts.get(page, "")]


def on_post_build(config: Any) -> None:
    """Raise an error if the search of the site does not find what users look for."""
    index = json.loads((Path(config.site_dir) / "search" / "search_index.json").read_text(encoding="utf8"))
    if missing := missing_words(index):
        raise RuntimeError(f"The search does not find {', '.join(missing)}. Use the words that readers use.")
    if shutil.which("node") is None:
        print("node is not installed, so the search for symptoms was not checked.")
    elif lost := unfound_symptoms(first_results(Path(config.site_dir), SYMPTOMS)):
        raise RuntimeError(f"No page for these symptoms is among the first three results: {'; '.join(lost)}.")
