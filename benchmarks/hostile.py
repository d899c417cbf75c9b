"""Attack a served model and a collection over loopback, and measure what a well-behaved user gets meanwhile.

Each attack runs for some seconds from many addresses of 127.0.0.0/8. A user at another address asks
`/health` all the time, on a new connection each time. The service must answer every attack's user, keep its
memory, and answer `/health` after the last attack.

    python benchmarks/hostile.py --seconds 60 --json
    python benchmarks/hostile.py --services collection --attacks paths compressed
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import itertools
import json
import multiprocessing
import random
import resource
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import harness
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from answers import processor_seconds
from soak import campaign

from discreet.collect import wire
from discreet.core.randomness import PrivacyRandom
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.service.admission import seal
from service.servers import Server

# A user has the last address; attackers have so many others, and this many connections at once.
USER, ADDRESSES, CONNECTIONS = "127.0.0.250", 40, 400
PROBE_SECONDS, PATIENCE = 0.25, 10.0
SPAWN = multiprocessing.get_context("spawn")
DEEP = b"[" * 200_000
LIMITS = {"memory_mb": 700, "answered": 0.95}
MODEL, COLLECTION = "model", "collection"


def post(path: bytes, body: bytes, *lines: bytes, kind: bytes = b"application/json") -> bytes:
    head = [b"POST " + path + b" HTTP/1.1", b"host: x", b"content-type: " + kind, *lines]
    return b"\r\n".join([*head, b"content-length: %d" % len(body), b"", body])


@contextlib.asynccontextmanager
async def opened(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield a connection from a random address; it is cut at the end, whatever it still has to send."""
    source = (f"127.0.0.{random.randrange(2, 2 + ADDRESSES)}", 0)
    reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, local_addr=source), 5)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def trickle(port: int, start: bytes, piece: bytes, pause: float) -> None:
    """Begin a request, and go on with a piece now and then."""
    async with opened(port) as (reader, writer):
        writer.write(start)
        while not reader.at_eof():
            await writer.drain()
            await asyncio.sleep(pause)
            writer.write(piece)


async def never_read(port: int, request: bytes) -> None:
    """Ask again and again, and read nothing."""
    async with opened(port) as (_, writer):
        writer.transport.pause_reading()
        for _ in range(10_000):
            writer.write(request)
            await asyncio.wait_for(writer.drain(), 5)
        await asyncio.sleep(5)


async def ask(port: int, request: bytes) -> int:
    """Send a request, and return the status of the answer, or 0 if the connection was closed."""
    async with opened(port) as (reader, writer):
        for at in range(0, len(request), 1 << 16):
            writer.write(request[at : at + (1 << 16)])
            await asyncio.wait_for(writer.drain(), PATIENCE)
        line = await asyncio.wait_for(reader.readline(), PATIENCE)
        status = int(line.split()[1]) if line else 0
        await asyncio.wait_for(reader.read(1 << 16), PATIENCE)
        return status


async def silent(port: int) -> None:
    """Open a connection, and leave without a word after a while."""
    async with opened(port):
        await asyncio.sleep(random.random() * 5)


BODIES = [
    b"",
    b"{",
    b"\xff\xfe",
    b"null",
    b"[]",
    b'{"history": ' + DEEP,
    b'{"history":[' + b"[1,4]," * 100_000 + b"[1,4]]}",
    b'{"history":[[1,4]],"k":' + b"9" * 5000 + b"}",
    b'{"history":[[' + b"9" * 400_000 + b",4]]}",
    b'{"history":[[1,NaN]]}',
    b'{"history":[[1,1e999]]}',
    b'{"history":[[1,-0.0],[1,Infinity]]}',
    b'{"history":[[1,4]],"history":[[2,4]],"k":1,"k":2}',
    b'{"history":[[1,4]],"now":"9999999-99-99"}',
    b'{"history":[[1,4]],"now":1e308}',
    b'{"history":[{"item":1,"rating":4,"time":"' + b"0" * 100_000 + b'"}]}',
    b'{"history":["\\ud800"]}',
    b'{"history":{"' + b"a" * 500_000 + b'":4}}',
    b'{"people":[' + b'{"history":[[1,4]]},' * 99 + b'{"history":[[1,4]]}]}',
    b'{"people":[' + b"{}," * 200_000 + b"{}]}",
    b'{"people":[{"people":[' + b'{"history":[]}' + b"]}]}",
    gzip.compress(b"[" + b"0," * 10_000_000 + b"0]"),
]


def report() -> bytes:
    """Return a message of a new sender with as many reports as a campaign takes, and one that is too many."""
    asked = campaign()
    items = tuple(range(asked.max_reports + 1))
    return seal(wire.to_bytes(asked, wire.RatingReport(random.randbytes(16), items, (1,) * len(items))))


