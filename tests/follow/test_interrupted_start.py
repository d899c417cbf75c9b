"""A start that is killed anywhere and repeated pays once, leaves one state, and nothing else."""

import os
import sys

import numpy as np
import pytest

from discreet.core.checks import FileError
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.follow import Following
from discreet.follow.settings import FollowSettings
from discreet.privacy.ledger.ledger import Ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

ITEMS = Vocabulary.of(range(5))
FACTS = PublicFacts(n_items=5, low=1.0, high=1.0)
KILLS = 60
# What writes: the state, the year, and the ledger.
LEDGER = ("/privacy/ledger/ledger.py", "/privacy/ledger/sqlite_file.py")
WRITING = ("/follow/state.py", "/follow/year.py", *LEDGER)


def settings(releases=4):
    return FollowSettings(releases=releases, epsilon=2.0, delta=1e-6)


def start(folder, releases=4):
    ledger = Ledger.open(folder / "spent.ledger", allow_unbudgeted=True)
    return Following.start(
        folder / "year.follow", ITEMS, FACTS, settings(releases), name="shop", ledger=ledger
    )


def opened(folder):
    """Make a folder with a ledger, as one has before a year begins."""
    folder.mkdir()
    Ledger.open(folder / "spent.ledger", allow_unbudgeted=True)
    return folder


def killed_at(folder, line):
    """Start a year in a process that dies at this line of what writes; return how many lines it ran."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def trace(frame, event, _):
            nonlocal count
            if not frame.f_code.co_filename.endswith(WRITING):
                return None
            if event == "line":
                count += 1
                if count == line:
                    os._exit(9)
            return trace

        sys.settrace(trace)
        try:
            start(folder)
        finally:
            sys.settrace(None)
            os.write(sender, str(count).encode())
            os._exit(0)
    os.close(sender)
    said = os.read(receiver, 20)
    os.close(receiver)
    os.waitpid(child, 0)
    return int(said or b"0")


def entries(folder):
    found = Ledger.open(folder / "spent.ledger", allow_unbudgeted=True).entries("shop")
    return [(entry.what, entry.guarantee.epsilon, entry.state) for entry in found]


def seen(folder):
    names = {path.name for path in folder.iterdir()}
    return names - {"spent.ledger.lock"}


@pytest.mark.thorough
def test_a_start_that_was_killed_is_repeated_without_paying_twice(tmp_path):
    whole = opened(tmp_path / "whole")
    lines = killed_at(whole, -1)
    assert lines > KILLS
    resumed = 0
    for place in np.linspace(1, lines, KILLS).astype(int).tolist():
        folder = opened(tmp_path / str(place))
        killed_at(folder, place)
        had_paid = bool(entries(folder))
        had_state = (folder / "year.follow").exists()
        resumed += had_paid and not had_state
        try:
            start(folder)
        except FileError:
            assert had_state, "only a state that is there may be in the way"
        assert entries(folder) == entries(whole), f"killed at line {place} of {lines}"
        assert seen(folder) == seen(whole)
        assert Following(folder / "year.follow").status().guarantee.epsilon == 2.0
    # The test above looks at what it is about.
    assert resumed


def test_another_start_does_not_use_what_was_paid_for_the_first(tmp_path, monkeypatch):
    child = os.fork()
    if child == 0:
        monkeypatch.setattr("discreet.follow.state.Draft.publish", lambda _: os._exit(9))
        start(tmp_path)
        os._exit(0)
    os.waitpid(child, 0)
    assert len(entries(tmp_path)) == 1 and not (tmp_path / "year.follow").exists()
    start(tmp_path, releases=5)
    assert len(entries(tmp_path)) == 2
    assert seen(tmp_path) == {"spent.ledger", "year.follow"}
