"""A plugin of pytest that writes down which functions each test runs, and its processor seconds.

What a shared fixture or a cached function runs belongs to every test that uses its value, not only to the
first one.
"""

import functools
import json
import os
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("MUTATION_ROOT", "."))
SOURCES = str(ROOT / "src" / "discreet") + os.sep


class Recorder:
    """Collect the functions that run, in parts that may lie within each other."""

    def __init__(self):
        self.parts = [set()]

    def call(self, frame, event, _):
        """Note a function that is called; its single lines are not traced."""
        code = frame.f_code
        if code.co_filename.startswith(SOURCES):
            self.parts[-1].add((code.co_filename, code.co_qualname))

    @contextmanager
    def part(self):
        """Give the set of what runs meanwhile; it belongs to the part around it, too."""
        seen = set()
        self.parts.append(seen)
        try:
            yield seen
        finally:
            # Threads may end in another order than they began.
            self.parts[:] = [part for part in self.parts if part is not seen]
            self.parts[-1] |= seen


RECORDER = Recorder()
FIXTURES: dict[int, set] = {}
TESTS: dict[str, dict] = {}


def remembering(decorate):
    """Return a caching decorator that also remembers what ran when a value was made."""

    def other(function):
        if not str(getattr(getattr(function, "__code__", None), "co_filename", "")).startswith(str(ROOT)):
            return decorate(function)

        @decorate
        def made(*arguments, **settings):
            with RECORDER.part() as seen:
                return function(*arguments, **settings), seen

        @functools.wraps(function)
        def kept(*arguments, **settings):
            value, seen = made(*arguments, **settings)
            RECORDER.parts[-1] |= seen
            return value

        kept.cache_clear, kept.cache_info = made.cache_clear, made.cache_info
        return kept

    return other


def remembering_lru_cache(maxsize=128, typed=False, original=functools.lru_cache):
    """Stand in for `functools.lru_cache`, with or without parentheses."""
    if callable(maxsize):
        return remembering(original(128, typed))(maxsize)
    return remembering(original(maxsize, typed))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests():
    """Replace caches before anything that uses them is imported."""
    functools.cache, functools.lru_cache = remembering(functools.cache), remembering_lru_cache


def pytest_runtestloop():
    """Begin to trace when everything is imported: what runs then belongs to no test."""
    sys.settrace(RECORDER.call)
    threading.settrace(RECORDER.call)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    """Keep what a fixture runs."""
    with RECORDER.part() as seen:
        value = yield
    FIXTURES.setdefault(id(fixturedef), set()).update(seen)
    return value


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Keep what a test and its fixtures run, and its seconds."""
    if sys.gettrace() is None:  # a test took its place
        sys.settrace(RECORDER.call)
    start = time.process_time()
    with RECORDER.part() as seen:
        value = yield
    for fixtures in item._fixtureinfo.name2fixturedefs.values() if hasattr(item, "_fixtureinfo") else ():
        for one in fixtures:
            seen |= FIXTURES.get(id(one), set())
    test = TESTS.setdefault(item.nodeid, {"passed": False})
    test |= {"seconds": round(time.process_time() - start, 3), "functions": sorted(seen)}
    return value


def pytest_runtest_logreport(report):
    """Keep whether a test passed."""
    if report.when == "call":
        TESTS.setdefault(report.nodeid, {})["passed"] = report.passed


def pytest_sessionfinish():
    """Write all of it: functions by name, with the numbers of the tests that run them."""
    sys.settrace(None)
    passed = {name: test for name, test in TESTS.items() if test["passed"]}
    functions: dict[str, list[int]] = {}
    for number, test in enumerate(passed.values()):
        for path, name in test["functions"]:
            plain = f"{Path(path).relative_to(ROOT).as_posix()}::{name.partition('.<locals>')[0]}"
            if functions.setdefault(plain, [])[-1:] != [number]:
                functions[plain].append(number)
    found = {"tests": {name: test["seconds"] for name, test in passed.items()}, "functions": functions}
    Path(os.environ["MUTATION_MAP"]).write_text(json.dumps(found), encoding="utf8")
