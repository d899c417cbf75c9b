"""End a command after one Ctrl-C, also where a library loses it.

Python raises KeyboardInterrupt wherever it happens to be. Inside a function that compiled code calls, no one
can catch it: Python reports that it was ignored, and the command goes on. Loading compiled kernels calls many
such functions. Here a lost interrupt is raised again a moment later, and at the latest at the next step of a
task. A second Ctrl-C is raised at once, as ever.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Long enough to leave the function that lost an interrupt; too short for anybody to notice.
_MOMENT = 0.05


class _Pressed:
    """How often Ctrl-C was raised in the command that runs."""

    def __init__(self) -> None:
        self.times = 0
        self._repeated: int | None = None

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Raise, as Python does; what came back from a thread must not have been raised again since."""
        repeated, self._repeated = self._repeated, None
        if repeated in (None, self.times):
            self.raise_again()

    def raise_again(self) -> None:
        """Raise, and let a thread that waits to do so know."""
        self.times += 1
        raise KeyboardInterrupt

    def notice(self, lost: Any) -> bool:
        """Return whether an exception that could not be raised was a Ctrl-C; it comes back."""
        if not self.times or not issubclass(lost.exc_type, KeyboardInterrupt):
            return False
        timer = threading.Timer(_MOMENT, self._come_back, (self.times,))
        timer.daemon = True
        timer.start()
        return True

    def _come_back(self, times: int) -> None:
        if self.times == times:
            self._repeated = times
            _thread.interrupt_main()


_pressed = _Pressed()


def raise_lost() -> None:
    """Raise a Ctrl-C that was pressed and has not ended the command; called at every step of a task."""
    if _pressed.times and threading.current_thread() is threading.main_thread():
        _pressed.raise_again()


@contextmanager
def not_lost() -> Iterator[None]:
    """Make Ctrl-C end what runs inside; another program's handling of Ctrl-C is left alone."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    report = sys.unraisablehook
    signal.signal(signal.SIGINT, _pressed.interrupt)
    sys.unraisablehook = lambda lost: None if _pressed.notice(lost) else report(lost)
    try:
        yield
    finally:
        # First: a thread that waits has nothing left to end.
        _pressed.times = 0
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = report
