"""Soak the collecting service: devices send for minutes while it is killed, stopped and starved.

On SQLite: a kill -9, a SIGTERM and a full disk (the process may not make files longer). On PostgreSQL: a kill
-9, a SIGTERM and a restart of the database. Every acknowledged report is written down and looked for in the
store at the end. A folder that was begun is gone on with.

    python benchmarks/soak.py --minutes 30 --connections 500 --pause 5 --folder soak --plot memory.svg
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import struct
import sys
import tempfile
import time
from pathlib import Path

import harness
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.service.admission import seal
from discreet.service.stores import open_store
from service.senders import _closed, _post
from service.servers import Postgresql, Server, postgresql_programs

RECORD = struct.Struct("<16sii")
PAIRS = 5
# Peers of the loopback network: one peer may have 200 connections only.
PEERS = 16
SAMPLE_SECONDS = 1.0
# How long one of each trouble takes, in soaks that are long enough for several.
CYCLE_SECONDS = 360.0
STORES = ["sqlite", "postgresql"]


def campaign() -> Campaign:
    return Campaign(
        name="soak",
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=Vocabulary.range(2000),
        max_reports=20,
        step=1.0,
    )


class Soak:
    """Send to one service until the time is over, and note what was acknowledged and how much it holds."""

    def __init__(self, asked: Campaign, server: Server, folder: Path, seconds: float, pause: float) -> None:
        self.asked, self.server, self.folder, self.pause = asked, server, folder, pause
        self.end = time.monotonic() + seconds
        self.begun = time.monotonic()
        self.seconds = seconds
        # What was answered, or broke off, in quiet times and during each event.
        self.during = "quiet"
        self.answers: dict[str, dict[str, int]] = {}
        self.reports = 0
        self.rng = np.random.default_rng()
        self.codes = asked.mechanism.channel().outputs.size
        self.samples: list[tuple[float, float, int]] = []
        self.happened: list[tuple[float, str]] = []

    async def run(self, connections: int, events: list) -> None:
        """Send over so many connections while these events happen."""
        with (self.folder / "acknowledged").open("ab") as kept:
            senders = [self._device(kept, number) for number in range(connections)]
            await asyncio.gather(*senders, self._sample(), self._trouble(events))

    async def _device(self, kept, number: int) -> None:
        stream = None
        await asyncio.sleep(self.pause * self.rng.random())
        while time.monotonic() < self.end:
            sender = self.rng.bytes(16)
            items = np.sort(self.rng.choice(2000, PAIRS, replace=False)).tolist()
            codes = self.rng.integers(0, self.codes, PAIRS).tolist()
            report = wire.RatingReport(sender, tuple(items), tuple(codes))
            body = seal(wire.to_bytes(self.asked, report))
            while time.monotonic() < self.end:
                try:
                    if stream is None:
                        source = (f"127.0.0.{2 + number % PEERS}", 0)
                        stream = await asyncio.open_connection(
                            "127.0.0.1", self.server.port, local_addr=source
                        )
                    async with asyncio.timeout(60):
                        status, answer = await _post(stream, body)
                except (OSError, EOFError, ValueError, TimeoutError) as error:
                    with contextlib.suppress(OSError):
                        await _closed(stream)
                    # A connection that was never made is different from one that was cut off.
                    kind = "refused" if stream is None else "cut"
                    self._count(f"{kind}: {type(error).__name__}")
                    stream = None
                    await asyncio.sleep(0.2)
                    continue
                self._count(str(status))
                if status == 200:
                    assert answer["kept"] + answer["repeated"] == PAIRS
                    kept.write(b"".join(RECORD.pack(sender, *p) for p in zip(items, codes, strict=True)))
                    self.reports += PAIRS
                    await asyncio.sleep(2 * self.pause * self.rng.random())
                    break
                await asyncio.sleep(0.2)
        await _closed(stream)

    def _count(self, answer: str) -> None:
        counts = self.answers.setdefault(self.during, {})
        counts[answer] = counts.get(answer, 0) + 1

    async def _sample(self) -> None:
        while time.monotonic() < self.end:
            with contextlib.suppress(OSError, IndexError, ValueError):
                status = Path(f"/proc/{self.server._process.pid}/status").read_text()
                held = int(status.partition("VmRSS:")[2].split()[0]) / 1024
                self.samples.append((round(time.monotonic() - self.begun, 1), held, self.reports))
            await asyncio.sleep(SAMPLE_SECONDS)

    async def _trouble(self, events: list) -> None:
        for share, name, cause in events:
            await asyncio.sleep(max(0.0, self.begun + share * self.seconds - time.monotonic()))
            self.happened.append((round(time.monotonic() - self.begun, 1), name))
            self.during = name
            await asyncio.to_thread(cause)
            # Requests that were sent meanwhile are still to be answered.
            await asyncio.sleep(1.0)
            self.during = "quiet"


def killed(server: Server) -> None:
    server.kill()
    server.start()


def stopped(server: Server) -> None:
    code = server.stop()
    assert code == 0, code
    server.start()


def disk_full(server: Server, seconds: float) -> None:
    with server.full_disk():
        time.sleep(seconds)


def restarted(database: Postgresql) -> None:
    database.stop()
    time.sleep(3)
    database.again()


def lost_reports(url: str, folder: Path) -> tuple[int, int]:
    """Return how many reports were acknowledged, and how many of them the store does not hold."""
    store = open_store(url)
    stored = {(row.sender, row.item): row.code for row in store.reports()}
    store.close()
    raw = (folder / "acknowledged").read_bytes()
    told = list(RECORD.iter_unpack(raw[: len(raw) // RECORD.size * RECORD.size]))
    return len(told), sum(stored.get((sender, item)) != code for sender, item, code in told)


def soaked(kind: str, folder: Path, seconds: float, connections: int, pause: float) -> dict:
    folder.mkdir(exist_ok=True)
    asked, path = campaign(), folder / "asked.campaign"
    path.write_bytes(asked.to_bytes())
    with contextlib.ExitStack() as stack:
        url = f"sqlite:///{folder}/reports.db"
        if kind == "postgresql":
            (place := Path(stack.enter_context(tempfile.TemporaryDirectory()))).chmod(0o755)
            database = Postgresql(place).start()
            stack.callback(database.stop)
            url = database.fresh()
            (folder / "acknowledged").unlink(missing_ok=True)  # its database is new
        server = stack.enter_context(Server(path, url, "--batch-seconds", "0.5", log=folder / "log"))
        soak = Soak(asked, server, folder, seconds, pause)
        third = (
            ("full disk", lambda: disk_full(server, min(20.0, seconds / 10)))
            if kind == "sqlite"
            else ("database restart", lambda: restarted(database))
        )
        troubles = [("kill -9", lambda: killed(server)), ("SIGTERM", lambda: stopped(server)), third]
        # The last quarter is quiet, so that memory is compared after the same start.
        times = max(1, int(seconds // CYCLE_SECONDS)) * len(troubles)
        events = [((1 + at) * 0.75 / times, *troubles[at % len(troubles)]) for at in range(times)]
        asyncio.run(soak.run(connections, events))
        assert server.stop() == 0
        told, lost = lost_reports(url, folder)
    (folder / "memory.json").write_text(json.dumps({"samples": soak.samples, "events": soak.happened}))
    # Memory after a tenth of the quiet time, and at the end.
    since = [held for at, held, _ in soak.samples if at > 0.75 * seconds]
    found = {
        "acknowledged": told,
        "lost": lost,
        "answers": soak.answers,
        "events": soak.happened,
        "memory_mb_after_trouble": since[len(since) // 10] if since else 0.0,
        "memory_mb_at_end": since[-1] if since else 0.0,
        "memory_mb_peak": max((held for _, held, _ in soak.samples), default=0.0),
    }
    # Kept at once: what comes after it takes as long again.
    (folder / "found.json").write_text(json.dumps(found))
    return found


def plot(folders: list[Path], out: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(len(folders), 1, figsize=(8, 3 * len(folders)), squeeze=False)
    for panel, folder in zip(panels[:, 0], folders, strict=True):
        told = json.loads((folder / "memory.json").read_text())
        at, held, _ = zip(*told["samples"], strict=True)
        panel.plot(at, held)
        for moment, name in told["events"]:
            panel.axvline(moment, linestyle=":", color="gray")
            panel.text(moment, max(held), f" {name}", va="top", fontsize=8)
        panel.set(title=folder.name, xlabel="seconds", ylabel="memory of the service, MB", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(out)


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"minutes": 0.1, "connections": 8, "stores": STORES[:1]},
        minutes=harness.option(type=float, default=1.0, help="how long, for each kind of store"),
        connections=harness.option(type=int, default=200, help="how many devices send at once"),
        pause=harness.option(type=float, default=0.0, help="mean seconds between posts of a device"),
        folder=harness.option(type=Path, help="where to keep what is seen; gone on with if it exists"),
        plot=harness.option(type=Path, help="draw memory over time to this file"),
        stores=harness.option(nargs="+", choices=STORES, default=STORES, help="which kinds of stores"),
    )
    kinds = [one for one in options.stores if one == "sqlite" or postgresql_programs() is not None]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192) if hard > 0 else 8192, hard))
    with contextlib.ExitStack() as stack:
        top = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        top.mkdir(exist_ok=True)
        found = {
            kind: soaked(kind, top.resolve() / kind, 60 * options.minutes, options.connections, options.pause)
            for kind in kinds
        }
        if options.plot is not None:
            plot([top / kind for kind in kinds], options.plot)
    harness.tell(found, options)
    if any(one["lost"] for one in found.values()):
        sys.exit("Acknowledged reports are lost.")


if __name__ == "__main__":
    main()
