"""Serve a model with several processes on one port: each accepts connections of the same socket.

The first process only starts the others, starts those again that die, and ends all of them. What one peer may
ask is counted over all processes; each has its part of the connections.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.service.counting import COUNTS_VARIABLE
from discreet.service.limits import SLOTS, SharedCounts
from discreet.service.running import END_SECONDS, listening, log, serve_at

if TYPE_CHECKING:
    from fastapi import FastAPI

# A worker that dies is started again, at most so often.
_RESTART_SECONDS = 1.0


def run_several(
    make: Callable[..., FastAPI], count: int, host: str, port: int, proxies: Sequence[str] = ()
) -> None:
    """Serve with `count` processes until SIGTERM or SIGINT; `make` makes the application in each of them."""
    context = multiprocessing.get_context("spawn")
    counts = SharedCounts(context.RawArray("I", SLOTS), secrets.token_bytes(16))
    ended = threading.Event()

    def start() -> SpawnProcess:
        given = (make, listener, proxies, count, counts)
        worker = context.Process(target=_work, args=given, name="worker")
        worker.start()
        return worker

    with listening(host, port) as listener, _counting_together() as folder, _until_told(ended):
        workers = [start() for _ in range(count)]
        try:
            while not ended.wait(_RESTART_SECONDS):
                for number, worker in enumerate(workers):
                    if not worker.is_alive():
                        log("worker ended", code=worker.exitcode)
                        _forget(folder, worker.pid)
                        workers[number] = start()
        finally:
            _end(workers)


def _work(
    make: Callable[..., FastAPI],
    listener: socket.socket,
    proxies: Sequence[str],
    count: int,
    counts: SharedCounts,
) -> None:
    """Serve in a worker process, which ends with the process that started it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        # Without a word from the first process, its folder is still there.
        shutil.rmtree(os.environ[COUNTS_VARIABLE], ignore_errors=True)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()
    with listener:
        serve_at(make(shared=counts), listener, proxies, share=count)


@contextlib.contextmanager
def _counting_together() -> Iterator[Path]:
    """Name a folder for the counts of all workers, while they run."""
    with tempfile.TemporaryDirectory(prefix="discreet-counts-") as folder:
        os.environ[COUNTS_VARIABLE] = folder
        try:
            yield Path(folder)
        finally:
            del os.environ[COUNTS_VARIABLE]


def _forget(folder: Path, pid: int | None) -> None:
    """Remove the present values of a worker that died; its sums stay."""
    for left in folder.glob(f"gauge_live*_{pid}.db"):
        left.unlink(missing_ok=True)


@contextlib.contextmanager
def _until_told(ended: threading.Event) -> Iterator[None]:
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.signal(kind, lambda *_: ended.set()) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _end(workers: Sequence[SpawnProcess]) -> None:
    """End all workers: each answers what it has begun."""
    for worker in workers:
        worker.terminate()
    last = time.monotonic() + END_SECONDS + 5
    for worker in workers:
        worker.join(max(0.0, last - time.monotonic()))
        if worker.is_alive():
            worker.kill()
            worker.join()
