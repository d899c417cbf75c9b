"""Compute answers next to the event loop: few threads, a bounded queue, and a deadline for each wait.

The event loop answers all peers, so nothing on it may take long. What takes long runs here. Strangers can't
make the queue grow: beyond its length a request is rejected at once.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar, final

from starlette.requests import ClientDisconnect, Request
from threadpoolctl import threadpool_limits

from discreet.service.limits import RefusedError

Result = TypeVar("Result")

_BUSY = "Too many questions are waiting; try again in a minute."


def one_thread_for_linear_algebra() -> threadpool_limits:
    """Limit linear algebra to one thread, until the returned value is left as a context.

    Answers are small. Threads that share an answer wait for each other in busy loops: on a busy machine, an
    answer then takes thirty times as much processor time. Some libraries obey the main thread, and others
    obey each thread.
    """
    # Only loaded: a library that comes later would have threads of its own.
    importlib.import_module("scipy.linalg")
    return threadpool_limits(1, user_api="blas")


@final
class Workers:
    """Run functions in threads of their own.

    A function that has begun can't be stopped, so the caller bounds its input. The deadline ends the wait of
    the peer, and takes back what has not begun.

    Parameters:
        threads: How many functions run at once.
        waiting: How many more may wait; others are rejected.
        seconds: How long a peer waits for an answer.
    """

    def __init__(self, *, threads: int = 2, waiting: int = 64, seconds: float = 10.0) -> None:
        self._pool = ThreadPoolExecutor(
            threads, thread_name_prefix="answers", initializer=one_thread_for_linear_algebra
        )
        self._most, self._seconds = threads + waiting, seconds
        self._held = 0
        self._lock = threading.Lock()

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns; raise if too much waits already, or if it takes too long."""
        with self._lock:
            if self._held >= self._most:
                raise RefusedError(503, _BUSY)
            self._held += 1
        begun = self._pool.submit(work)
        begun.add_done_callback(self._release)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.wrap_future(begun)
        except TimeoutError as error:
            raise RefusedError(503, "The answer took too long; ask with less, or later.") from error

    async def run_for_many(self, request: Request, works: Iterable[Callable[[], bytes]]) -> bytes:
        """Return the JSON answers to a request for many, one after the other.

        Between two of them, others are answered. A peer that leaves ends the work for it.
        """
        found = []
        for work in works:
            if await request.is_disconnected():
                raise ClientDisconnect()
            found.append(await self.run(work))
        return b'{"answers":[%s]}' % b",".join(found)

    def stop(self) -> None:
        """Take nothing more; what waits is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _release(self, _: object) -> None:
        with self._lock:
            self._held -= 1


@final
class Turns:
    """Run short functions on the event loop, which looks after its other peers every few milliseconds."""

    def __init__(self, seconds: float = 0.01) -> None:
        self._seconds, self._spent = seconds, 0.0
        self._counts = False

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns, in this round of the loop or in a later one."""
        while self._spent >= self._seconds:
            await asyncio.sleep(0)
        if not self._counts:
            self._counts = True
            asyncio.get_running_loop().call_soon(self._begin)
        begun = time.perf_counter()
        try:
            return work()
        finally:
            self._spent += time.perf_counter() - begun

    def _begin(self) -> None:
        """Begin a round."""
        self._spent, self._counts = 0.0, False


@final
class SharedLookup(Generic[Result]):
    """A value that takes a while to look up: while one lookup runs, all who ask wait for it."""

    def __init__(self, workers: Workers, look: Callable[[], Result]) -> None:
        self._workers, self._look = workers, look
        self._running: asyncio.Future[Result] | None = None

    async def value(self) -> Result:
        """Return what is found; raise as `Workers.run` does."""
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(self._workers.run(self._look))
            # All who wait get the error. Without them, it isn't worth a log entry.
            self._running.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._running)
