"""Find the shell commands that pages show, in indented blocks and in fenced blocks for a shell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SHELLS = ("", "bash", "sh", "shell", "console")
_PROGRAMS = (
    "discreet",
    "python",
    "pip",
    "make",
    "dask",
    "aws",
    "curl",
    "git",
    "docker",
    "podman",
    "mkdocs",
    "nginx",
)
# An indented block below a list is set deeper; its commands begin with a program all the same.
_INDENTED = re.compile(r"^ {4,}(\S.*)$", re.MULTILINE)


class Command(NamedTuple):
    """One command without its comment, and the page that shows it."""

    page: str
    text: str


def commands(page: Path, root: Path) -> list[Command]:
    """Return the commands of a page in order; lines that a backslash ends are joined."""
    text = page.read_text(encoding="utf8")
    found: list[tuple[int, str]] = []
    for block in _FENCE.finditer(text):
        if block[1] in _SHELLS:
            found += [(block.start(), line) for line in _joined(block[2])]
    outside = _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    found += [(1, line) for line in _joined("\n".join(_INDENTED.findall(outside)))]
    name = page.relative_to(root).as_posix()
    return [Command(name, line) for _, line in found if _is_command(line)]


def _joined(block: str) -> list[str]:
    lines = re.sub(r"\s*\\\n\s*", " ", block).split("\n")
    return [_without_comment(line).removeprefix("$ ") for line in lines]


def _without_comment(line: str) -> str:
    # A comment stands behind two or more spaces; some have no sign before them.
    return re.split(r"\s{2,}|\s+#\s", line.strip())[0]


def _is_command(line: str) -> bool:
    words = [word for word in line.split() if "=" not in word or word.startswith("-")]
    return bool(words) and words[0] in _PROGRAMS
