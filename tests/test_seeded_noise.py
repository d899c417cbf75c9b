"""Noise repeats in tests, whatever ran before and beside them, and only in tests."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core import randomness
from discreet.core.randomness import PrivacyRandom
from seeded_noise import KEYS, SeededKeys

pytestmark = pytest.mark.skipif("config.getoption('--fresh-noise')", reason="noise is real in this run")
HERE = Path(__file__).parent
# What tests of this file draw, in any order: a change of it changes the noise of all tests.
FIRST, SHARED = "9d8a909f", "0c4c8cba"


def drawn():
    source = PrivacyRandom.from_os()
    assert not source.simulated
    return source.bytes(4).tobytes().hex()


@pytest.fixture(scope="module")
def shared():
    return drawn()


def test_a_test_draws_by_its_name():
    assert drawn() == FIRST != drawn()


@pytest.mark.parametrize("turn", [1, 2])
def test_a_shared_fixture_draws_by_its_own_name(turn, shared):
    assert shared == SHARED != drawn()


seen = set()


@given(st.integers())
def test_examples_repeat(number):
    seen.add(drawn())
    assert len(seen) == 1


def test_owners_and_turns_have_keys_of_their_own():
    keys = SeededKeys()
    found = []
    for owner in ("a", "b", "a"):
        with keys.drawing(owner):
            found.append([keys.urandom(32), keys.urandom(32)])
    assert found[0] == found[2]
    assert len({key for pair in found[:2] for key in pair}) == 4


def test_threads_do_not_shift_what_a_test_draws():
    def undisturbed(disturbed):
        keys = SeededKeys()
        with keys.drawing("test"):
            first = keys.urandom(32)
            if disturbed:
                threading.Thread(target=lambda: found.append(keys.urandom(32))).start()
                while not found:
                    pass
            return first, keys.urandom(32)

    found = []
    assert undisturbed(True) == undisturbed(False)
    assert found[0] not in undisturbed(False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_fork_draws_from_the_operating_system(monkeypatch):
    keys = SeededKeys()
    with keys.drawing("test"):
        monkeypatch.setattr(keys, "_process", -1)
        assert keys.urandom(32) != keys.urandom(32)
    again = SeededKeys()
    with again.drawing("test"):
        monkeypatch.setattr(again, "_process", -1)
        assert keys.urandom(32) != again.urandom(32)


def test_noise_is_not_drawn_between_tests():
    with pytest.raises(AssertionError):
        SeededKeys().urandom(32)


@pytest.mark.real_noise
def test_a_marked_test_draws_from_the_operating_system():
    assert randomness.os is os


def test_a_test_without_the_mark_does_not():
    assert randomness.os is KEYS


def test_other_processes_draw_from_the_operating_system():
    """Nothing that a process inherits from its surroundings makes noise repeat."""
    program = "from discreet.core.randomness import *; print(PrivacyRandom.from_os().bytes(16).tolist())"
    told = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert told[0] != told[1] and all(one.count(",") == 15 for one in told)


@pytest.mark.slow
@pytest.mark.parametrize("order", [["-p", "no:randomly"], ["-n", "2", "--randomly-seed=1"]])
def test_neither_order_nor_worker_changes_what_is_drawn(order):
    command = [sys.executable, "-m", "pytest", "-k", "by_its or examples", "-p", "no:cacheprovider", __file__]
    told = subprocess.run([*command, *order], cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert re.search("4 passed", told.stdout), told.stdout
