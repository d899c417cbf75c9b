"""A release is drawn once, wherever the process dies: either nobody has seen it, or it is kept."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from discreet.follow import Following
from discreet.follow.state import opened
from discreet.models.storage import load
from followed_years import N_ITEMS, weeks, year

ROOT = Path(__file__).parents[2]
# Counts the lines that run in the files that write, and dies at one of them as by kill -9.
CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from discreet.follow import Following
from followed_years import weeks
folder, at, watched = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
lines = 0

def trace(frame, event, _):
    global lines
    if not frame.f_code.co_filename.endswith(tuple(watched)):
        return None
    if event == "line":
        lines += 1
        if lines == at:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace

week = weeks(4)[2]
year = Following(folder / "year.follow")
sys.settrace(trace)
added = year.add(week, release=3)
added.model.save(folder / "current.discreet", force=True)
sys.settrace(None)
print(lines)
"""
WATCHED = "follow/state.py,follow/stream.py,follow/year.py,follow/releases.py,core/files.py"


def die(folder, at):
    """Run the third week until a line, and return what the process printed, or None if it was killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, folder, str(at), WATCHED, ROOT / "tests"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return None if done.returncode else int(done.stdout)


def drawn(folder):
    with opened(folder / "year.follow", writing=False) as state:
        return [one.drawn.counts.tolist() for one in state.releases(N_ITEMS)]


def begun(folder):
    followed = year(folder)
    for one in weeks(4)[:2]:
        followed.add(one)
    return followed


def dies_and_goes_on(folder, before, at):
    """Kill an `add` at a line; what it left is whole, and repeating it draws nothing that was seen again."""
    current, path = folder / "current.discreet", folder / "year.follow"
    path.write_bytes(before)
    current.unlink(missing_ok=True)
    finished = die(folder, at) is not None
    kept = drawn(folder)
    assert len(kept) in (2, 3)
    seen = load(current).scorer.part("popularity") if current.exists() else None
    # A model is seen only if its release was kept.
    assert seen is None or len(kept) == 3
    Following(path).add(weeks(4)[2], release=3).model.save(current, force=True)
    after = drawn(folder)
    assert len(after) == 3 and after[: len(kept)] == kept
    if seen is not None:
        assert np.array_equal(load(current).scorer.part("popularity"), seen)
    return finished, len(kept)


@pytest.mark.thorough
def test_killed_where_it_matters(tmp_path):
    begun(tmp_path)
    before = (tmp_path / "year.follow").read_bytes()
    lines = die(tmp_path, 0)
    found = [dies_and_goes_on(tmp_path, before, at) for at in (2, lines - 60)]
    assert not any(finished for finished, _ in found)
    # Some died before the release was kept and some after.
    assert {kept for _, kept in found} == {2, 3}


@pytest.mark.slow
def test_killed_two_hundred_times(tmp_path):
    begun(tmp_path)
    before = (tmp_path / "year.follow").read_bytes()
    lines = die(tmp_path, 0)
    places = sorted({round(place) for place in np.linspace(1, lines, 200)})
    found = [dies_and_goes_on(tmp_path, before, at) for at in places]
    assert len(found) >= 195 and {kept for _, kept in found} == {2, 3}


def test_twin_a_release_that_is_drawn_again_is_noticed(tmp_path):
    """Going back to the state before a release, as a backup would, draws another one: the check sees that."""
    followed = begun(tmp_path)
    before = followed.path.read_bytes()
    followed.add(weeks(4)[2], release=3)
    first = drawn(tmp_path)
    followed.path.write_bytes(before)
    followed.add(weeks(4)[2], release=3)
    assert drawn(tmp_path)[:2] == first[:2] and drawn(tmp_path)[2] != first[2]
