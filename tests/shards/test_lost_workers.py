"""A cluster without workers ends a fit with one sentence; a worker that returns in time doesn't."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from discreet.privacy.ledger import Ledger
from discreet.sources import connection
from discreet.sources.connection import result_of
from discreet.sources.errors import ClusterError


class Pending:
    """A task that is done after some questions, or never."""

    def __init__(self, after):
        self.asked, self.after, self.status = 0, after, "pending"

    def result(self, timeout=None):
        self.asked += 1
        if self.asked >= self.after:
            self.status = "finished"
            return "sum"
        raise TimeoutError


def cluster(cores):
    """Return a client whose scheduler reports these workers in turn, and the last one from then on."""
    answers = list(cores)
    scheduler = SimpleNamespace(ncores=lambda: answers.pop(0) if len(answers) > 1 else answers[0])
    return SimpleNamespace(scheduler=scheduler, sync=lambda ask, callback_timeout: ask())


@pytest.fixture
def clock(monkeypatch):
    seconds = iter(range(10_000))
    monkeypatch.setattr(connection.time, "monotonic", lambda: next(seconds))


@pytest.mark.usefixtures("clock")
def test_no_worker_for_some_seconds_ends_the_wait():
    task = Pending(after=1000)
    with pytest.raises(ClusterError):
        result_of(cluster([{"a": 1}, {}]), task)
    assert task.asked <= 10


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("cores", [[{"a": 1}], [{}, {}, {"b": 1}, {}, {}, {"b": 1}]])
def test_a_slow_task_and_a_worker_that_comes_back_are_waited_for(cores):
    assert result_of(cluster(cores), Pending(after=100)) == "sum"


def test_an_error_of_the_task_itself_is_not_taken_for_a_wait():
    task = Pending(after=1000)
    task.status = "error"
    with pytest.raises(TimeoutError):
        result_of(cluster([{"a": 1}]), task)


def test_a_task_that_ends_right_after_a_wait_has_its_result():
    task = Pending(after=2)
    task.status = "finished"
    assert result_of(cluster([{}]), task) == "sum"


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
        error = fit.communicate(timeout=120)[1]
    assert fit.returncode == 1 and "no workers" in error
