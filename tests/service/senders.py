"""Simulate many devices that send at once over few connections, and send again until they are answered."""

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass, field

import numpy as np

from discreet.collect import wire
from discreet.service.admission import seal

_PAUSE = 0.05


@dataclass
class Letter:
    """One request of one device, and whether it was acknowledged."""

    sender: bytes
    pairs: list
    body: bytes
    kept: int | None = None
    seconds: float = 0.0


@dataclass
class Outcome:
    """What became of a crowd's letters."""

    letters: list
    seconds: float = 0.0
    failures: int = 0
    statuses: dict = field(default_factory=dict)

    def acknowledged(self):
        """Return (sender, item) -> code of every report that was answered for."""
        return {
            (letter.sender, item): code
            for letter in self.letters
            if letter.kept is not None
            for item, code in letter.pairs
        }


def letters_of(campaign, people, reports, batch, seed=0):
    """Return letters in a random order: `people` devices with `reports` reports each, `batch` a letter."""
    rng = np.random.default_rng(seed)
    codes = campaign.mechanism.channel().outputs.size
    found = []
    for _ in range(people):
        sender = rng.bytes(16)
        items = np.sort(rng.choice(len(campaign.catalog), reports, replace=False)).tolist()
        pairs = list(zip(items, rng.integers(0, codes, reports).tolist(), strict=True))
        for start in range(0, reports, batch):
            some = pairs[start : start + batch]
            message = wire.RatingReport(sender, *map(tuple, zip(*some, strict=True)))
            found.append(Letter(sender, some, seal(wire.to_bytes(campaign, message))))
    return [found[place] for place in rng.permutation(len(found))]


def send_all(port, letters, connections, progress=None):
    """Send letters over so many connections; whoever gets no answer sends the same letter again."""
    return asyncio.run(_send_all(port, letters, connections, progress))


async def _send_all(port, letters, connections, progress):
    outcome, queue = Outcome(letters), list(reversed(letters))
    begun = time.perf_counter()
    await asyncio.gather(*(_worker(port, queue, outcome, progress) for _ in range(connections)))
    outcome.seconds = time.perf_counter() - begun
    return outcome


async def _worker(port, queue, outcome, progress):
    stream = None
    while queue:
        letter = queue.pop()
        begun = time.perf_counter()
        while letter.kept is None:
            try:
                stream = stream or await asyncio.open_connection("127.0.0.1", port)
                status, answer = await _post(stream, letter.body)
            except (OSError, EOFError, ValueError):
                stream, outcome.failures = await _closed(stream), outcome.failures + 1
                await asyncio.sleep(_PAUSE)
                continue
            outcome.statuses[status] = outcome.statuses.get(status, 0) + 1
            if status == 200:
                letter.kept = answer["kept"]
                letter.seconds = time.perf_counter() - begun
        if progress is not None:
            await progress()
    await _closed(stream)


async def _closed(stream):
    if stream is not None:
        stream[1].close()
        with contextlib.suppress(OSError):
            await stream[1].wait_closed()


async def _post(stream, body):
    reader, writer = stream
    head = "POST /reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/octet-stream\r\n"
    head += f"content-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    top = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(top.partition("content-length:")[2].split("\r\n")[0])
    return int(top.split()[1]), json.loads(await reader.readexactly(length))


def killed_while_sending(server, letters, kills, connections=32):
    """Send letters to a service that is killed and started again at even distances."""
    done, due = 0, [len(letters) * (number + 1) // (kills + 1) for number in range(kills)]
    lock = asyncio.Lock()

    async def progress():
        nonlocal done
        done += 1
        if due and done >= due[0] and not lock.locked():
            async with lock:
                due.pop(0)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)

    return send_all(server.port, letters, connections, progress)
