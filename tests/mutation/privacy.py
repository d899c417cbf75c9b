"""Change lines of the code that decides about privacy, and see whether tests of it notice.

`make mutants-privacy`. The changed code is `privacy/`, `statistics/`, training and labels. The changes are
those of `named.json`, which once survived or could have, and random ones. One process imports the package
and all tests once. A first fork learns which functions each test runs. Then each change is made in a fork of
its own (`in_place.py`). The tests of the changed function run there, the most focused ones first, up to the
first failure. A change of what runs once, on import, is tried in a copy of the tree as `make mutants` does.
Changes that make no difference are listed with the reason in `equivalent.json`.
"""

import argparse
import contextlib
import gc
import importlib
import json
import math
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mutation.changes import Change, changes
from mutation.in_place import Loaded, made
from mutation.run import LIBRARIES, OPTIONS, ROOT, copy_tree, described, equivalent, tried, write
from mutation.selection import Selection

#: Changes that were chosen by hand: three that survived the suite before releases were metered, and others.
NAMED = Path(__file__).with_name("named.json")

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
            "models/private_catalog.py",
            "models/estimator.py",
        ),
    ),
    "labels": (30, ("report/guarantee_wording.py", "report/label.py", "report/odds.py")),
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
    "tests/models/test_extreme_data.py",
    "tests/models/test_prior_guarantee.py",
    "tests/models/test_shares_of_budgets.py",
    "tests/models/test_private_catalog.py",
    "tests/models/test_private_scale.py",
    "tests/models/test_purpose.py",
    "tests/models/test_votes_first.py",
    "tests/models/test_order_in_time.py",
    "tests/models/test_public_features.py",
    "tests/models/test_recency.py",
    "tests/models/test_next_items.py",
    "tests/models/test_user_factorization.py",
    "tests/models/test_user_factorization_implicit.py",
    "tests/synthesis/test_history_release.py",
    "tests/federated/test_federated_noise.py",
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
# How a fork ends that has nothing to change: the changed line ran on import.
_ON_IMPORT = 4


def main() -> None:
    """Import everything, then try the changes and write the table after each of them."""
    options = parsed()
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        options.work = options.work or Path(folder)
        os.environ |= {"MUTATION_ROOT": str(ROOT), "MUTATION_MAP": str(options.work / "map.json")}
        os.chdir(ROOT)
        asking, answering = multiprocessing.Pipe()
        # The copies need a process that has not imported the package: this one.
        child = os.fork()
        if not child:
            answering.close()
            plugin = ["-s", "-p", "mutation.coverage_map"]
            code = pytest.main([*OPTIONS, *plugin, *options.tests], [Trials(options, asking)])
            sys.stdout.flush()
            os._exit(code)
        asking.close()
        try_in_copies(answering, options)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def parsed() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=45)
    parser.add_argument("--seconds", type=float, default=5, help="how long the tests of one change may take")
    parser.add_argument("--most", type=int, default=300, help="how many tests run for one change")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="tests to choose from")
    parser.add_argument("--under", nargs="*", default=[""], help="starts of files whose changes are tried")
    parser.add_argument("--only", nargs="*", help="numbers of changes to try")
    parser.add_argument("--again", action="store_true", help="try what survived once more, where it is now")
    parser.add_argument("--work", type=Path, help="a folder that keeps the copy and the map for the next run")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def try_in_copies(line: Any, options: argparse.Namespace) -> None:
    """Answer what the tests find about changes that are sent here, until nobody asks."""
    pristine = options.work / "pristine"
    with contextlib.suppress(EOFError):
        while True:
            change, names = line.recv()
            if not pristine.exists():
                copy_tree(pristine)
            line.send(tried(change, names, pristine, options.work / "mutant", options.seconds))


