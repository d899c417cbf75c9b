"""The page about adding a model is followed to the letter, in a folder of its own."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "adding_a_model.md"


def files():
    """Return the files that the page shows, by name."""
    text = PAGE.read_text(encoding="utf8")
    return dict(re.findall(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


def commands():
    """Return the commands that the page shows."""
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf8"), re.DOTALL | re.MULTILINE)
    return [line.split()[1:] for line in block.splitlines()]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Write the files, and describe the package as an installer does."""
    folder = tmp_path_factory.mktemp("top shelf")
    for name, text in files().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf8")
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf8"))["project"]
    described = folder / "discreet_top_shelf-1.0.dist-info"
    described.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}", ""]
    (described / "METADATA").write_text("\n".join(lines))
    points = [
        "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    (described / "entry_points.txt").write_text("\n".join(points) + "\n")
    rng = np.random.default_rng(0)
    rows = [f"{user},{item},1" for user in range(80) for item in rng.choice(25, 6, replace=False)]
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating", *rows]) + "\n")
    return folder


def run(folder, *arguments):
    path = os.pathsep.join([str(folder), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


SUITES = ("-m", "pytest", "-q", "-rsf", "-p", "no:randomly", "-p", "no:cacheprovider", "--rootdir", ".")


def test_the_model_of_the_page_passes_the_shipped_suites(package):
    found = run(package, *SUITES, "test_top_shelf.py")
    assert found.returncode == 0, found.stdout[-3000:]
    passed = int(re.search(r"(\d+) passed", found.stdout).group(1))
    # Registered names are looked up, so the entry points work; little is left to skip.
    assert passed > 45 and "not registered" not in found.stdout


@pytest.mark.slow
def test_a_mistake_in_it_is_noticed(package, tmp_path):
    """The twin: without its noise the same file fails the same suite.

    By default test_estimator_contract.py shows that every check of the suite can fail.
    """
    code = (package / "top_shelf.py").read_text(encoding="utf8")
    broken = code.replace("gaussian(self.multiplier()).release(votes.steps(), random)", "votes.floats()")
    assert broken != code
    (tmp_path / "top_shelf.py").write_text(broken, encoding="utf8")
    (tmp_path / "test_top_shelf.py").write_text(files()["test_top_shelf.py"], encoding="utf8")
    (tmp_path / "proofs").mkdir()
    (tmp_path / "proofs" / "top_shelf.md").write_text(files()["proofs/top_shelf.md"], encoding="utf8")
    found = run(tmp_path, *SUITES, "test_top_shelf.py")
    failed = set(re.findall(r"^FAILED .*::(\w+)", found.stdout, re.MULTILINE))
    assert failed == {
        "test_same_simulation_same_model_and_other_noise_other_model",
        "test_what_is_published_of_users_is_what_mechanisms_returned",
    }


# All commands in one process: most of the time of each goes into loading libraries.
COMMAND_LINE = """
import contextlib, io, json, sys
from discreet.cli import main
ended = []
for words in json.loads(sys.argv[1]):
    sys.argv, code, told = ["discreet", *words], 0, io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    ended.append([code, told.getvalue()])
print(json.dumps(ended))
"""


@pytest.mark.thorough
def test_the_commands_of_the_page_run(package):
    found = run(package, "-c", COMMAND_LINE, json.dumps(commands()))
    assert found.returncode == 0, found.stdout + found.stderr
    said = {
        "models": "discreet-top-shelf",
        "fit": "mine.discreet",
        "evaluate": "hit-first@1",
        "model": "top-shelf",
    }
    assert [words[0] for words in commands()] == [*said]
    for expected, (code, told) in zip(said.values(), json.loads(found.stdout), strict=True):
        assert code == 0 and expected in told, told


def test_the_page_names_every_test_that_asks():
    text = PAGE.read_text(encoding="utf8")
    named = re.findall(r"`((?:tests|src|docs|papers|evaluation|planning)/[\w/.]+)`", text)
    assert len(named) >= 10
    for path in named:
        roots = (ROOT, ROOT / "src" / "discreet")
        assert any((root / path).exists() for root in roots), path