PATHS = [
    b"/../../etc/passwd",
    b"/%2e%2e/%2e%2e/etc/passwd",
    b"//health",
    b"/bundle/../../etc/passwd",
    b"/bundle/" + b"a/" * 3000,
    b"/page/..%2f..%2f..%2fetc/passwd",
    b"/device/%00.js",
    b"/model/vectors/../../label",
    b"/reports?" + b"a=1&" * 4000,
    b"/similar?item=" + b"%00" * 300,
    b"/similar?k=1&k=2&item=1&item=2",
    b"/similar?item=1&k=99999999999999999999",
    b"/" + b"a" * 60_000,
    b"/\x00health",
    b"http://elsewhere/health",
    b"*",
]


def attacks(service: str) -> dict[str, list]:
    """Return the attacks by name: each is a list of coroutine functions of a port, used in turn.

    Each aims at what reads bodies: questions to a model, or reports to a collection, whose bodies are small.
    """
    path, length = {MODEL: (b"/recommend", b"900000"), COLLECTION: (b"/reports", b"2000")}[service]
    begun = b"POST " + path + b" HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    half = begun + b"content-length: " + length + b"\r\n\r\n{"
    chunked = begun + b"transfer-encoding: chunked\r\n\r\n"
    lines = b"".join(b"x-%d: %s\r\n" % (one, b"a" * 500) for one in range(5000))
    get = b"GET /label HTTP/1.1\r\nhost: x\r\n\r\n"
    both = half.replace(length, b"4\r\ntransfer-encoding: chunked")
    both += b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
    packed = [
        post(path, gzip.compress(b" " * size), b"content-encoding: gzip") for size in (1 << 20, 1 << 28)
    ]
    many = {
        MODEL: [
            lambda port: ask(port, post(b"/recommend", BODIES[18])),
            lambda port: ask(port, post(b"/similar", b'{"items":[' + b"1," * 99 + b"1]}")),
        ],
        COLLECTION: [lambda port: ask(port, post(path, report(), kind=b"application/octet-stream"))],
    }
    return {
        "slow headers": [lambda port: trickle(port, b"GET / HTTP/1.1\r\n", b"x: y\r\n", 0.5)],
        "slow bodies": [lambda port: trickle(port, half, b" ", 0.5)],
        "one byte per read": [lambda port: trickle(port, half, b" ", 0.001)],
        "small chunks": [lambda port: ask(port, chunked + b"1\r\n \r\n" * 200_000)],
        "slow chunks": [lambda port: trickle(port, chunked, b"1\r\n \r\n", 0.2)],
        "chunk extensions": [lambda port: ask(port, chunked + b"1;" + b"a" * 2_000_000 + b"\r\n")],
        "huge headers": [lambda port: ask(port, b"GET / HTTP/1.1\r\n" + lines + b"\r\n")],
        "two lengths": [lambda port: ask(port, both)],
        "pipelining": [lambda port: ask(port, get * 5000)],
        "lines after a body": [
            lambda port: ask(port, chunked + b"1\r\n \r\n0\r\nx: " + b"a" * 4_000_000),
            lambda port: ask(port, chunked + b"1\r\n \r\n0\r\n" + lines + b"\r\n"),
        ],
        "offers of protocols": [
            lambda port, offer=offer: ask(port, post(path, BODIES[3], b"connection: upgrade", offer))
            for offer in (b"upgrade: h2c", b"upgrade: websocket", b"upgrade: x")
        ],
        "never reading": [
            lambda port: never_read(port, get),
            lambda port: never_read(port, get.replace(b"/label", b"/model")),
            lambda port: never_read(port, post(b"/similar", b'{"items":[1]}')),
        ],
        "silent connections": [silent],
        "bodies": [lambda port, body=body: ask(port, post(b"/recommend", body)) for body in BODIES]
        + [lambda port, body=body: ask(port, post(b"/similar", body)) for body in BODIES]
        + [lambda port, body=body: ask(port, post(b"/reports", body)) for body in BODIES],
        "compressed": [lambda port, body=body: ask(port, body) for body in packed],
        "paths": [
            lambda port, path=path: ask(port, b"GET " + path + b" HTTP/1.1\r\nhost: x\r\n\r\n")
            for path in PATHS
        ],
        "many entries": many[service],
    }


class Attack:
    """One attack on one port, and what attackers got."""

    def __init__(self, port: int, seconds: float, connections: int) -> None:
        self.port, self.connections = port, connections
        self.end = time.monotonic() + seconds
        self.got: Counter[str] = Counter()

    async def run(self, kinds: list) -> None:
        """Attack over all connections until the time is over."""
        turn = itertools.cycle(kinds)
        await asyncio.gather(*(self._attacker(turn) for _ in range(self.connections)))

    async def _attacker(self, turn) -> None:
        while (left := self.end - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    self.got[str(await next(turn)(self.port))] += 1
            except (OSError, EOFError, ValueError, IndexError, TimeoutError, asyncio.IncompleteReadError):
                self.got["cut"] += 1
                await asyncio.sleep(0.05)


def user(port: int, seconds: float, told) -> None:
    """Ask `/health` again and again, on new connections, in a process without other work."""
    waits, unanswered, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", port), PATIENCE, (USER, 0)) as line:
                line.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
                assert line.recv(4096).startswith(b"HTTP/1.1 200")
            waits.append(time.monotonic() - begun)
        except OSError:
            unanswered += 1
        time.sleep(PROBE_SECONDS)
    told.put((waits, unanswered))


def memory_mb(server: Server) -> float:
    status = Path(f"/proc/{server._process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def attacked(server: Server, service: str, chosen: Sequence[str], seconds: float, connections: int) -> dict:
    found, before = {}, memory_mb(server)
    for name, kinds in attacks(service).items():
        if chosen and name not in chosen:
            continue
        used = processor_seconds(server._process.pid)
        attack, told = Attack(server.port, seconds, connections), SPAWN.Queue()
        asks = SPAWN.Process(target=user, args=(server.port, seconds, told))
        asks.start()
        asyncio.run(attack.run(kinds))
        took, unanswered = told.get(timeout=10 * PATIENCE)
        asks.join()
        waits = 1000 * np.array(took or [np.nan])
        found[name] = {
            "answered": len(took) / max(len(took) + unanswered, 1),
            "p50_ms": float(np.quantile(waits, 0.5)),
            "worst_ms": float(waits.max()),
            "memory_mb": memory_mb(server),
            "processor_share": (processor_seconds(server._process.pid) - used) / seconds,
            "attackers_got": dict(attack.got),
        }
        print(name, json.dumps(found[name]), file=sys.stderr)
    return {"before_mb": before, "peak_mb": server.peak_mb(), "attacks": found}


def measure(
    services: Sequence[str], chosen: Sequence[str], seconds: float, connections: int, *, toy: bool
) -> dict:
    data = harness.ratings("movielens-1m", toy=toy)
    model = UserFactorization(epsilon=5.0, delta=1e-6).fit(data, random=PrivacyRandom.simulate(1))
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / "model.discreet")
        (folder / "asked.campaign").write_bytes(campaign().to_bytes())
        options = (f"sqlite:///{folder}/reports.db", "--publish", folder / "model.discreet")
        targets = {MODEL: (folder / "model.discreet",), COLLECTION: (folder / "asked.campaign", *options)}
        for service in services:
            with Server(*targets[service], log=folder / "log") as server:
                found[service] = attacked(server, service, chosen, seconds, connections)
    return found


def failures(found: dict) -> list[str]:
    """Return the attacks that starved a user or filled the memory."""
    return [
        f"{service}, {name}"
        for service, one in found.items()
        for name, row in one["attacks"].items()
        if row["answered"] < LIMITS["answered"] or row["memory_mb"] > LIMITS["memory_mb"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40.0, help="how long each attack takes")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="how many attack at once")
    parser.add_argument("--services", nargs="+", choices=(MODEL, COLLECTION), default=[MODEL, COLLECTION])
    parser.add_argument("--attacks", nargs="+", metavar="NAME", default=[], help="which ones; default: all")
    few = {"services": [MODEL], "attacks": ["slow headers", "slow bodies"]}
    options = harness.options(parser, toy={"seconds": 0.3, "connections": 4, **few})
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))
    found = measure(options.services, options.attacks, options.seconds, options.connections, toy=options.toy)
    harness.tell(found, options.json, show)
    if not options.toy and (fallen := failures(found)):
        sys.exit(f"Users were not served: {'; '.join(fallen)}.")


def show(found: dict) -> None:
    for service, one in found.items():
        print(f"{service}: {one['before_mb']:.0f} MB before, {one['peak_mb']:.0f} MB at most")
        for name, row in one["attacks"].items():
            print(
                f"{name:>20}: {row['answered']:6.1%} answered, p50 {row['p50_ms']:7.1f} ms, "
                f"worst {row['worst_ms']:7.0f} ms, {row['memory_mb']:4.0f} MB, "
                f"{row['processor_share']:4.2f} processors, attackers {row['attackers_got']}"
            )


if __name__ == "__main__":
    main()
