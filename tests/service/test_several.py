"""Several processes serve one model on one port: limits and counts are common, and dead ones come back."""

import os
import signal
import sys
from pathlib import Path

import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.models.popularity import Popularity
from discreet.service.limits import SLOTS, RateLimit, RefusedError, SharedCounts
from service.servers import Server, ask, ask_json, until
from toy import toy_interactions

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="processes are looked up in /proc"
)
TOKEN = "for the operator"


def test_limits_are_counted_over_processes():
    counts = SharedCounts([0] * SLOTS, b"secret")
    one, other = RateLimit(10, counts), RateLimit(10, counts)
    for limit in (one, other) * 5:
        limit.check("192.0.2.1")
    with pytest.raises(RefusedError):
        one.check("192.0.2.1")
    with pytest.raises(RefusedError):
        other.check("192.0.2.1")
    other.check("192.0.2.2")


def test_a_new_minute_begins_at_nothing(monkeypatch):
    now = [120.0]
    monkeypatch.setattr("discreet.service.limits.time.monotonic", lambda: now[0])
    limit = RateLimit(2, SharedCounts([0] * SLOTS, b"secret"))
    limit.check("192.0.2.1", 2)
    with pytest.raises(RefusedError):
        limit.check("192.0.2.1")
    now[0] += 60
    limit.check("192.0.2.1", 2)


def children(pid):
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(parts[1]) == pid and b"spawn_main" in command:
            found.append(int(status.parent.name))
    return found


def test_a_campaign_has_one_process(discreet, tmp_path):
    (tmp_path / "items.txt").write_text("a\nb\n")
    code, _, error = discreet(
        "campaign",
        "new",
        "--name", "films", "--out", tmp_path / "c", "--items", tmp_path / "items.txt",
        "--epsilon", 1, "--scale", "1,5",
    )  # fmt: skip
    assert code == 0, error
    code, _, error = discreet("serve", tmp_path / "c", "--workers", 2)
    assert code == 1 and "--workers" in error


@pytest.mark.slow
def test_workers_share_a_port_limits_and_counts(tmp_path, monkeypatch):
    (tmp_path / "counts").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "counts"))
    data = toy_interactions(n_users=60)
    model = Popularity(epsilon=5.0).fit(data, random=PrivacyRandom.simulate(1))
    model.save(tmp_path / "model")
    options = ("--workers", "3", "--per-minute", "40", "--metrics-token", TOKEN)
    with Server(tmp_path / "model", None, *options) as server:
        main = server._process.pid
        until(lambda: len(children(main)) == 3)
        body = {"history": model.catalog.ids[:2].tolist(), "k": 3}
        # Every request is a new connection, which any of the workers may accept.
        statuses = [ask_json(f"{server.url}/recommend", body)[0] for _ in range(60)]
        assert set(statuses) == {200, 429} and 35 <= statuses.count(200) <= 45
        text = ask(f"{server.url}/metrics", headers={"authorization": f"Bearer {TOKEN}"})[2].decode()
        line = 'discreet_answers_total{path="/recommend",status="200"} '
        assert float(text.partition(line)[2].split()[0]) == statuses.count(200)
        victim = children(main)[0]
        os.kill(victim, signal.SIGKILL)
        until(lambda: victim not in children(main) and len(children(main)) == 3)
        assert ask(f"{server.url}/health")[0] == 200
        workers = children(main)
        assert server.stop() == 0
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
        server.start()
        workers = children(server._process.pid)
        server.kill()
        # Also without a word from the first process, nothing stays behind.
        until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    assert not list((tmp_path / "counts").iterdir())
