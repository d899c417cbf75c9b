"""See that a device draws once: one thread at a time, in one process, and within a limit."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import final

from discreet.checks import PrivacyError, positive_finite
from discreet.randomness import PrivacyRandom

#: The most that all answers to one campaign may cost a person who did not set a limit.
USUAL_BUDGET = 20.0


@final
class Turn:
    """Let one thread of one process answer at a time: copies of a device would each draw their own noise."""

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn; refuse in a process that was forked from the device's own."""
        if os.getpid() != self._process:
            raise PrivacyError(
                "A device answers only in the process that made it: a copy would draw its answers again. "
                "Keep what it sent, and make a new device from that."
            )
        with self._lock:
            yield


def limit(budget: float | None, random: PrivacyRandom) -> float | None:
    """Return the limit that holds: the usual one if none was set, and none for experiments only."""
    if budget is not None:
        return positive_finite("budget", budget)
    return None if random.simulated else USUAL_BUDGET
