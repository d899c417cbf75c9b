"""Sum over a folder of shards on the workers of a Dask cluster; the noise stays with the driver.

Workers open shards by path and return exact sums. If a worker is lost, its task runs again on another one and
returns the same sum. Nothing is drawn or spent twice: the driver draws the noise after the last sum came in.
A cluster without a worker for some seconds is lost, which is reported in one sentence.

All workers must run the same code, compiled by the same compiler for the same kind of processor. Otherwise
a user's vector could depend on the machine that computes it, and that may depend on who else is in the data
(proofs/exact_sums.md).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import platform
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, final

import llvmlite.binding
import numba

from discreet.core import ExtraMissing
from discreet.core.checks import DiscreetError
from discreet.core.kernels import shipped
from discreet.data import PublicFacts
from discreet.sources import errors
from discreet.sources.object_stores import is_address
from discreet.sources.shards import ShardFolder, open_shards
from discreet.statistics import OverSource, Statistic, Sums

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
Sent = TypeVar("Sent")
# How many sums one task adds, so that the tree has few levels; large ones are added in pairs, so that a
# worker never has more than a few of them.
FAN_IN = 8
_BYTES_ADDED = 1 << 29
TASKS_PER_THREAD = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class OverShards(OverSource):
    """A folder of shards that other processes sum over; they open it by its path."""

    shards: ShardFolder

    @property
    def source(self) -> ShardFolder:  # type: ignore[override]
        """Return the folder."""
        return self.shards

    def bounded(self) -> Self:
        """Return the same source: every block is bounded as it is read."""
        return self


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterSource(OverShards):
    """A folder of shards as a data source that a Dask cluster sums over."""

    client: Any

    def refuse_mixed(self) -> None:
        """Raise for a cluster without workers, or one whose workers could round differently."""
        # A worker without this package answers with an error.
        answers = self.client.run(fingerprint, on_error="return")
        if not answers:
            raise errors.NoWorkers()
        found = {worker: theirs if isinstance(theirs, dict) else {} for worker, theirs in answers.items()}
        other = {worker: differences(theirs) for worker, theirs in found.items() if differences(theirs)}
        if other:
            worker, names = next(iter(other.items()))
            raise errors.WorkersDiffer(count=len(other), of=len(found), names=(worker, *names))

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of all contributions, added up in a tree on the workers."""
        with losses_as_sentences():
            return self._total(statistic)

    def _total(self, statistic: Statistic) -> Sums:
        client, report = self.client, self.shards.report
        there = client.submit(same, statistic, pure=False)
        where, facts = Whereabouts.of(self.shards), self.shards.facts
        groups = self._groups()
        sums = [
            client.submit(sum_of_shards, where, facts, one, there, fingerprint(), pure=False)
            for one in groups
        ]
        every = [there, *sums]
        if report is not None:
            done = iter(range(1, len(groups) + 1))
            for future in sums:
                future.add_done_callback(lambda _: report(next(done, len(groups)), len(groups)))
        width = fan_in(statistic)
        while len(sums) > 1:
            sums = [
                client.submit(_added, sums[at : at + width], pure=False) for at in range(0, len(sums), width)
            ]
            every += sums
        return self._result(sums[0], every)

    def _groups(self) -> list[list[int]]:
        """Group the shards into tasks: few sums to transfer, and little to repeat if a task is lost."""
        tasks = min(self.shards.n_shards, TASKS_PER_THREAD * max(sum(self.client.ncores().values()), 1))
        return [list(range(at, self.shards.n_shards, tasks)) for at in range(tasks)]

    def _result(self, last: Any, every: list[Any]) -> Sums:
        try:
            result: Sums = result_of(self.client, last)
        except BaseException:
            # The cluster may be gone already.
            with suppress(Exception):
                self.client.cancel(every)
            raise
        return result


