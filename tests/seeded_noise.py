"""Give every test noise of its own that is the same in each run, whatever the order and whichever process.

Models draw exact noise keyed by the operating system. A test that passes with one draw and fails with the
next tells nothing about a change. Here the test process, and nothing else, gets its keys from the name of the
test that draws; a fixture that many tests share gets them from its own name. Nothing in the package can do
that: the module that asks the operating system is handed another answer from outside.

These still draw from the operating system: runs with `--fresh-noise`, tests marked `real_noise`, forks, and
other processes.
"""

import contextlib
import hashlib
import os
import threading

import pytest
from hypothesis import register_random

from discreet.core import randomness


class SeededKeys:
    """Stand in for the module `os` where keys are drawn; Hypothesis winds it back for each example."""

    def __init__(self):
        self._process = os.getpid()
        self._owners = []
        self._example = None
        self._drawn = {}
        self._lock = threading.Lock()

    def __getattr__(self, name):
        return getattr(os, name)

    def urandom(self, size):
        """Return bytes that are determined by who draws and how often they have drawn."""
        # Two processes never read one stream, not even here.
        if os.getpid() != self._process:
            return os.urandom(size)
        # Other threads draw in no particular order: they count apart, and never shift the main thread's keys.
        main = threading.current_thread() is threading.main_thread()
        if not self._owners:
            assert not main, "Noise was drawn outside of tests: draw it in a test or a fixture."
            return os.urandom(size)
        with self._lock:
            who = (self._owners[-1], self._example, main)
            count = self._drawn[who] = self._drawn.get(who, 0) + 1
        return hashlib.shake_256(repr((who, count)).encode()).digest(size)

    @contextlib.contextmanager
    def drawing(self, owner):
        """Let `owner` draw, from its first key on."""
        self._drawn = {who: count for who, count in self._drawn.items() if who[0] != owner}
        self._owners.append(owner)
        try:
            yield
        finally:
            self._owners.pop()

    # What Hypothesis calls before and after an example: a failing example fails again.

    def seed(self, number):
        self._example = number
        self._drawn = {who: count for who, count in self._drawn.items() if who[1] != number}

    def getstate(self):
        return self._example, dict(self._drawn)

    def setstate(self, state):
        self._example, self._drawn = state


KEYS = SeededKeys()


def pytest_addoption(parser):
    parser.addoption("--fresh-noise", action="store_true", help="draw noise from the operating system")


def pytest_configure(config):
    if not config.getoption("--fresh-noise"):
        randomness.os = KEYS
        register_random(KEYS)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    if item.get_closest_marker("real_noise") is None:
        with KEYS.drawing(item.nodeid):
            return (yield)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "os", os)
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    if fixturedef.scope == "function":
        return (yield)
    # Whichever test asks first, a shared fixture draws the same.
    with KEYS.drawing((fixturedef.baseid, fixturedef.argname, request.param_index)):
        return (yield)
