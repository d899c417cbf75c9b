"""Sum over a folder of shards on the executors of a Spark cluster; the noise stays with the driver.

Each task opens some shards by path and returns their exact sum through `mapInArrow`. If an executor is lost,
Spark runs its tasks again, and they return the same sums. The driver adds them and draws the noise once.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, final

from discreet.core import ExtraMissing
from discreet.core.checks import DiscreetError
from discreet.data import is_query
from discreet.sources import errors
from discreet.sources.cluster import OverShards, Whereabouts, fingerprint, sum_of_shards
from discreet.statistics import Statistic, Sums

LOCAL = "spark://local"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.maxResultSize": "0",
    # A task is a whole pass over some shards: what it needs is threads of our own, of which there is one.
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
}
#: Seconds without any executor after which a cluster is lost: a worker starts a new one in less.
PATIENCE = 8.0
_ASKED_EVERY, _UNTIL_STARTED = 0.5, 30.0
_TASKS_PER_CORE = 2
# A row of Spark has at most 2 GB; sums can be larger.
_CHUNK = 1 << 26
_SCHEMA = "task long, at long, content binary"


@contextmanager
def session(address: str) -> Iterator[Any]:
    """Yield a session of the cluster at an address; `spark://local` runs on this machine."""
    if address != LOCAL and not re.fullmatch(r"spark://[^:/]+:[0-9]+(,[^:/]+:[0-9]+)*", address):
        raise errors.UnknownEngine(address=address, forms=(LOCAL, "spark://HOST:PORT"))
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ExtraMissing(package="pyspark", extra="discreet[spark]") from error
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master("local[2]" if address == LOCAL else address).appName("discreet")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    try:
        if address != LOCAL:
            _require_master(address)
        opened = builder.getOrCreate()
    except Exception as error:
        raise errors.SparkNotStarted(address=address) from error
    try:
        with warnings.catch_warnings():
            # Nothing here uses pandas.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
            yield opened
    finally:
        opened.stop()


def _require_master(address: str) -> None:
    """Raise if nothing listens at any of the addresses; Spark itself would try for a minute."""
    for place in address.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=PATIENCE):
            return
    raise ConnectionError(address)


def export_table(opened: Any, table: str, folder: Path) -> str:
    """Write the rows of a table, a view or a query to a folder of Parquet files; return the query, if any."""
    try:
        rows = opened.sql(table) if is_query(table) else opened.table(table)
        rows.write.parquet(str(folder))
        if is_query(table) or opened.catalog.getTable(table).tableType not in ("VIEW", "TEMPORARY"):
            return table if is_query(table) else ""
        described = opened.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
        texts = (row["data_type"] for row in described if row["col_name"] == "View Text")
        return next(texts, table)
    except Exception as error:
        # Spark's own sentence may quote a value of a row.
        raise errors.UnreadableTable(engine="Spark", source=table, why=type(error).__name__) from error


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SparkSource(OverShards):
    """A folder of shards as a data source that Spark's executors sum over."""

    session: Any

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of all users' contributions."""
        cores = max(int(self.session.sparkContext.defaultParallelism), 1)
        tasks = min(self.shards.n_shards, _TASKS_PER_CORE * cores)
        work = _task(Whereabouts.of(self.shards), self.shards, tasks, statistic)
        rows = self.session.range(0, tasks, 1, tasks).mapInArrow(work, _SCHEMA)
        return _added(collected(rows, self.session), self.shards.report)


def collected(rows: Any, opened: Any) -> list[Any]:
    """Return all rows; raise if the cluster has no executor for some seconds.

    Spark keeps a job until an executor comes, so waiting alone would never end.

    Raises:
        SparkLost: No executor is left, or the executors died repeatedly.
    """
    context, done = opened.sparkContext, Future[list[Any]]()

    def collect() -> None:
        try:
            done.set_result(rows.collect())
        except BaseException as error:
            done.set_exception(error)

    # A daemon: if the cluster is gone, nothing here waits for what it never returns.
    Thread(target=collect, daemon=True).start()
    seen = time.monotonic()
    while not done.done():
        with suppress(TimeoutError):
            done.exception(timeout=_ASKED_EVERY)
        if _executors(context):
            seen = time.monotonic()
        elif time.monotonic() - seen > PATIENCE:
            with suppress(Exception):
                context.cancelAllJobs()
            raise errors.SparkLost
    error = done.exception()
    if error is not None:
        raise errors.SparkLost from error
    return done.result()


def _executors(context: Any) -> int:
    """Return how many executors a cluster has; the driver's own process is one only if all runs there."""
    if context.master.startswith("local"):
        return 1
    try:
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1
    except Exception:
        # The context ended with its cluster.
        return 0


def _task(
    where: Whereabouts, shards: Any, tasks: int, statistic: Statistic
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the work of all tasks, for executors."""
    facts, count, expected = shards.facts, shards.n_shards, fingerprint()

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            for task in batch.column(0).to_pylist():
                try:
                    numbers = list(range(task, count, tasks))
                    content = pickle.dumps(sum_of_shards(where, facts, numbers, statistic, expected))
                except DiscreetError as error:
                    yield pyarrow.RecordBatch.from_pylist(
                        [{"task": task, "at": -1, "content": str(error).encode()}], _arrow_schema()
                    )
                    return
                for at in range(0, len(content), _CHUNK):
                    part = {"task": task, "at": at, "content": content[at : at + _CHUNK]}
                    yield pyarrow.RecordBatch.from_pylist([part], _arrow_schema())

    return work


def _arrow_schema() -> Any:
    import pyarrow

    return pyarrow.schema([("task", pyarrow.int64()), ("at", pyarrow.int64()), ("content", pyarrow.binary())])


def _added(rows: Iterable[Any], report: Callable[[int, int], None] | None) -> Sums:
    """Return the sum of what all tasks returned."""
    parts: dict[int, dict[int, bytes]] = {}
    for row in rows:
        if row.at < 0:
            raise errors.ExecutorFailed(why=bytes(row.content).decode())
        parts.setdefault(row.task, {})[row.at] = bytes(row.content)
    total: Sums | None = None
    for done, task in enumerate(sorted(parts), start=1):
        # Our own executors wrote this, on machines that see all users' rows anyway.
        one: Sums = pickle.loads(b"".join(parts[task][at] for at in sorted(parts[task])))
        total = one if total is None else total + one
        if report is not None:
            report(done, len(parts))
    if total is None:
        raise errors.SparkLost
    return total


def on_spark(shards: Any, opened: Any) -> SparkSource:
    """Return the shards as a data source on a Spark cluster, as soon as that has an executor."""
    begun = time.monotonic()
    while not _executors(opened.sparkContext):
        if time.monotonic() - begun > _UNTIL_STARTED:
            raise errors.NoExecutors(seconds=_UNTIL_STARTED)
        time.sleep(_ASKED_EVERY)
    return SparkSource(shards=shards, session=opened)
