"""Reviewed snapshots: what a command or a page shows, compared whole.

`tests/snapshots/` has one file for each file of tests, with a part for each text. If a text was changed on
purpose, `pytest --update-snapshots tests/cli/test_follow.py` writes it anew: read the difference before you
commit it.
"""

import html
import os
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FOLDER = TESTS / "snapshots"
# Wide enough that no line breaks in the middle of a path, whose length differs between machines.
_WIDTH = 1_000
_BORDER = re.compile(r"[\u2500-\u257f]+")
_DATES = re.compile(r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")
# What the next commit or release changes: digests of code and the version.
_DIGESTS, _VERSION = re.compile(r"\b(?=\d*[a-f])[0-9a-f]{16,64}\b"), re.compile(r"\bdiscreet \d+\.\d+\.\d+")
_DECIMALS = re.compile(r"\b\d+\.\d+(e-\d+)?\b")
_HEAD = "=== "


def stored(path):
    """Return the texts of a file of snapshots, by name."""
    if not path.exists():
        return {}
    parts = re.split(rf"(?m)^{_HEAD}(.*)\n", path.read_text(encoding="utf8"))[1:]
    return {name: text.rstrip("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}


def store(path, texts):
    """Write texts by name, in the order of their names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [f"{_HEAD}{name}\n{text}\n" for name, text in sorted(texts.items())]
    path.write_text("\n".join(parts), encoding="utf8")


def plain(text, folder, numbers=True):
    """Return a text without what differs between runs: a folder, dates, and lines of tables.

    Without `numbers`, decimals become `#`: they depend on the noise.
    """
    text = text.replace(str(folder), "FOLDER")
    text = re.sub("[━─]{2,}", "─", _DATES.sub("DATE", text))
    text = _VERSION.sub("discreet VERSION", _DIGESTS.sub("DIGEST", text))
    if not numbers:
        text = _DECIMALS.sub("#", text)
    lines = [re.sub(r" {2,}", "  ", line).rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if not _BORDER.fullmatch(line)).strip("\n")


def page_text(page):
    """Return what a reader of an HTML page sees as text, one element per line."""
    text = re.sub(r"(?s)<(style|script|svg)\b.*?</\1>", "", page)
    lines = (line.strip() for line in html.unescape(re.sub(r"<[^>]+>", "\n", text)).splitlines())
    return "\n".join(line for line in lines if line)


class Snapshots:
    """The snapshots of one test: each call compares the next text."""

    def __init__(self, path, name, folder, update):
        self._path, self._name, self._folder, self._update = path, name, folder, update
        self._calls = 0

    def __call__(self, text, numbers=True):
        """Assert that a text is the one that was reviewed."""
        if self._update is None:
            return
        self._calls += 1
        name = f"{self._name} {self._calls}"
        text = page_text(text) if text.lstrip()[:9].lower() == "<!doctype" else text
        found, texts = plain(text, self._folder, numbers), stored(self._path)
        if self._update:
            store(self._path, texts | {name: found})
        else:
            assert found == texts.get(name), "If the change is meant, run pytest with --update-snapshots."


@pytest.fixture
def snapshot(request, tmp_path, monkeypatch):
    """Compare a text with the one that was reviewed, whole."""
    monkeypatch.setenv("COLUMNS", str(_WIDTH))
    path = FOLDER / request.path.relative_to(TESTS).with_suffix(".txt")
    update = request.config.getoption("update_snapshots") and "PYTEST_XDIST_WORKER" not in os.environ
    if request.config.getoption("fresh_noise"):
        # What is shown may depend on the noise, which only repeats without this option.
        update = None
    return Snapshots(path, request.node.name, tmp_path, update)


def pytest_addoption(parser):
    """Add the option that writes snapshots anew."""
    parser.addoption("--update-snapshots", action="store_true", help="write what is shown now as reviewed")
