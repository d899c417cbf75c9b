"""Change random lines of the code that decides about privacy, and see whether tests of it notice.

`make mutants-privacy`. The changed code is `privacy/`, `statistics/`, training and labels. One process
imports the package and all tests once. A first fork learns which functions each test runs. Then each change
is made in a fork of its own (`in_place.py`). The tests of the changed function run there, the most focused
ones first, up to the first failure. Changes that no fork can make, and survivors, are tried in a copy of the
tree as `make mutants` does. Changes that make no difference are listed with the reason in `equivalent.json`.
"""

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mutation.changes import Change, changes
from mutation.in_place import made
from mutation.run import OPTIONS, ROOT, copy_tree, described, equivalent, tried, write
from mutation.selection import Selection

#: The subjects: how many changes, and the starts of their files.
SUBJECTS = {
    "privacy": (90, ("privacy/",)),
    "statistics": (60, ("statistics/",)),
    "training": (
        40,
        (
            "models/user_factorization/",
            "models/biases.py",
            "models/popularity.py",
            "models/released_items.py",
            "models/private_facts.py",
            "models/sums_estimator.py",
        ),
    ),
    "labels": (30, ("report/guarantee.py", "report/notes.py", "report/label.py", "report/odds.py")),
}
#: The tests that are chosen from.
TESTS = (
    "tests/privacy",
    "tests/statistics",
    "tests/report",
    "tests/contracts/test_spending.py",
    "tests/contracts/test_golden_arrays.py",
    "tests/contracts/test_mechanism_contract.py",
    "tests/contracts/test_statistic_contract.py",
    "tests/contracts/test_private_facts_contract.py",
    "tests/models/test_prior_guarantee.py",
    "tests/models/test_shares_of_budgets.py",
    "tests/models/test_one_bit_budgets.py",
    "tests/models/test_private_catalog.py",
    "tests/models/test_private_scale.py",
    "tests/models/test_votes_first.py",
    "tests/models/test_order_in_time.py",
    "tests/models/test_next_items.py",
    "tests/models/test_user_factorization.py",
    "tests/federated/test_federated_noise.py",
    "tests/federated/test_remote_training.py",
    "tests/follow/test_mechanism.py",
    "tests/verify/test_verify.py",
    "tests/verify/test_overspending.py",
    "tests/verify/test_ledgers.py",
    "tests/cli/test_label.py",
    "src/discreet/privacy",
    "src/discreet/statistics",
)
# How long one test may take while it is learned what it runs.
_SLOW = 60


