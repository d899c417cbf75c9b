"""Ctrl-C during a fit over shards: a sentence says what was paid, nothing is written, nobody is left over."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from discreet.privacy.ledger import Ledger

# Reads all shards once in each of very many steps: longer than any test waits.
LONG = ("--model", "frank-wolfe", "--set", "solver=oja", "--set", "rounds=400", "--epsilon", "1")
# The command line, which leaves a file where it is told to once a fit is paid. Then kernels are loaded, by
# code that loses interrupts.
PROGRAM = """
import signal, sys
from contextlib import contextmanager
from pathlib import Path
from discreet.cli import main
from discreet.models import estimator

begun, shown = Path(sys.argv.pop(1)), estimator.terminal_progress

@contextmanager
def training(progress):
    with shown(progress) as show:
        begun.touch()
        yield show

estimator.terminal_progress = training
# Shells start programs in the background without Ctrl-C, and what these start inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


def members(group):
    """Return the processes of a group that still run."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(place.parent.name)
    return found


def wait_until(happened, seconds=300):
    for _ in range(seconds * 20):
        if happened():
            return
        time.sleep(0.05)
    pytest.fail("It did not happen in time.")


def stop_a_fit(folder, place, *more):
    """Begin a long fit, press Ctrl-C as a terminal does once it is paid, and return what came of it."""
    book, begun = place / "shop.ledger", place / "begun"
    Ledger.open(book)
    command = [sys.executable, "-c", PROGRAM, begun, "fit", folder, *LONG]
    process = subprocess.Popen(
        [*command, "--out", place / "m.discreet", "--ledger", book, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: process.poll() is not None or begun.exists())
    os.killpg(process.pid, signal.SIGINT)
    out, error = process.communicate(timeout=300)
    wait_until(lambda: not members(process.pid))
    (entry,) = Ledger.open(book).entries()
    assert entry.state == "open" and not (place / "m.discreet").exists()
    assert (process.returncode, out) == (130, ""), error
    return error.splitlines()


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "killpg") or not Path("/proc").exists(), reason="needs Linux")
def test_a_fit_from_shards_stops_and_says_what_was_paid(shard_folders, tmp_path, snapshot):
    (said,) = stop_a_fit(shard_folders[3], tmp_path)
    snapshot(said)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg") or not Path("/proc").exists(), reason="needs Linux")
def test_a_fit_on_a_cluster_stops_and_its_workers_with_it(shard_folders, tmp_path, snapshot):
    pytest.importorskip("distributed", reason="needs the extra `distributed`")
    dashboard, said = stop_a_fit(shard_folders[8], tmp_path, "--on", "dask://local")
    assert "dashboard" in dashboard
    snapshot(said)
