"""Measure collecting over HTTP: posts a second, how long they wait, and that nothing is lost when killed.

Every post carries ten reports and is answered after they are on disk. Simulated devices and the service share
one machine, so what is measured is both together. The peer is the same SQLite with the same reports in one
process, committing every post by itself: what a service without group commit could reach at best.

    python benchmarks/service.py --json
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import answers
import harness
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from discreet.collect.campaign import Campaign
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.service.admission import submission, unseal
from discreet.service.stores import open_store
from service.senders import killed_while_sending, letters_of, send_all
from service.servers import Postgresql, Server, postgresql_programs

REPORTS = 10


class Size(NamedTuple):
    """How much to send: posts by connections, posts of the peer, people and kills of the last part."""

    posts: dict[int, int]
    alone: int = 1000
    people: int = 1000
    kills: int = 5
    kinds: tuple[str, ...] = ("sqlite", "postgresql")


WHOLE = Size({1: 500, 32: 6000, 128: 6000})
QUICK = Size({1: 50, 32: 600, 128: 600}, people=100, kills=2)
TOY = Size({32: 40}, alone=5, people=20, kills=1, kinds=("sqlite",))


def campaign() -> Campaign:
    return Campaign(
        name="benchmark",
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=Vocabulary.range(2000),
        max_reports=20,
        step=1.0,
    )


def throughput(asked, path, url, connections, posts):
    letters = letters_of(asked, posts, REPORTS, REPORTS, seed=connections)
    with Server(path, url) as server:
        send_all(server.port, letters_of(asked, 50, REPORTS, REPORTS, seed=99), min(connections, 8))
        outcome = send_all(server.port, letters, connections)
        memory = server.peak_mb()
    waits = 1000 * np.array([letter.seconds for letter in letters])
    store = open_store(url)
    lost = REPORTS * (posts + 50) - store.counts().reports
    store.close()
    return {
        "posts_per_second": posts / outcome.seconds,
        "reports_per_second": REPORTS * posts / outcome.seconds,
        "p50_ms": float(np.quantile(waits, 0.5)),
        "p99_ms": float(np.quantile(waits, 0.99)),
        "peak_mb": memory,
        "lost": lost,
    }


def alone(asked, folder, posts):
    """Return posts a second of the peer: one process, one commit a post, no network."""
    letters = letters_of(asked, posts, REPORTS, REPORTS)
    store = open_store(f"sqlite:///{folder}/alone.db", asked)
    begun = time.perf_counter()
    for letter in letters:
        store.take([submission(asked, unseal(letter.body))])
    seconds = time.perf_counter() - begun
    store.close()
    return posts / seconds


def kills(asked, path, url, people, times):
    letters = letters_of(asked, people, 20, 5, seed=7)
    with Server(path, url) as server:
        outcome = killed_while_sending(server, letters, times)
    store = open_store(url)
    rows = list(store.reports())
    store.close()
    acknowledged, stored = outcome.acknowledged(), Counter((row.sender, row.item) for row in rows)
    return {
        "acknowledged": len(acknowledged),
        "stored": sum(stored[cell] > 0 for cell in acknowledged),
        "twice": sum(count > 1 for count in stored.values()),
    }


def measure(size: Size) -> dict:
    asked = campaign()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        Path(folder).chmod(0o755)
        path = Path(folder) / "asked.campaign"
        path.write_bytes(asked.to_bytes())
        fresh = {"sqlite": lambda name: f"sqlite:///{folder}/{name}.db"}
        if "postgresql" in size.kinds and postgresql_programs() is not None:
            (place := Path(folder) / "postgresql").mkdir()
            database = Postgresql(place).start()
            stack.callback(database.stop)
            fresh["postgresql"] = lambda _: database.fresh()
        stores, killed = {}, {}
        for kind, url in fresh.items():
            stores[kind] = {
                str(connections): throughput(asked, path, url(f"c{connections}"), connections, posts)
                for connections, posts in size.posts.items()
            }
            killed[kind] = kills(asked, path, url("kills"), size.people, size.kills)
        peer = alone(asked, folder, size.alone)
    return {
        "stores": stores,
        "kills": {name: sum(one[name] for one in killed.values()) for name in next(iter(killed.values()))},
        "kills_by_store": killed,
        "peer": {
            "one_commit_a_post_per_second": peer,
            "ratio": stores["sqlite"]["32"]["posts_per_second"] / peer,
        },
    }


def main() -> None:
    options = harness.options(__doc__, quick=harness.flag("a tenth of the posts, two kills"))
    size = TOY if options.toy else QUICK if options.quick else WHOLE
    found = answers.measure(answers.TOY if options.toy else answers.WHOLE, toy=options.toy)
    harness.tell({**found, **measure(size)}, options)


if __name__ == "__main__":
    main()