def main() -> None:
    """Import everything, then try the changes in random order and write the table after each of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=45)
    parser.add_argument("--seconds", type=float, default=20, help="how long the tests of one change may take")
    parser.add_argument("--most", type=int, default=300, help="how many tests run for one change")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="tests to choose from")
    parser.add_argument("--under", nargs="*", default=[""], help="starts of files whose changes are tried")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of changes to try")
    parser.add_argument("--again", action="store_true", help="try only what survived, where it is now")
    parser.add_argument("--work", type=Path, help="a folder that keeps the copy and the map for the next run")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        options.work = options.work or Path(folder)
        os.environ |= {"MUTATION_ROOT": str(ROOT), "MUTATION_MAP": str(options.work / "map.json")}
        os.chdir(ROOT)
        plugin = ["-s", "-p", "mutation.coverage_map"]
        sys.exit(pytest.main([*OPTIONS, *plugin, *options.tests], [Trials(options)]))


class Trials:
    """A plugin of pytest that replaces its loop over tests by a loop over changes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report) -> None:
        """Keep the names of tests that fail."""
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session) -> bool:
        """Learn what tests run, then try every change."""
        options, known = self.options, self.options.work / "map.json"
        if not known.exists():
            self.in_fork(lambda: self.learn(session), seconds=3600)
        selection = selected(json.loads(known.read_text(encoding="utf8")))
        rows = json.loads(options.out.read_text(encoding="utf8"))["rows"] if options.out.exists() else []
        drawn = survivors(rows, ROOT) if options.again else dict(enumerate(sample(ROOT, options.seed)))
        done = set() if options.again else {row["number"] for row in rows}
        items = {item.nodeid: item for item in session.items}
        for number, change in drawn.items():
            if (options.only and number not in options.only) or number in done:
                continue
            if not change.path.removeprefix("src/discreet/").startswith(tuple(options.under)):
                continue
            tests = selection.of(change.path, change.owner, options.seconds, options.most)
            row = self.trial(change, [items[one] for one in tests if one in items])
            rows = [one for one in rows if one["number"] != number] + [{"number": number} | row]
            print(json.dumps(rows[-1]), flush=True)
            write(sorted(rows, key=lambda one: one["number"]), options)
        print(f"{sum(row['result'] == 'survived' for row in rows)} of {len(rows)} changes survived.")
        return True

    def learn(self, session) -> int:
        """Run all tests once and write down what each of them runs."""
        from mutation import coverage_map

        signal.signal(signal.SIGALRM, _too_slow)
        coverage_map.pytest_runtestloop()
        self.run(session.items, limit=_SLOW)
        coverage_map.pytest_sessionfinish()
        return 0

    def trial(self, change: Change, tests: list) -> dict:
        """Return what the tests find: in a fork, and in a copy of the tree if that isn't enough."""
        start, seconds = time.monotonic(), self.options.seconds

        def changed() -> int:
            if not made(change, ROOT):
                return 4
            self.run(tests, stop=True)
            return int(bool(self.failed))

        code, by = self.in_fork(changed, seconds=4 * seconds + 60) if tests else (4, "")
        row = described(change) | {"tests": len(tests)}
        if code not in (0, 4):
            took = round(time.monotonic() - start)
            return row | {"result": "caught", "by": by or "time limit", "took": took}
        if (known := equivalent(change))["result"] == "equivalent":
            return row | known
        pristine = self.options.work / "pristine"
        if not pristine.exists():
            copy_tree(pristine)
        names = [test.nodeid for test in tests]
        row = tried(change, names, pristine, self.options.work / "mutant", seconds)
        # A run that could not begin caught nothing.
        unknown = row["by"] == "pytest ended with 4"
        return row | {"result": "survived", "by": "tests could not be run"} if unknown else row

    def run(self, tests: list, *, stop: bool = False, limit: int = 0) -> None:
        """Run tests, up to the first failure with `stop`."""
        for place, item in enumerate(tests):
            signal.alarm(limit)
            following = tests[place + 1] if place + 1 < len(tests) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if stop and self.failed:
                return

    def in_fork(self, work, seconds: float) -> tuple[int | None, str]:
        """Return how some work ended in a fork of this process (None: it did not), and which test failed."""
        with tempfile.TemporaryFile("w+", encoding="utf8") as failed:
            sys.stdout.flush()
            child = os.fork()
            if not child:
                code = 3
                try:
                    os.setsid()
                    processor = int(seconds)
                    resource.setrlimit(resource.RLIMIT_CPU, (processor, processor))
                    nowhere = os.open(os.devnull, os.O_RDWR)
                    for one in (0, 1, 2):
                        os.dup2(nowhere, one)
                    self.failed.clear()
                    code = work()
                    failed.write("".join(self.failed[:1]))
                    failed.flush()
                finally:
                    os._exit(code)
            end, status = time.monotonic() + 5 * seconds, (0, 0)
            while status[0] == 0 and time.monotonic() < end:
                time.sleep(0.02)
                status = os.waitpid(child, os.WNOHANG)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            if status[0] == 0:
                os.waitpid(child, 0)
            failed.seek(0)
            is_over = status[0] and os.WIFEXITED(status[1])
            return os.WEXITSTATUS(status[1]) if is_over else None, failed.read()


def _too_slow(*_) -> None:
    raise TimeoutError


def selected(found: dict) -> Selection:
    """Return which tests to run for a change, by what each of them runs and names."""
    sources = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf8")
        for path in (ROOT / "src" / "discreet").rglob("*.py")
    }
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf8")
        for path in (ROOT / "tests").rglob("test_*.py")
    }
    return Selection(found, sources, texts)


def survivors(rows: list[dict], tree: Path) -> dict[int, Change]:
    """Return the changes of an earlier run that survived, where they are now; lines may have moved."""
    found = {}
    for row in rows:
        if row["result"] == "survived":
            source = (tree / row["path"]).read_text(encoding="utf8")
            same = [
                one
                for one in changes(row["path"], source)
                if (one.owner, one.before, one.after) == (row["in"], row["before"], row["after"])
            ]
            if same:
                found[row["number"]] = min(same, key=lambda one: abs(one.line - row["line"]))
    return found


def sample(tree: Path, seed: int) -> list[Change]:
    """Return so many changes of each subject, no two of one line, in random order."""
    chance, kept = random.Random(seed), []
    for count, files in SUBJECTS.values():
        paths = sorted(
            path.relative_to(tree).as_posix()
            for path in (tree / "src/discreet").rglob("*.py")
            if path.relative_to(tree / "src/discreet").as_posix().startswith(files)
        )
        found = [one for path in paths for one in changes(path, (tree / path).read_text(encoding="utf8"))]
        by_line = {(one.path, one.line): one for one in chance.sample(found, len(found))}
        kept += chance.sample(sorted(by_line.values(), key=lambda one: (one.path, one.line)), count)
    return chance.sample(kept, len(kept))


if __name__ == "__main__":
    main()
