"""Commit many requests at once: one thread writes whatever has come in since the last commit.

A flush to disk costs the same for one report as for a thousand, so requests wait for a common one. Each is
answered after its own reports are on disk, never before.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import NamedTuple, final

from discreet.service.admission import Receipt, Submission
from discreet.service.stores.store import Store

MOST_TOGETHER = 512
MOST_WAITING = 4096


class _Waiting(NamedTuple):
    submission: Submission
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Receipt]


@final
class GroupWriter:
    """Hand submissions to the store in groups."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="group commit", daemon=True)
        self._thread.start()

    @property
    def is_full(self) -> bool:
        """Tell whether so many requests wait that no more should be taken."""
        return self._waiting.qsize() >= MOST_WAITING

    async def submit(self, submission: Submission) -> Receipt:
        """Return what became of a submission, after it is on disk."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Receipt] = loop.create_future()
        self._waiting.put(_Waiting(submission, loop, answer))
        return await answer

    def stop(self) -> None:
        """Write what is waiting, then end."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            group, last = self._gather(first)
            self._write(group)
            if last:
                break

    def _gather(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """Return what waits already, and whether the end came with it."""
        group = [first]
        while len(group) < MOST_TOGETHER:
            try:
                one = self._waiting.get_nowait()
            except queue.Empty:
                break
            if one is None:
                return group, True
            group.append(one)
        return group, False

    def _write(self, group: list[_Waiting]) -> None:
        try:
            receipts: list[Receipt | BaseException] = [*self._store.take([one.submission for one in group])]
        except Exception as error:
            # Nothing of the group is on disk; every sender is told so and may send again.
            receipts = [error] * len(group)
        for one, receipt in zip(group, receipts, strict=True):
            one.loop.call_soon_threadsafe(_answer, one.answer, receipt)


def _answer(answer: asyncio.Future[Receipt], receipt: Receipt | BaseException) -> None:
    if answer.done():  # the sender has left
        return
    if isinstance(receipt, BaseException):
        answer.set_exception(receipt)
    else:
        answer.set_result(receipt)
