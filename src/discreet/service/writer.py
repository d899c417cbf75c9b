"""Commit many requests at once: one thread writes whatever came in within a moment, in the order of senders.

A flush to disk costs the same for one report as for a thousand, so requests wait for a common one. Waiting
also hides who of them came first. Each is answered after its own reports are on disk, never before.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from typing import NamedTuple, final

from discreet.core.checks import FileError
from discreet.service.admission import Receipt, Submission
from discreet.service.running import log
from discreet.service.stores import ReportStore

MOST_TOGETHER = 512
MOST_WAITING = 4096
# How long a sender waits for the disk, and how long a service that ends waits for the last group.
_SENDER_SECONDS, _LAST_SECONDS = 30.0, 30.0
# A store that is in use when it should be rewritten is tried again after this time.
_AGAIN_SECONDS = 60.0


class _Waiting(NamedTuple):
    submission: Submission
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Receipt]


@final
class GroupWriter:
    """Hand submissions to the store in groups.

    Parameters:
        store: Where they go.
        seconds: How long the first of a group waits for others.
        rewrite_seconds: How often what shows the order of groups is removed; it also is at the end.
    """

    def __init__(self, store: ReportStore, *, seconds: float = 0.5, rewrite_seconds: float = 3600.0) -> None:
        self._store, self._seconds, self._rewrite_seconds = store, seconds, rewrite_seconds
        self._rewrite_at, self._shows_order = time.monotonic() + rewrite_seconds, False
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="group commit", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Return whether so many requests wait that no more should be taken."""
        return self._waiting.qsize() >= MOST_WAITING

    def note_order(self) -> None:
        """Record that something else was written whose order may show, so that it is rewritten, too."""
        self._shows_order = True

    async def submit(self, submission: Submission) -> Receipt:
        """Return what became of a submission, after it is on disk; a `TimeoutError` leaves it open.

        A submission whose wait has ended may still be written. Sending it again does no harm.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Receipt] = loop.create_future()
        self._waiting.put(_Waiting(submission, loop, answer))
        async with asyncio.timeout(_SENDER_SECONDS):
            return await answer

    def stop(self) -> None:
        """Write what is waiting, put everything into the order of senders, then end.

        A store that does not answer is left: nothing that waits for it was acknowledged.
        """
        self._waiting.put(None)
        self._thread.join(_LAST_SECONDS)
        if self._thread.is_alive():
            log("store does not answer", why="The service ends without it; what was acknowledged is stored.")

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            group, last = self._gather(first)
            self._write(group)
            self._store.settle()
            if last:
                break
            if time.monotonic() >= self._rewrite_at:
                self._rewrite()
        self._rewrite()

    def _rewrite(self) -> None:
        self._rewrite_at = time.monotonic() + self._rewrite_seconds
        if not self._shows_order:
            return
        try:
            self._store.rewrite()
            self._shows_order = False
        except Exception as error:
            # Nothing is lost: the rows stay where they are. This thread must go on: senders wait for it.
            self._rewrite_at = time.monotonic() + min(_AGAIN_SECONDS, self._rewrite_seconds)
            log("rewrite failed", why=str(error) if isinstance(error, FileError) else type(error).__name__)

    def _gather(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """Return what comes within the time, and whether the end came with it."""
        group, end = [first], time.monotonic() + self._seconds
        while len(group) < MOST_TOGETHER:
            try:
                one = self._waiting.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            if one is None:
                return group, True
            group.append(one)
        return group, False

    def _write(self, group: list[_Waiting]) -> None:
        try:
            receipts: list[Receipt | BaseException] = [*self._store.take([one.submission for one in group])]
            self._shows_order = True
        except Exception as error:
            # Nothing of the group is on disk; every sender gets that answer and may send again.
            receipts = [error] * len(group)
        for one, receipt in zip(group, receipts, strict=True):
            with contextlib.suppress(RuntimeError):  # the loop has ended, and no sender waits
                one.loop.call_soon_threadsafe(_answer, one.answer, receipt)


def _answer(answer: asyncio.Future[Receipt], receipt: Receipt | BaseException) -> None:
    if answer.done():  # the sender has left
        return
    if isinstance(receipt, BaseException):
        answer.set_exception(receipt)
    else:
        answer.set_result(receipt)
