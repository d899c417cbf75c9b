"""Measure answers of a served model against a bare FastAPI application with bodies of the same size.

Both are separate processes, asked in turn over the same connections by one client, which waits for each
answer before it sends the next request. `benchmarks/service.py` prints these numbers as well.

    python benchmarks/answers.py --json
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import harness
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from discreet.core.randomness import PrivacyRandom
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.service.questions import Question
from discreet.service.questions import answer as answer_of
from ports import free_port
from service.servers import Server

HISTORY, K = 20, 10
HELLO = """
import json, sys
from typing import Any
import uvicorn
from fastapi import FastAPI

app, answer = FastAPI(), json.loads(sys.argv[2])

@app.post("/recommend")
async def hello(asked: dict[str, Any]) -> dict[str, Any]:
    return answer

@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}

uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="critical")
"""


class Size(NamedTuple):
    """How much to ask: requests by connections, and how often."""

    requests: dict[int, int]
    rounds: int


WHOLE, TOY = Size({1: 500, 16: 1500}, 5), Size({1: 5, 2: 10}, 1)


class Line:
    """A connection that asks the same question again and again."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request, self._answer, self._length = request, b"", -1
        self._begun = 0.0

    def ask(self) -> None:
        """Send the request."""
        self._answer, self._length, self._begun = b"", -1, time.perf_counter()
        self.socket.sendall(self._request)

    def read(self) -> float | None:
        """Return how long the answer took, if it is complete."""
        some = self.socket.recv(1 << 16)
        assert some, "the service hung up"
        self._answer += some
        if self._length < 0 and b"\r\n\r\n" in self._answer:
            head, _, _ = self._answer.lower().partition(b"\r\n\r\n")
            assert head.split()[1] == b"200", self._answer
            self._length = len(head) + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        return time.perf_counter() - self._begun if len(self._answer) == self._length else None


def asked(port: int, request: bytes, connections: int, count: int) -> tuple[list[float], float]:
    """Return how long each of `count` answers took, and all of them together."""
    with selectors.DefaultSelector() as waiting, contextlib.ExitStack() as stack:
        lines = [Line(port, request) for _ in range(connections)]
        for line in lines:
            stack.enter_context(contextlib.closing(line.socket))
            waiting.register(line.socket, selectors.EVENT_READ, line)
        begun, sent, waits = time.perf_counter(), len(lines), []
        for line in lines:
            line.ask()
        while len(waits) < count:
            for key, _ in waiting.select(60):
                seconds = key.data.read()
                if seconds is not None:
                    waits.append(seconds)
                    if sent < count:
                        sent += 1
                        key.data.ask()
        return waits, time.perf_counter() - begun


def processor_seconds(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def bare(answer: dict):
    """Run the bare application."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", HELLO, str(port), json.dumps(answer)])
    try:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            time.sleep(0.05)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(60)


def measure(size: Size, *, toy: bool) -> dict:
    data = harness.ratings("movielens-1m", toy=toy)
    model = UserFactorization(epsilon=5.0, delta=1e-6).fit(data, random=PrivacyRandom.simulate(1))
    history = [[item, 4.0] for item in model.catalog.ids[:HISTORY].tolist()]
    body = json.dumps({"history": history, "k": K}).encode()
    head = b"POST /recommend HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: "
    post = head + b"%d\r\n\r\n%s" % (len(body), body)
    get = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
    answer = answer_of(model, Question(history=history, k=K))
    found: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder) / "model.discreet"
        model.save(path)
        server = stack.enter_context(Server(path))
        hello, pid = stack.enter_context(bare(answer))
        kinds = {
            "hello": (hello, pid, post),
            "hello_health": (hello, pid, get),
            "model": (server.port, server._process.pid, post),
            "health": (server.port, server._process.pid, get),
        }
        for connections, count in size.requests.items():
            rounds: dict[str, list[tuple[list[float], float, float]]] = {}
            # In turn: whatever else the machine does meets all of them.
            for _ in range(size.rounds):
                for name, (port, process, request) in kinds.items():
                    asked(port, request, connections, connections)
                    before = processor_seconds(process)
                    waits, seconds = asked(port, request, connections, count)
                    used = (processor_seconds(process) - before) / count
                    rounds.setdefault(name, []).append((waits, count / seconds, used))
            for name, all_rounds in rounds.items():
                waits = 1000 * np.concatenate([one[0] for one in all_rounds])
                found.setdefault(name, {})[str(connections)] = {
                    "p50_ms": float(np.quantile(waits, 0.5)),
                    "p99_ms": float(np.quantile(waits, 0.99)),
                    "per_second": float(np.median([one[1] for one in all_rounds])),
                    "processor_ms": 1000 * float(np.median([one[2] for one in all_rounds])),
                }
    pairs = (("model", "hello"), ("health", "hello_health"))
    found["ratio_to_hello"] = {name: ratios(found[name], found[to], "per_second") for name, to in pairs}
    # On a busy machine, rates compare what else runs. Processor time compares the two programs.
    found["processor_ratio_to_hello"] = {
        name: ratios(found[to], found[name], "processor_ms") for name, to in pairs
    }
    found["in_process_ms"] = in_process(data, model, history, 20 if toy else 200)
    return found


def ratios(one: dict, other: dict, name: str) -> dict[str, float]:
    return {count: one[count][name] / max(other[count][name], 1e-9) for count in one}


def in_process(data, model, history, times: int) -> dict[str, float]:
    """Return how long one list takes without HTTP, here and by `implicit`, for the same history."""
    found = {"discreet": _timed(lambda: model.recommend(history, K), times)}
    try:
        from implicit.als import AlternatingLeastSquares
    except ImportError:
        return found
    import scipy.sparse as sp

    peer = AlternatingLeastSquares(factors=32, iterations=2, num_threads=1, random_state=1)
    peer.fit(data.to_scipy().astype(np.float32), show_progress=False)
    places = data.catalog.index_of([item for item, _ in history])
    rows = (np.zeros(len(places), dtype=int), places)
    row = sp.csr_matrix((np.ones(len(places), dtype=np.float32), rows), shape=(1, data.n_items))
    found["implicit"] = _timed(lambda: peer.recommend(0, row, N=K, recalculate_user=True), times)
    return found


def _timed(call, times: int) -> float:
    call()
    waits = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        waits.append(time.perf_counter() - begun)
    return 1000 * float(np.median(waits))


def main() -> None:
    options = harness.options(__doc__)
    harness.tell(measure(TOY if options.toy else WHOLE, toy=options.toy), options)


if __name__ == "__main__":
    main()
