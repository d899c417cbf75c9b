"""Change random lines of the library, one at a time in a private copy, and see whether tests notice.

`make mutants`. One process works at a time. First all tests run once to learn which functions each of them
runs; then for every change those tests run that run the changed function, up to the first failure. Changes
that make no difference are listed with the reason in `equivalent.json`.
"""

import argparse
import contextlib
import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import pytest

from mutation.changes import Change, drawn
from mutation.selection import Selection

ROOT = Path(__file__).parents[2]
PACKAGES = ["privacy", "statistics", "models", "federated", "service", "data"]
GROUPS = [f"src/discreet/{name}/" for name in PACKAGES]
EQUIVALENT = Path(__file__).with_name("equivalent.json")
# Needs Flower, which lives in an environment of its own.
LEFT_OUT = "src/discreet/federated/flower/app/"
# Thorough tests are chosen from, too.
CHOSEN = ["-m", "not slow and not systems and not scripts"]
OPTIONS = ["-p", "no:randomly", "-p", "no:xdist", "--tb=line", "-rfE", *CHOSEN]
# Imported once, before forks; nothing of ours, and no package that brings a plugin of pytest.
LIBRARIES = (
    "numba",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "polars",
)
LIBRARIES += ("dp_accounting", "cryptography", "rich", "typer")


def main() -> None:
    """Make the map of tests if there is none, try every change, and write the table."""
    options = parsed()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        work = options.work or Path(folder)
        pristine = work / "pristine"
        if not pristine.exists():
            copy_tree(pristine)
        if not (work / "map.json").exists():
            make_map(pristine, work / "map.json", options.tests)
        sources = {
            path.relative_to(pristine).as_posix(): path.read_text(encoding="utf8")
            for path in (pristine / "src" / "discreet").rglob("*.py")
        }
        texts = {
            path.relative_to(pristine).as_posix(): path.read_text(encoding="utf8")
            for path in (pristine / "tests").rglob("test_*.py")
        }
        selection = Selection(json.loads((work / "map.json").read_text(encoding="utf8")), sources, texts)
        mutable = {path: text for path, text in sources.items() if not path.startswith(LEFT_OUT)}
        rows = []
        for name in LIBRARIES:
            importlib.import_module(name)
        for number, change in enumerate(drawn(mutable, GROUPS, options.each, options.seed)):
            if options.only and number not in options.only:
                continue
            tests = selection.of(change.path, change.owner, options.seconds, options.most)
            rows.append({"number": number} | tried(change, tests, pristine, work / "mutant", options.seconds))
            print(json.dumps(rows[-1]), flush=True)
            write(rows, options)
    print(f"{sum(row['result'] == 'survived' for row in rows)} of {len(rows)} changes survived.")


def parsed() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--each", type=int, default=20, help="changes in each of the six packages")
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--seconds", type=float, default=60, help="how long the tests of one change may take")
    parser.add_argument("--most", type=int, default=400, help="how many tests run for one change")
    parser.add_argument("--work", type=Path, help="a folder that keeps the copy and the map for the next run")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of changes to try")
    parser.add_argument("--tests", nargs="*", default=["tests"], help="tests to choose from")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def copy_tree(target: Path) -> None:
    """Copy what git knows of the working tree, with the times of files, and compiled kernels."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    kernels = [path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.nb[ic]")]
    for name in [*listed.decode().split("\0")[:-1], *kernels]:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which the code of a copy runs."""
    return os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'tests'}"}


def make_map(tree: Path, target: Path, tests: list[str]) -> None:
    """Run all tests once and write down what each of them runs."""
    settings = environment(tree) | {"MUTATION_ROOT": str(tree), "MUTATION_MAP": str(target)}
    command = [sys.executable, "-m", "pytest", *OPTIONS]
    ended = subprocess.run(
        [*command, "-p", "mutation.coverage_map", *tests], cwd=tree, env=settings, check=False
    )
    # 1: some tests failed; they are not on the map.
    if ended.returncode not in (0, 1):
        target.unlink(missing_ok=True)
        sys.exit("Tests could not be run, so nothing is known about any change.")