class Trials:
    """A plugin of pytest that replaces its loop over tests by a loop over changes."""

    def __init__(self, options: argparse.Namespace, copies: Any) -> None:
        self.options, self.copies = options, copies
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report) -> None:
        """Keep the names of tests that fail."""
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session) -> bool:
        """Learn what tests run, then try every change."""
        from hypothesis import Phase, settings

        refuse_threads()
        options, map_file = self.options, self.options.work / "map.json"
        if not map_file.exists():
            self.in_fork(lambda: self.learn(session), seconds=3600)
        selection = selected(json.loads(map_file.read_text(encoding="utf8")))
        rows = json.loads(options.out.read_text(encoding="utf8"))["rows"] if options.out.exists() else []
        drawn = survivors(rows, ROOT) if options.again else named(ROOT) | sample(ROOT, options.seed)
        rows = {row["number"]: row for row in rows}
        items = {item.nodeid: item for item in session.items}
        # A failure is enough: nobody reads the smallest example.
        settings.register_profile("once", settings.default, phases=(Phase.explicit, Phase.generate))
        settings.load_profile("once")
        self.loaded = Loaded()
        self.loaded.load_kernels()
        gc.freeze()
        waiting = [
            (number, change)
            for number, change in drawn.items()
            if (not options.only or number in options.only)
            and not is_tried(change, rows.get(number))
            and change.path.removeprefix("src/discreet/").startswith(tuple(options.under))
        ]
        on_import = []
        # Kernels are compiled anew, so they come after the others.
        for number, change in sorted(
            waiting, key=lambda one: self.loaded.compiles(one[1].path, one[1].owner)
        ):
            tests = selection.of(change.path, change.owner, options.seconds, options.most)
            tests = [one for one in tests if one in items]
            if (row := self.trial(change, [items[one] for one in tests])) is None:
                on_import.append((number, change, tests))
            else:
                self.keep({"number": number} | row, rows, drawn)
        # Copies take longer, so they come last.
        for number, change, tests in on_import:
            self.copies.send((change, tests))
            self.keep({"number": number} | self.copies.recv(), rows, drawn)
        print(f"{sum(row['result'] == 'survived' for row in rows.values())} of {len(rows)} survived.")
        return True

    def keep(self, row: dict, rows: dict[str, dict], drawn: dict[str, Change]) -> None:
        """Print a row, and write it with all rows so far, in the order in which changes were drawn."""
        rows[row["number"]] = row
        print(json.dumps(row), flush=True)
        write([rows[one] for one in drawn | rows if one in rows], self.options)

    def learn(self, session) -> int:
        """Run all tests once and write down what each of them runs."""
        from mutation import coverage_map

        signal.signal(signal.SIGALRM, _too_slow)
        coverage_map.pytest_runtestloop()
        self.run(session.items, limit=_SLOW)
        coverage_map.pytest_sessionfinish()
        return 0

    def trial(self, change: Change, tests: list) -> dict | None:
        """Return what the tests find in a fork; None if the changed line runs on import alone."""
        start, row = time.monotonic(), described(change) | {"tests": len(tests)}
        if not tests:
            return row | equivalent(change) | {"took": 0}

        def changed() -> int:
            if not made(change, ROOT, self.loaded):
                return _ON_IMPORT
            self.run(tests, seconds=2 * self.options.seconds)
            return int(bool(self.failed))

        # Changed kernels are compiled anew, which takes a while. What takes longer does not end.
        code, by = self.in_fork(changed, seconds=60)
        if code == _ON_IMPORT:
            return None
        found = equivalent(change) if code == 0 else {"result": "caught", "by": by or "time limit"}
        return row | found | {"took": round(time.monotonic() - start)}

    def run(self, tests: list, *, seconds: float = math.inf, limit: int = 0) -> None:
        """Run tests: all of them, or up to the first failure for about so many processor seconds."""
        start = time.process_time()
        for place, item in enumerate(tests):
            signal.alarm(limit)
            following = tests[place + 1] if place + 1 < len(tests) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if seconds < math.inf and (self.failed or time.process_time() - start > seconds):
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
            end, status = time.monotonic() + 8 * seconds, (0, 0)
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


def refuse_threads() -> None:
    """Raise if a test module read a frame on import: the threads of Polars end in a fork, and it waits."""
    names = [path.read_text(encoding="utf8") for path in Path("/proc/self/task").glob("*/comm")]
    if any(name.startswith("polars-0") for name in names):
        raise RuntimeError("A test module computes with Polars on import. Move it into a function.")


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


def is_tried(change: Change, row: dict | None) -> bool:
    """Return whether a row is about this change, wherever its line is now, and not about a survivor."""
    about = described(change) | {"line": row and row["line"]}
    return row is not None and row["result"] != "survived" and row.items() >= about.items()


def survivors(rows: list[dict], tree: Path) -> dict[str, Change]:
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


def named(tree: Path) -> dict[str, Change]:
    """Return the changes that were chosen by hand; each replaces one text that its file has once."""
    found = {}
    for row in json.loads(NAMED.read_text(encoding="utf8")):
        source = (tree / row["path"]).read_text(encoding="utf8")
        before, _, behind = source.partition(row["before"])
        if not behind or row["before"] in behind:
            raise ValueError(row)
        start = len(before.encode())
        found[row["name"]] = Change(
            path=row["path"],
            line=before.count("\n") + 1,
            kind="named",
            before=row["before"],
            after=row["after"],
            start=start,
            stop=start + len(row["before"].encode()),
            owner=row["in"],
        )
    return found


def sample(tree: Path, seed: int) -> dict[str, Change]:
    """Return so many changes of each subject by number, no two of one line.

    A change is drawn by its own digest, so that an edit elsewhere neither draws others nor renumbers them.
    """
    kept: list[tuple[bytes, Change]] = []
    for count, files in SUBJECTS.values():
        by_line: dict[tuple[str, int], tuple[bytes, Change]] = {}
        for path in sorted((tree / "src/discreet").rglob("*.py")):
            if path.relative_to(tree / "src/discreet").as_posix().startswith(files):
                name, source = path.relative_to(tree).as_posix(), path.read_text(encoding="utf8")
                for digest, one in _digests(changes(name, source), seed):
                    place = (one.path, one.line)
                    by_line[place] = min(by_line.get(place, (digest, one)), (digest, one), key=_first)
        # The first half chooses a change of a line and the second half a line, so that all lines are alike.
        kept += sorted(((digest[16:], one) for digest, one in by_line.values()), key=_first)[:count]
    return {str(int.from_bytes(digest[:4])): one for digest, one in sorted(kept, key=_first)}


def _digests(found: list[Change], seed: int) -> Iterator[tuple[bytes, Change]]:
    """Yield each change with a digest of what it is; equal ones of a function have their turn in it."""
    turns: Counter[tuple[str, ...]] = Counter()
    for one in found:
        what = (one.path, one.owner, one.kind, one.before, one.after)
        yield sha256(json.dumps([seed, turns[what], *what]).encode()).digest(), one
        turns[what] += 1


def _first(pair: tuple[bytes, Change]) -> bytes:
    return pair[0]


if __name__ == "__main__":
    main()
