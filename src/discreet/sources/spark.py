"""Sum over a folder of shards on the executors of a Spark cluster; the noise stays with the driver.

Each task opens some shards by path and returns their exact sum through `mapInArrow`. If an executor is lost,
Spark runs its tasks again, and they return the same sums. The driver adds them and draws the noise once.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from discreet.core.checks import DiscreetError
from discreet.core.errors import ExtraMissing
from discreet.sources.cluster import OverShards, Whereabouts, fingerprint, sum_of_shards
from discreet.sources.errors import (
    ExecutorFailed,
    SparkLost,
    SparkNotStarted,
    UnknownEngine,
    UnreadableTable,
)
from discreet.statistics.statistic import Statistic, Sums

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
_TASKS_PER_CORE = 2
# A row of Spark has at most 2 GB; sums can be larger.
_CHUNK = 1 << 26
_SCHEMA = "task long, at long, content binary"


@contextmanager
def session(address: str) -> Iterator[Any]:
    """Yield a session of the cluster at an address; `spark://local` runs on this machine."""
    if address != LOCAL and not re.fullmatch(r"spark://[^:/]+:[0-9]+(,[^:/]+:[0-9]+)*", address):
        raise UnknownEngine(address=address, forms=(LOCAL, "spark://HOST:PORT"))
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
        opened = builder.getOrCreate()
    except Exception as error:
        raise SparkNotStarted(address=address) from error
    try:
        yield opened
    finally:
        opened.stop()


def export_table(opened: Any, table: str, folder: Path) -> None:
    """Write the rows of a table or a query in Spark's catalog to a folder of Parquet files."""
    is_query = table.lower().startswith(("select ", "from ", "with "))
    try:
        rows = opened.sql(table) if is_query else opened.table(table)
        rows.write.parquet(str(folder))
    except Exception as error:
        # Spark's own sentence may quote a value of a row.
        raise UnreadableTable(engine="Spark", source=table, why=type(error).__name__) from error


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SparkSource(OverShards):
    """A folder of shards as a data source that Spark's executors sum over."""

    session: Any

    def bounded(self) -> SparkSource:
        """Return the same source: every block is bounded as it is read."""
        return self

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of all users' contributions."""
        cores = max(int(self.session.sparkContext.defaultParallelism), 1)
        tasks = min(self.shards.n_shards, _TASKS_PER_CORE * cores)
        work = _task(Whereabouts.of(self.shards), self.shards, tasks, statistic)
        rows = self.session.range(0, tasks, 1, tasks).mapInArrow(work, _SCHEMA)
        try:
            found = rows.collect()
        except Exception as error:
            raise SparkLost from error
        return _added(found, self.shards.report)


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
            raise ExecutorFailed(why=bytes(row.content).decode())
        parts.setdefault(row.task, {})[row.at] = bytes(row.content)
    total: Sums | None = None
    for done, task in enumerate(sorted(parts), start=1):
        # Our own executors wrote this, on machines that see all users' rows anyway.
        one: Sums = pickle.loads(b"".join(parts[task][at] for at in sorted(parts[task])))
        total = one if total is None else total + one
        if report is not None:
            report(done, len(parts))
    if total is None:
        raise SparkLost
    return total


def on_spark(shards: Any, opened: Any) -> SparkSource:
    """Return the shards as a data source on a Spark cluster."""
    return SparkSource(shards=shards, session=opened)
