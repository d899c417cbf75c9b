"""Connect to a Dask cluster, or start one on this machine, and report its loss in one sentence."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from discreet.core.checks import DiscreetError
from discreet.core.errors import ExtraMissing
from discreet.sources.errors import ClusterLost, NoScheduler, UnknownEngine, WorkersDied

LOCAL, SCHEME = "dask://local", "dask://"
#: Seconds without any worker after which a cluster is lost: a local one replaces a dead worker in less.
PATIENCE = 5.0
_ASKED_EVERY = 0.5
# Tasks are few and long, so frequent monitoring costs more than it shows.
_CALM = {
    "distributed.admin.large-graph-warning-threshold": "4GB",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.comm.timeouts.connect": "10s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.profile.enabled": False,
}


@contextmanager
def connected(address: str, *, workers: int = 2) -> Iterator[Any]:
    """Yield a client of the cluster at an address; `dask://local` starts one on this machine."""
    if not address.startswith(SCHEME) or address == SCHEME:
        raise UnknownEngine(address=address, forms=(LOCAL, f"{SCHEME}HOST:PORT"))
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ExtraMissing(package="distributed", extra="discreet[distributed]") from error
    with dask.config.set(_CALM):
        if address != LOCAL:
            try:
                client = Client("tcp://" + address.removeprefix(SCHEME))  # type: ignore[no-untyped-call]
            except (OSError, ValueError) as error:
                raise NoScheduler(address=address.removeprefix(SCHEME)) from error
            with _quiet(), client:
                yield client
            return
        threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        with _ctrl_c_for_later():
            cluster = LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=":0",
                env=threads,
                silence_logs=logging.CRITICAL,
            )
        with cluster, Client(cluster) as client:  # type: ignore[no-untyped-call]
            yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the client's log of lost connections off the terminal: the error states it in one sentence."""
    before = {name: logging.getLogger(name).level for name in ("distributed", "distributed.client")}
    for name in before:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _ctrl_c_for_later() -> Iterator[None]:
    """Delay a Ctrl-C until the end of the block; processes and threads started in it never receive one.

    A terminal sends it to the workers, too. They would die with a traceback before the driver cancels.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The tracker unblocks signals when it starts, so it must start before.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def result_of(client: Any, future: Any) -> Any:
    """Return the result of a task; raise if the cluster has no worker for some seconds.

    A scheduler keeps tasks until a worker comes, so waiting alone would never end.

    Raises:
        ClusterError: No worker is left, or the scheduler doesn't answer.
    """
    # `result(timeout=…)` cancels its own wait, and on a busy machine that ends in an internal error of Dask.
    ended = threading.Event()
    future.add_done_callback(lambda _: ended.set())
    seen = time.monotonic()
    while not ended.wait(_ASKED_EVERY):
        if client.sync(client.scheduler.ncores, callback_timeout=PATIENCE):
            seen = time.monotonic()
        elif time.monotonic() - seen > PATIENCE:
            raise ClusterLost(why=f"it has had no workers for {PATIENCE:g} seconds")
    if future.cancelled():
        raise ClusterLost(why="its scheduler canceled the work")
    return future.result()


@contextmanager
def losses_as_sentences() -> Iterator[None]:
    """Turn the errors of a lost cluster, or of workers that keep dying, into one sentence."""
    from distributed import KilledWorker

    try:
        yield
    except DiscreetError:
        raise
    except KilledWorker as error:
        raise WorkersDied() from error
    except (OSError, asyncio.CancelledError, futures.CancelledError, TimeoutError) as error:
        raise ClusterLost(why="its scheduler doesn't answer") from error
