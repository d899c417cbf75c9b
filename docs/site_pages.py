"""Make the pages of the site that come from elsewhere: README, proofs, commands, API, errors."""

from __future__ import annotations

import functools
import inspect
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

import mathematics
import refusals

import discreet
from discreet import collect, federated

ROOT = Path(__file__).parents[1]
# The pages by what a reader wants. Every page of docs/ stands here; a new one comes under Other until it is.
ORDER: dict[str, dict[str, str]] = {
    "Tutorial": {
        "Overview": "index.md",
        "Start": "start.md",
        "A year of releases": "a_year.md",
        "Fresh all year": "fresh.md",
    },
    "How-to": {
        "Choose a model": "choosing.md",
        "Prepare data": "data.md",
        "Collect locally": "collecting.md",
        "Recommend on the device": "on_device.md",
        "Federate": "federated.md",
        "Scale out": "scale.md",
        "Evaluate": "evaluation.md",
        "Give data away": "give_data_away.md",
        "Audit": "audit.md",
        "Serve a model": "serving.md",
        "Use a model in other tools": "exporting.md",
    },
    "Reference": {
        "CLI, API and errors": "reference.md",
        "Commands": "reference/commands.md",
        "Python": "reference/api.md",
        "Errors": "troubleshooting.md",
        "Models": "models.md",
        "Accuracy": "accuracy.md",
        "Results": "results.md",
        "Labels, formats and glossary": "labels.md",
        "Changelog": "changelog.md",
    },
    "Explanation": {"Guarantees and limits": "limits.md"},
    "Contributing": {
        "Contributing": "contributing.md",
        "Architecture": "architecture.md",
        "Add a model": "adding_a_model.md",
        "Tuned constants": "constants.md",
        "What stays the same": "stability.md",
    },
    "Papers": {
        "Papers": "papers.md",
        "One-bit": "papers/one-bit.md",
        "Frank-Wolfe": "papers/frank-wolfe.md",
        "Local mixture": "papers/local-mixture.md",
        "Collection": "papers/collection.md",
        "Implicit": "papers/implicit.md",
        "Claims under audit": "papers/audit.md",
    },
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
        "troubleshooting.md": troubleshooting_page(),
        "reference/commands.md": commands_page(),
        "reference/api.md": api_page(),
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
    from discreet.cli.application import SEVERAL, VERBS, verb_command

    lines = ["# Commands", "", "Made from the program; `discreet VERB --help` prints the same.", ""]
    for name in VERBS:
        command = verb_command(name)
        parts = getattr(command, "commands", {}) if name in SEVERAL else {}
        for called, one in (parts or {"": command}).items():
            lines += _command(" ".join(["discreet", name, called]).strip(), one)
    return "\n".join(lines)


def _command(called: str, command: Any) -> list[str]:
    lines = [f"## {called}", "", (command.help or "").strip(), "", "| option | meaning |", "|---|---|"]
    for parameter in command.params:
        names = ", ".join(f"`{name}`" for name in parameter.opts) if parameter.opts else f"`{parameter.name}`"
        if parameter.param_type_name == "argument":
            names = f"`{(parameter.name or '').upper()}`"
        words = (getattr(parameter, "help", None) or "").replace("|", "\\|").replace("\n", " ")
        needed = " *(needed)*" if parameter.required else ""
        if parameter.name != "help":
            lines.append(f"| {names} | {words}{needed} |")
    return [*lines, ""]


def api_page() -> str:
    """Show every exported name with its signature and docstring."""
    lines = ["# Python", "", "Everything below is imported from the package named above it.", ""]
    for package in (discreet, collect, federated):
        lines += [f"## {package.__name__}", ""]
        for name in package.__all__:
            if name != "__version__":
                lines += _member(name, getattr(package, name))
    return "\n".join(lines)


def _member(name: str, found: Any) -> list[str]:
    lines = [f"### {name}", ""]
    if callable(found) and not (inspect.isclass(found) and issubclass(found, Exception)):
        lines += ["```python", f"{name}{_signature(found)}", "```", ""]
    lines += ["```text", inspect.getdoc(found) or "", "```", ""]
    if inspect.isclass(found):
        public = [
            one for one in vars(found) if not one.startswith("_") and inspect.isfunction(vars(found)[one])
        ]
        for one in public:
            summary = (inspect.getdoc(vars(found)[one]) or "").splitlines()[:1]
            lines.append(f"- `{one}{_signature(vars(found)[one])}` {''.join(summary)}")
    return [*lines, ""]


def _signature(found: Any) -> str:
    try:
        return re.sub(
            r"\bself, |\(self\)", lambda match: "()" if "(" in match[0] else "", str(inspect.signature(found))
        )
    except (TypeError, ValueError):
        return "(...)"


def troubleshooting_page() -> str:
    """List every sentence the program may refuse with, and what it comes from."""
    source = refusals.Source.of(ROOT / "src" / "discreet")
    lines = [
        "# Errors",
        "",
        "Every error is one sentence. Here are all of them, read from the program; dots stand for what a",
        "sentence fills in. Search for two words of yours. The right column says what was being done.",
        "",
    ]
    for kind, cause in source.causes().items():
        rows = [one for one in source.refusals[0] if one.kind == kind]
        lines += [f"## {kind}", "", cause, "", "| sentence | while |", "|---|---|"]
        lines += [f"| {_cell(one.sentence)} | {_cell(one.when)} |" for one in rows] + [""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ").replace("[", "\\[")


def on_config(config: Any) -> Any:
    """Put the pages that are there into order."""
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
    others = sorted(there - named - set(proofs) - {"proofs/index.md"})
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


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mend links of pages that are files of `docs/`."""
    source = ROOT / "docs" / page.file.src_uri
    return relinked(markdown, source, page.file.src_uri) if source.exists() else markdown
