"""Everything that is committed runs: benchmarks, scripts of docs and papers at toy size, and examples.

Scripts are found, not listed. The papers themselves run in test_papers.py.
"""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from discreet import reproduce
from service.browser import CHROMIUM

ROOT = Path(__file__).parents[1]
SCRIPTS = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("benchmarks/*.py", "papers/*/*.py")
    for path in sorted(ROOT.glob(pattern))
    if '\nif __name__ == "__main__":' in path.read_text(encoding="utf8")
]
SCRIPTS += [f"docs/build.py {name}" for name in runpy.run_path(str(ROOT / "docs" / "build.py"))["BUILDS"]]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# They start servers, a browser or a federation of processes: by default only their options are parsed.
SLOW = {
    "benchmarks/answers.py",
    "benchmarks/bundle.py",
    "benchmarks/service.py",
    "benchmarks/soak.py",
    "benchmarks/dpimf_flower.py",
    "benchmarks/federated_flower.py",
    "docs/build.py screenshots",
}
# Other work that a script does when it is told to.
MODES = {
    "benchmarks/accuracy.py": [["--search"], ["--generated", "100"], ["--check"]],
    "benchmarks/als.py": [["--millions", "0.002"]],
}
NO_TOY = (
    "{} has no toy mode. Parse its arguments with benchmarks/harness.py, and let --toy "
    "finish in about a second without writing into the repository."
)
# Of the environment, not of the scripts.
pytestmark = pytest.mark.filterwarnings("ignore:.*threadpool.*:RuntimeWarning")


def committed():
    """Return when each file of the repository that a script might write was changed."""
    kept = [ROOT / "README.md", *(ROOT / "src" / "discreet").rglob("*.json")]
    for folder in ("benchmarks", "docs", "papers"):
        kept += [path for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    return {path: path.stat().st_mtime_ns for path in kept if path.is_file()}


@pytest.fixture
def start(monkeypatch, capsys, nothing_committed_changes):
    """Return a function that runs a script in this process and returns its names and what it printed."""

    def run(script, *arguments):
        name, *words = script.split()
        path = ROOT / name
        monkeypatch.setattr(sys, "argv", [str(path), *words, *arguments])
        # Last, because benchmarks/service.py is called as a package of the tests is.
        monkeypatch.setattr(sys, "path", [*sys.path, str(path.parent)])
        with threadpool_limits(1):
            names = runpy.run_path(str(path), run_name="__main__")
        return names, capsys.readouterr().out

    return run


@pytest.fixture
def nothing_committed_changes():
    before = committed()
    yield
    assert committed() == before


def test_scripts_are_found():
    assert {"benchmarks/als.py", "docs/build.py readme", "papers/audit/table.py"} <= set(SCRIPTS)
    assert set(SCRIPTS) >= SLOW | set(MODES) and len(EXAMPLES) >= 5


def has_toy_mode(text):
    return any(sign in text for sign in ("harness.options(", '"--toy"'))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_has_a_toy_mode(script):
    assert has_toy_mode((ROOT / script.split()[0]).read_text(encoding="utf8")), NO_TOY.format(script)


def test_a_script_without_a_toy_mode_would_be_noticed():
    assert not has_toy_mode('import argparse\n\nif __name__ == "__main__":\n    print("an hour later")\n')


def test_every_paper_runs_in_the_test_of_papers():
    folders = {path.parent.name.replace("_", "-") for path in ROOT.glob("papers/*/claims.toml")}
    assert folders == set(reproduce.names()), "A paper needs a name in discreet.papers."
    assert all(callable(reproduce.load_paper(name).measure) for name in folders)


@pytest.mark.scripts
@pytest.mark.parametrize("script", [script for script in SCRIPTS if script not in SLOW])
def test_a_script_runs(script, start):
    is_benchmark = script.startswith("benchmarks/")
    names, printed = start(script, "--toy", *(["--json"] if is_benchmark else []))
    if is_benchmark:
        found = json.loads(printed)
        assert isinstance(found, dict) and found
        assert "harness" not in names or list(names["harness"].lines(found))


@pytest.mark.scripts
@pytest.mark.parametrize(
    ("script", "mode"), [(script, mode) for script, modes in MODES.items() for mode in modes], ids=str
)
def test_a_mode_runs(script, mode, start):
    assert isinstance(json.loads(start(script, "--toy", "--json", *mode)[1]), dict)


@pytest.mark.parametrize("script", sorted(SLOW))
def test_a_slow_script_parses_its_options(script, start, capsys):
    with pytest.raises(SystemExit) as ended:
        start(script, "--help")
    assert ended.value.code == 0 and "--toy" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(SLOW))
def test_a_slow_script_runs(script, nothing_committed_changes):
    if script in ("benchmarks/bundle.py", "docs/build.py screenshots") and CHROMIUM is None:
        pytest.skip("Chromium is not installed; `make browser` brings it")
    arguments = ["--toy", *(["--json"] if script.startswith("benchmarks/") else [])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, *script.split(), *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "--json" not in arguments or isinstance(json.loads(done.stdout), dict)


def test_a_job_may_have_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    import harness

    assert harness.in_own_process(os.getpid, toy=True) == os.getpid() != harness.in_own_process(os.getpid)


@pytest.mark.scripts
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys, nothing_committed_changes):
    """Run it in a folder of its own; it says something."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
