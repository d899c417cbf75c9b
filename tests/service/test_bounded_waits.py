"""No wait of the service is without an end: not for a store, not for a thread, not when it should stop."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from discreet.collect.device import Device
from discreet.collect.gradient_rounds import GradientCampaign
from discreet.core.checks import FileError
from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.models.popularity import Popularity
from discreet.service import collect_app, recommend_app, refitting, running, similar
from discreet.service import writer as writers
from discreet.service.admission import submission
from discreet.service.stores import open_store
from discreet.service.workers import Turns
from discreet.service.writer import GroupWriter
from ports import free_port
from service.servers import InProcess, ask, ask_json, until
from toy import toy_interactions

PATIENCE = 60


def test_a_store_is_looked_at_while_it_is_written(store_url, films):
    """`/health` asks whether a collection is closed, also during a rewrite of an hour's reports."""
    store = open_store(store_url, films)
    begun, ended, found = threading.Event(), threading.Event(), []

    def write():
        with store._transaction():
            begun.set()
            ended.wait(PATIENCE)

    thread = threading.Thread(target=write)
    thread.start()
    assert begun.wait(PATIENCE)
    looks = threading.Thread(target=lambda: found.append((store.is_closed, store._invitation(b"none"))))
    looks.start()
    looks.join(PATIENCE / 2)
    assert found == [(False, None)]
    ended.set()
    thread.join()
    store.close()


class Stuck:
    """A store that does not answer."""

    def __init__(self):
        self.released = threading.Event()

    def take(self, batch):
        self.released.wait(PATIENCE)
        raise FileError("It is late.")

    def settle(self): ...


def test_a_store_that_does_not_answer_delays_neither_senders_nor_the_end(films, monkeypatch, capfd):
    monkeypatch.setattr(writers, "_SENDER_SECONDS", 0.2)
    monkeypatch.setattr(writers, "_LAST_SECONDS", 0.2)
    store = Stuck()
    writer = GroupWriter(store, seconds=0.0)
    with pytest.raises(TimeoutError):
        asyncio.run(writer.submit(submission(films, Device(films).message({"film 3": 5.0}))))
    begun = time.monotonic()
    writer.stop()
    assert time.monotonic() - begun < PATIENCE / 2
    assert "store does not answer" in capfd.readouterr().err
    store.released.set()
    writer._thread.join(PATIENCE)


def test_any_failure_of_a_rewrite_leaves_the_writer_at_work(films, tmp_path, monkeypatch):
    store, tried = open_store(str(tmp_path / "films.db"), films), []

    def rewrite():
        tried.append(time.monotonic())
        raise MemoryError

    monkeypatch.setattr(store, "rewrite", rewrite)
    writer = GroupWriter(store, seconds=0.0, rewrite_seconds=0.0)
    for number in range(3):
        given = submission(films, Device(films).message({f"film {number}": 5.0}))
        assert asyncio.run(writer.submit(given)).kept == 1
    writer.stop()
    assert len(tried) >= 3 and store.counts() == (3, 3)
    store.close()


ENDLESS = """
import sys, time
from contextlib import asynccontextmanager
from fastapi import FastAPI
from threadpoolctl import threadpool_info
from discreet.service import running
from discreet.service.workers import Workers

@asynccontextmanager
async def life(_):
    yield
    time.sleep(3600)

app, workers = FastAPI(lifespan=life), Workers()

@app.get("/health")
async def threads():
    found = await workers.run(threadpool_info)
    return [one["num_threads"] for one in found if one["user_api"] == "blas"]

running.END_SECONDS = 1.0
running.run(app, "127.0.0.1", int(sys.argv[1]))
"""


def test_a_service_has_one_thread_of_linear_algebra_and_is_ended_if_it_cannot_end():
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(port)],
        stderr=subprocess.PIPE,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "3"},
    )
    threads, end = None, time.monotonic() + PATIENCE
    while threads is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            threads = ask_json(f"http://127.0.0.1:{port}/health")[1]
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and b"ended by force" in said
    assert threads and set(threads) == {1}