def tried(change: Change, tests: list[str], pristine: Path, mutant: Path, seconds: float) -> dict:
    """Return what the tests say to one change, made in a copy of its own."""
    shutil.rmtree(mutant, ignore_errors=True)
    # Hard links: whoever writes a file of the copy puts a new one in its place, as Python and Numba do.
    shutil.copytree(pristine, mutant, copy_function=os.link)
    source = (mutant / change.path).read_text(encoding="utf8")
    (mutant / change.path).unlink()
    (mutant / change.path).write_text(change.applied(source), encoding="utf8")
    row = described(change) | {"tests": len(tests)}
    if not tests:
        return row | {"result": "survived", "by": "no test runs it"}
    start = time.monotonic()
    code, text = run_tests(tests, mutant, seconds)
    names = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    by = names[0] if names else ("time limit" if code is None else f"pytest ended with {code}")
    row["took"] = round(time.monotonic() - start)
    if code == 4 and "ImportError" not in text:
        # A run that could not begin caught nothing.
        return row | {"result": "survived", "by": "tests could not be run"}
    return row | (equivalent(change) if code == 0 else {"result": "caught", "by": by})


def described(change: Change) -> dict:
    """Return the columns that name a change."""
    row = {"path": change.path, "line": change.line, "in": change.owner, "kind": change.kind}
    return row | {"before": change.before, "after": change.after}


def equivalent(change: Change) -> dict:
    """Return why a change that survived makes no difference, if it is known."""
    for known in json.loads(EQUIVALENT.read_text(encoding="utf8")):
        same = (known["path"], known["before"], known["after"]) == (change.path, change.before, change.after)
        if same and known.get("in", change.owner) == change.owner:
            return {"result": "equivalent", "by": known["reason"]}
    return {"result": "survived", "by": ""}


def run_tests(tests: list[str], tree: Path, seconds: float) -> tuple[int | None, str]:
    """Return how pytest ended in a fork of this process (None: it did not end) and what it printed."""
    with tempfile.TemporaryFile("w+", encoding="utf8", errors="replace") as printed:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            become_pytest(tests, tree, seconds, printed.fileno())
        end = time.monotonic() + 10 * seconds + 300
        status = (0, 0)
        while status[0] == 0 and time.monotonic() < end:
            time.sleep(0.05)
            status = os.waitpid(child, os.WNOHANG)
        # Whatever tests had started, and the child if it hangs.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if status[0] == 0:
            os.waitpid(child, 0)
        printed.seek(0)
        is_over = status[0] and os.WIFEXITED(status[1])
        return os.WEXITSTATUS(status[1]) if is_over else None, printed.read()


def become_pytest(tests: list[str], tree: Path, seconds: float, output: int) -> NoReturn:
    """Be a process that runs tests on the code of a copy, and ends."""
    code = 3
    try:
        os.setsid()
        processor = int(4 * seconds + 120)
        resource.setrlimit(resource.RLIMIT_CPU, (processor, processor))
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(tree)
        os.environ.update(environment(tree))
        sys.path[:] = [str(tree / "src"), str(tree / "tests"), *(one for one in sys.path if not is_ours(one))]
        code = int(pytest.main([*OPTIONS, "-x", *tests]))
        sys.stdout.flush()
    finally:
        os._exit(code)


def is_ours(path: str) -> bool:
    """Say whether a place of modules is the working tree's own."""
    return Path(path or ".").resolve() in (ROOT, ROOT / "src", ROOT / "tests")


def write(rows: list[dict], options: argparse.Namespace) -> None:
    """Write all results so far."""
    head = {"seed": options.seed, "mutants": len(rows)}
    head |= {
        name: sum(row["result"] == name for row in rows) for name in ("caught", "equivalent", "survived")
    }
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    options.out.write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf8")


if __name__ == "__main__":
    main()
