"""One Ctrl-C ends a command in a process of its own, also if a library loses it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from discreet.core import interrupts
from discreet.core.progress import silent

# A verb that waits for Ctrl-C where it is lost, and would then go on for longer than any test waits.
PROGRAM = """
import ctypes, signal, sys, time
from pathlib import Path
from discreet.cli import models
from discreet.cli import main
from discreet.core.progress import silent

folder, how = Path(sys.argv.pop(1)), sys.argv.pop(1)
# Shells start programs in the background without Ctrl-C, and what these start inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def wait(name):
    (folder / name).touch()
    for _ in range(60_000):
        time.sleep(0.01)

called = ctypes.CFUNCTYPE(None)(lambda: wait("first"))

def verb():
    if how.startswith("in a function"):
        called()
        if how.endswith("and then at a step"):
            try:
                silent("learning", 1, 2)
            finally:
                # What is cleaned up is not interrupted by what comes back.
                time.sleep(0.3)
                (folder / "cleaned").touch()
    else:
        try:
            wait("first")
        except KeyboardInterrupt:
            pass
        if how == "before a step of a task":
            silent("learning", 1, 2)
    wait("second")

models.described = verb
main()
"""


def started(folder, how):
    command = [sys.executable, "-c", PROGRAM, folder, how, "models"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    press(process, folder / "first")
    return process


def press(process, once):
    """Press Ctrl-C once a file is there."""
    while not once.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)


def ended(process):
    out, error = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert error.startswith("discreet: stopped.") and error.count("\n") == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("how", ["in a function that compiled code calls", "before a step of a task"])
def test_a_lost_interrupt_comes_back(how, tmp_path):
    ended(started(tmp_path, how))


def test_it_comes_back_once(tmp_path):
    ended(started(tmp_path, "in a function that compiled code calls, and then at a step"))
    assert (tmp_path / "cleaned").exists()


def test_a_second_press_acts_at_once(tmp_path):
    process = started(tmp_path, "and kept")
    press(process, tmp_path / "second")
    ended(process)


@pytest.fixture
def foreground():
    """Handle Ctrl-C as in a terminal, wherever tests run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_steps_outside_of_a_command_raise_nothing(foreground):
    silent("learning", 1, 2)
    with pytest.raises(KeyboardInterrupt), interrupts.not_lost():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        silent("learning", 1, 2)
    silent("learning", 1, 2)


def test_another_handler_and_other_reports_are_left_alone(foreground, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with interrupts.not_lost():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        fails = type("Fails", (), {"__del__": lambda self: 1 / 0})()
        del fails
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.not_lost():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert [one.exc_type for one in told] == [ZeroDivisionError]
