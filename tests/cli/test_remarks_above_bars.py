"""A remark during a task is on a line of its own, also where the task shows a bar."""

import io
import sys

import pytest

from discreet.cli.output.printing import remark
from discreet.cli.output.terminal import plain_console
from discreet.core.progress import terminal_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown_with_a_bar(say, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    screen = sys.stderr
    with terminal_progress(None) as report:
        report("reading", 1, 2)
        say("a word")
        report("reading", 2, 2)
    return screen.getvalue()


def own_line(shown):
    before, _, after = shown.partition("a word")
    return before.endswith(("\n", "\x1b[2K")) and after.startswith("\n")


def test_a_remark_is_above_the_bar(monkeypatch):
    assert own_line(shown_with_a_bar(remark, monkeypatch))


def test_the_twin_another_console_writes_into_the_bar(monkeypatch):
    assert not own_line(shown_with_a_bar(plain_console(stderr=True).print, monkeypatch))


@pytest.mark.parametrize("sentence", ["one\x1b[2J", "two\nlines"])
def test_a_remark_does_not_control_the_terminal(sentence, capsys):
    remark(sentence)
    shown = capsys.readouterr().err
    assert "\x1b" not in shown and shown.count("\n") == sentence.count("\n") + 1