def test_answers_leave_at_once():
    """Without TCP_NODELAY the second packet of an answer waits for 40 ms on a connection that is kept."""

    async def accepted():
        loop, found = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        class Door(asyncio.Protocol):
            def connection_made(self, transport):
                made = transport.get_extra_info("socket")
                found.set_result(made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        with running.listening("127.0.0.1", 0) as listener:
            server = await loop.create_server(Door, sock=listener)
            _, writer = await asyncio.open_connection(*listener.getsockname())
            nodelay = await asyncio.wait_for(found, PATIENCE)
            writer.close()
            server.close()
        return nodelay

    assert asyncio.run(accepted())


def test_a_refit_that_ignores_sigterm_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(refitting, "_END_SECONDS", 0.5)
    refits = refitting.Refits("sqlite:///none.db", "local-channel", tmp_path / "none", 0.01)
    ready = tmp_path / "ready"
    deaf = (
        "import signal, time, pathlib; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"pathlib.Path({str(ready)!r}).touch(); time.sleep(600)"
    )
    refits._command = [sys.executable, "-c", deaf]
    refits.start()
    end = time.monotonic() + PATIENCE
    while not Path(ready).exists() and time.monotonic() < end:
        time.sleep(0.01)
    refits.stop()
    assert refits._running.wait(PATIENCE) == -signal.SIGKILL


def test_messages_are_read_beside_the_event_loop(collecting, films, tmp_path, monkeypatch):
    """A message of a megabyte takes a while to read, also if it is refused in the end."""
    readers = []

    def noted(module, name):
        whole = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *given: (readers.append(threading.current_thread().name), whole(*given))[1]
        )

    noted(collect_app, "submission")
    noted(similar, "_read")
    noted(recommend_app, "parsed")
    service, _ = collecting(films)
    assert ask(f"{service.url}/reports", bytes(512))[0] == 400
    model = tmp_path / "toy.discreet"
    Popularity(epsilon=5.0).fit(toy_interactions(), random=PrivacyRandom.simulate(1)).save(model)
    with InProcess(recommend_app.answering_app(model)) as other:
        for path in ("similar", "recommend"):
            assert ask(f"{other.url}/{path}", b"[" * 100_000)[0] == 422
    assert len(readers) == 3 and all(name.startswith("answers") for name in readers)


@pytest.mark.parametrize("path", ["/health", "/round"])
def test_a_store_that_does_not_answer_delays_only_what_asks_it(collecting, tmp_path, monkeypatch, path):
    """Fifty peers ask a frozen database: each is told within seconds, and everything else is answered."""
    monkeypatch.setattr(collect_app, "_HEALTH_SECONDS", 0.3)
    monkeypatch.setattr(collect_app, "_ROUND_SECONDS", 0.3)
    films = GradientCampaign(
        name="films", catalog=Vocabulary.of(range(8)), low=1.0, high=5.0, epsilon=12.0, rounds=3, factors=2
    )
    service, store = collecting(films)
    thawed, calls, name = threading.Event(), [], {"/health": "is_closed", "/round": "round"}[path]

    def frozen(_):
        calls.append(name)
        thawed.wait(PATIENCE)
        return False

    monkeypatch.setattr(type(store), name, property(frozen))
    try:
        with ThreadPoolExecutor(50) as pool:
            statuses = list(pool.map(lambda _: ask(f"{service.url}{path}")[0], range(50)))
        assert set(statuses) == {503} and len(calls) <= 2
        assert ask(f"{service.url}/campaign")[0] == 200
        other = "/health" if path == "/round" else "/docs"
        assert ask(f"{service.url}{other}")[0] == 200
    finally:
        thawed.set()
    until(lambda: ask(f"{service.url}{path}")[0] == 200)


@pytest.mark.parametrize("turns", [True, False])
def test_a_burst_of_short_questions_leaves_turns_to_others(turns):
    """Each round of the event loop answers for ten milliseconds; the twin answers all in one round."""

    async def burst():
        rounds, answering = 0, Turns(0.01)

        async def ask():
            if turns:
                await answering.run(lambda: time.sleep(0.002))
            else:
                time.sleep(0.002)

        asked = [asyncio.ensure_future(ask()) for _ in range(60)]
        while not all(one.done() for one in asked):
            rounds += 1
            await asyncio.sleep(0)
        return rounds

    found = asyncio.run(burst())
    assert found >= 12 if turns else found <= 2
