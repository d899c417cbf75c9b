"""A cluster without workers ends a fit with one sentence; a worker that returns in time doesn't."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from threading import Timer
from types import SimpleNamespace

import pytest

from discreet.privacy.ledger import Ledger
from discreet.sources import cluster, spark
from discreet.sources.cluster import result_of
from discreet.sources.errors import ClusterError
from discreet.testing import refuses


class Task:
    """A task that ends after its scheduler was asked a number of times, or never."""

    def __init__(self, after, *, canceled=False, error=None):
        self.asked, self.after, self.canceled, self.error = 0, after, canceled, error

    def add_done_callback(self, call):
        self.call = call
        self.is_asked(0)

    def is_asked(self, times=1):
        self.asked += times
        if self.asked >= self.after:
            self.call(self)

    def cancelled(self):
        return self.canceled

    def result(self):
        if self.error:
            raise self.error
        return "sum"


def result_from(cores, task):
    """Return the result of a task whose scheduler reports these workers in turn; the last ones stay."""
    answers = list(cores)

    def asked(ask, callback_timeout):
        task.is_asked()
        return ask()

    scheduler = SimpleNamespace(ncores=lambda: answers.pop(0) if len(answers) > 1 else answers[0])
    return result_of(SimpleNamespace(scheduler=scheduler, sync=asked), task)


@pytest.fixture
def clock(monkeypatch):
    seconds = iter(range(10_000))
    monkeypatch.setattr(cluster.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(cluster, "_ASKED_EVERY", 0)


@pytest.mark.usefixtures("clock")
def test_no_worker_for_some_seconds_ends_the_wait():
    task = Task(after=1000)
    with pytest.raises(ClusterError):
        result_from([{"a": 1}, {}], task)
    assert task.asked <= 10


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("cores", [[{"a": 1}], [{}, {}, {"b": 1}, {}, {}, {"b": 1}]])
def test_a_slow_task_and_a_worker_that_comes_back_are_waited_for(cores):
    assert result_from(cores, Task(after=100)) == "sum"


def test_an_error_of_the_task_itself_is_not_taken_for_a_loss():
    with pytest.raises(TimeoutError):
        result_from([{}], Task(after=0, error=TimeoutError()))


def test_a_task_that_the_scheduler_cancels_is_a_lost_cluster():
    with pytest.raises(ClusterError):
        result_from([{"a": 1}], Task(after=0, canceled=True))


@pytest.mark.thorough
def test_a_slow_task_of_a_real_cluster_has_its_result(monkeypatch):
    """Thousands of short waits end in the result: none of them may break the task."""
    distributed = pytest.importorskip("distributed", reason="needs the extra `distributed`")
    monkeypatch.setattr(cluster, "_ASKED_EVERY", 0.001)

    def slept(number):
        time.sleep(0.1)
        return number

    with (
        distributed.LocalCluster(n_workers=1, dashboard_address=":0") as there,
        distributed.Client(there) as client,
    ):
        tasks = [client.submit(slept, number, pure=False) for number in range(20)]
        assert [result_of(client, task) for task in tasks] == list(range(20))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX")
def test_a_fit_whose_workers_all_die_says_so(shard_folders, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra `distributed`")
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as there:
        address = there.scheduler_address
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"],
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with distributed.Client(there) as client:
                client.wait_for_workers(1, timeout=120)
            book = tmp_path / "shop.ledger"
            Ledger.open(book)
            fit = subprocess.Popen(
                [
                    *(sys.executable, "-m", "discreet", "fit", shard_folders[8]),
                    *(
                        "--model",
                        "frank-wolfe",
                        "--set",
                        "solver=oja",
                        "--set",
                        "rounds=400",
                        "--epsilon",
                        "1",
                    ),
                    *("--out", tmp_path / "m.discreet", "--ledger", book),
                    *("--on", address.replace("tcp://", "dask://")),
                ],
                stderr=subprocess.PIPE,
                text=True,
            )
            while not Ledger.open(book).entries() and fit.poll() is None:
                time.sleep(0.2)
            time.sleep(3)
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
            died = time.monotonic()
        error = fit.communicate(timeout=120)[1]
        took = time.monotonic() - died
    assert fit.returncode == 1 and "[cluster-lost]" in error and took < 10


class Rows:
    """Rows of Spark that come after some seconds, never, or not at all."""

    def __init__(self, found=None, error=None):
        self.found, self.error = found, error

    def collect(self):
        if self.error is not None:
            raise self.error
        while self.found is None:
            time.sleep(0.05)
        return self.found


def spark_session(executors, master="spark://h:7077"):
    """Return a session whose cluster reports these numbers of executors in turn, the last one forever."""
    answers, cancelled = list(executors), []
    status = SimpleNamespace(size=lambda: 1 + (answers.pop(0) if len(answers) > 1 else answers[0]))
    java = SimpleNamespace(sc=lambda: SimpleNamespace(getExecutorMemoryStatus=lambda: status))
    context = SimpleNamespace(master=master, _jsc=java, cancelAllJobs=lambda: cancelled.append(True))
    return SimpleNamespace(sparkContext=context, cancelled=cancelled)


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(spark, "PATIENCE", 0.2)
    monkeypatch.setattr(spark, "_ASKED_EVERY", 0.01)
    monkeypatch.setattr(spark, "_UNTIL_STARTED", 0.2)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("executors", [[0], [2, 2, 0]])
def test_no_executor_of_spark_for_some_seconds_ends_the_wait(executors):
    session = spark_session(executors)
    with refuses("spark-lost"):
        spark.collected(Rows(), session)
    assert session.cancelled


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("session", [spark_session([1, 0, 0, 1]), spark_session([0], "local[2]")])
def test_executors_that_are_there_or_come_back_are_waited_for(session):
    rows = Rows()
    Timer(0.5, lambda: setattr(rows, "found", ["sum"])).start()
    assert spark.collected(rows, session) == ["sum"] and not session.cancelled


@pytest.mark.usefixtures("hurried")
def test_a_fit_waits_for_the_first_executor_before_it_spends():
    with refuses("no-executors"):
        spark.on_spark(None, spark_session([0]))
    assert spark.on_spark(None, spark_session([0, 0, 1])).shards is None


@pytest.mark.usefixtures("hurried")
def test_an_error_of_spark_itself_is_a_sentence_at_once():
    with refuses("spark-lost"):
        spark.collected(Rows(error=RuntimeError("rows of a user")), spark_session([1]))


def test_no_master_is_a_sentence_without_a_wait():
    pytest.importorskip("pyspark", reason="needs the extra `spark`")
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"spark://127.0.0.1:{taken.getsockname()[1]}"
        with refuses("spark-not-started", address=address), spark.session(address):
            pass
