"""Connect to a Dask cluster, or start one on this machine, and report its loss in one sentence."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from discreet.core.checks import DiscreetError, ParameterError

LOCAL, SCHEME = "dask://local", "dask://"
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


class ClusterError(DiscreetError):
    """Report that the cluster cannot be used, or was lost."""


@contextmanager
def connected(address: str, *, workers: int = 2) -> Iterator[Any]:
    """Yield a client of the cluster at an address; `dask://local` starts one on this machine."""
    if not address.startswith(SCHEME) or address == SCHEME:
        raise ParameterError(f"--on {address} is not understood; use {LOCAL} or {SCHEME}HOST:PORT.")
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ParameterError(
            "A cluster needs the package `distributed`: install discreet[distributed]."
        ) from error
    with dask.config.set(_CALM):
        if address != LOCAL:
            try:
                client = Client("tcp://" + address.removeprefix(SCHEME))  # type: ignore[no-untyped-call]
            except (OSError, ValueError) as error:
                raise ClusterError(f"No scheduler answers at {address.removeprefix(SCHEME)}.") from error
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
    """Keep the client's log of lost connections off the terminal: the error says it in one sentence."""
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


@contextmanager
def losses_as_sentences() -> Iterator[None]:
    """Turn the errors of a lost cluster, or of workers that keep dying, into one sentence."""
    from distributed import KilledWorker

    try:
        yield
    except DiscreetError:
        raise
    except KilledWorker as error:
        raise ClusterError(
            "Workers died again and again on one shard; give them more memory. What was paid stays paid."
        ) from error
    except (OSError, asyncio.CancelledError, futures.CancelledError, TimeoutError) as error:
        raise ClusterError("The cluster was lost. What was paid stays paid.") from error