def fan_in(statistic: Statistic) -> int:
    """Return how many sums of this statistic one task adds."""
    size = 8 * sum(math.prod(part.shape) for part in statistic.parts)
    return max(2, min(FAN_IN, _BYTES_ADDED // max(size, 1)))


def on_cluster(shards: ShardFolder, client: Any) -> ClusterSource:
    """Return the shards as a data source on a cluster, after the environment check of its workers."""
    source = ClusterSource(shards=shards, client=client)
    source.refuse_mixed()
    return source


def same(value: Sent) -> Sent:
    """Return a value on a worker.

    As a task, not a scattered value, so that the scheduler can run it again when a worker is lost.
    """
    return value


class Whereabouts(NamedTuple):
    """A folder of shards, identified by its address and by the seal of its manifest."""

    address: str
    seal: str

    @classmethod
    def of(cls, shards: ShardFolder) -> Self:
        """Return the whereabouts of an open folder."""
        return cls(shards.address, shards.manifest.seal)


@lru_cache(maxsize=4)
def opened_once(where: Whereabouts) -> ShardFolder:
    """Open a folder of shards on a worker, once per process."""
    if not is_address(where.address) and not Path(where.address).is_dir():
        raise errors.FolderNotShared(folder=where.address)
    shards = open_shards(where.address)
    if shards.manifest.seal != where.seal:
        raise errors.FolderNotShared(folder=where.address)
    return shards


def sum_of_shards(
    where: Whereabouts,
    facts: PublicFacts,
    numbers: list[int],
    statistic: Statistic,
    expected: dict[str, str],
) -> Sums:
    """Sum over some shards on a worker; a worker that joined later gets its environment check here."""
    names = differences(expected)
    if names:
        raise errors.WorkersDiffer(count=1, of=1, names=tuple(names))
    return replace(opened_once(where), facts=facts).total_of(numbers, statistic)


def _added(parts: list[Sums]) -> Sums:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def in_order(client: Any, begin: Callable[[int], Any], count: int, ahead: int) -> Iterator[Any]:
    """Yield the results of numbered tasks in order; some are begun ahead of the one that is read."""
    waiting: deque[Any] = deque()
    try:
        for number in range(count + ahead):
            with losses_as_sentences():
                if number < count:
                    waiting.append(begin(number))
                ready = bool(waiting) and number >= ahead - 1
                made = result_of(client, waiting.popleft()) if ready else None
            if ready:
                yield made
    finally:
        # The cluster may be gone already.
        with suppress(Exception):
            client.cancel(list(waiting))


@lru_cache(maxsize=1)
def fingerprint() -> dict[str, str]:
    """Return everything that the rounding of a computation here depends on, by name."""
    libraries = {name: version(name) for name in ("numba", "llvmlite", "numpy", "scipy", "polars")}
    features = str(numba.config.CPU_FEATURES) + llvmlite.binding.get_host_cpu_features().flatten()  # type: ignore[attr-defined]
    return {
        "discreet": _digest_of_sources(),
        **libraries,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": f"{numba.config.CPU_NAME} {llvmlite.binding.get_host_cpu_name()}",  # type: ignore[attr-defined]
        "instructions": hashlib.sha256(features.encode()).hexdigest(),
        "kernels": str(shipped()),
    }


def differences(theirs: dict[str, str]) -> list[str]:
    """Return the names of the entries that differ from this process's fingerprint."""
    own = fingerprint()
    return sorted(name for name in own.keys() | theirs.keys() if own.get(name) != theirs.get(name))


def _digest_of_sources() -> str:
    """Return a digest of the package's own code."""
    root = Path(__file__).parents[1]
    total = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        total.update(file.relative_to(root).as_posix().encode())
        total.update(file.read_bytes())
    return total.hexdigest()


@contextmanager
def connected(address: str, *, workers: int = 2) -> Iterator[Any]:
    """Yield a client of the cluster at an address; `dask://local` starts one on this machine."""
    if not address.startswith(SCHEME) or address == SCHEME:
        raise errors.UnknownEngine(address=address, forms=(LOCAL, f"{SCHEME}HOST:PORT"))
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
                raise errors.NoScheduler(address=address.removeprefix(SCHEME)) from error
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
            raise errors.ClusterLost(why=f"it has had no workers for {PATIENCE:g} seconds")
    if future.cancelled():
        raise errors.ClusterLost(why="its scheduler canceled the work")
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
        raise errors.WorkersDied() from error
    except (OSError, asyncio.CancelledError, futures.CancelledError, TimeoutError) as error:
        raise errors.ClusterLost(why="its scheduler doesn't answer") from error
