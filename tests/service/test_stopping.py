"""SIGTERM drains, writes and closes; a copy of the store is whole; files do not tell who came first."""

import asyncio
import itertools
import shutil
import sqlite3
import threading

import pytest

from discreet.collect.device import CatalogDevice, Device
from discreet.core.checks import FileError
from discreet.service.admission import seal, submission
from discreet.service.stores import open_store
from discreet.service.writer import GroupWriter
from service.servers import Server, ask

PEOPLE = 40


def sender_of(device):
    return bytes.fromhex(device.state()["sender"])


def one_after_the_other(url, campaign, people=PEOPLE):
    """Send for people one after the other, and return their numbers in that order."""
    senders = []
    for number in range(people):
        device = Device(campaign)
        body = seal(device.message({f"film {number}": 5.0}))
        assert ask(f"{url}/reports", body)[0] == 200
        senders.append(sender_of(device))
    return senders


def by_place(path, senders):
    """Return the senders by where they stand in a file; in a page of SQLite the first comes last."""
    raw = path.read_bytes()
    return [sender for place, sender in sorted((raw.rfind(sender), sender) for sender in senders)[::-1]]


def agreement(found, sent):
    """Return the share of neighbors in `sent` that stand in the same order in `found`."""
    place = {sender: number for number, sender in enumerate(found)}
    return sum(place[a] < place[b] for a, b in itertools.pairwise(sent)) / (len(sent) - 1)


def test_sigterm_closes_the_store_and_its_file_is_whole_and_in_no_order(films, tmp_path):
    campaign, path = tmp_path / "films.campaign", tmp_path / "reports.db"
    campaign.write_bytes(films.to_bytes())
    server = Server(campaign, f"sqlite:///{path}").start()
    sent = one_after_the_other(server.url, films)
    # While the disk is full nothing is acknowledged; afterwards the same message is taken.
    body = seal(Device(films).message({"film 3": 5.0}))
    with server.full_disk():
        assert {ask(f"{server.url}/reports", body)[0] for _ in range(3)} == {503}
    assert ask(f"{server.url}/reports", body)[0] == 200
    assert server.stop() == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["films.campaign", "reports.db"]
    shutil.copyfile(path, tmp_path / "copy.db")
    with sqlite3.connect(tmp_path / "copy.db") as connection:
        assert connection.execute("SELECT count(*) FROM reports").fetchone() == (PEOPLE + 1,)
    connection.close()
    # 39 coins: all heads has probability 2^-39, and more than 9 in 10 less than 1e-7.
    assert agreement(by_place(path, sent), sent) < 0.9


def test_without_a_rewrite_the_file_would_tell_the_order(films, tmp_path):
    """The twin: what the test above looks for is there to be found."""
    path, sent = tmp_path / "reports.db", []
    store = open_store(str(path), films)
    for number in range(PEOPLE):
        device = Device(films)
        store.take([submission(films, device.message({f"film {number}": 5.0}))])
        sent.append(sender_of(device))
    store.close()
    assert agreement(by_place(path, sent), sent) == 1.0


def test_what_comes_together_is_written_in_the_order_of_senders(store_url, films, monkeypatch):
    store = open_store(store_url, films)
    devices = [Device(films) for _ in range(8)]
    written = []
    with store._transaction() as transaction:
        kind = type(transaction)
    whole = kind.add
    monkeypatch.setattr(
        kind, "add", lambda self, table, rows: (written.extend(rows), whole(self, table, rows))
    )
    store.take([submission(films, device.message({"film 3": 5.0})) for device in devices])
    store.close()
    assert [row.sender for row in written] == sorted(map(sender_of, devices))


def test_a_store_is_copied_while_it_collects(discreet, store_url, films, tmp_path):
    store, out = open_store(store_url, films), tmp_path / "copy.db"
    for number in range(5):
        store.take([submission(films, Device(films).message({f"film {number}": 5.0, "film 9": 1.0}))])
    code, shown, _ = discreet("collect", "backup", store_url, "--out", out)
    assert code == 0 and "10 reports of 5 senders" in " ".join(shown.split())
    assert (out.stat().st_mode & 0o777) == 0o600
    assert sorted(file.name for file in tmp_path.glob("*copy*")) == ["copy.db"]
    copy = open_store(str(out))
    assert list(copy.reports()) == list(store.reports()) and not copy.is_closed
    copy.close()
    assert discreet("collect", "backup", store_url, "--out", out)[0] == 1
    store.close_collection()
    assert discreet("collect", "backup", store_url, "--out", out, "--force")[0] == 0
    copy = open_store(str(out))
    assert copy.is_closed and copy.counts() == (5, 10)
    copy.close()
    store.close()


def test_messages_about_whole_catalogs_are_copied(discreet, shelf, tmp_path):
    store = open_store(str(tmp_path / "shelf.db"), shelf)
    store.take([submission(shelf, CatalogDevice(shelf, budget=100.0).message({3: 5.0}))])
    assert discreet("collect", "backup", tmp_path / "shelf.db", "--out", tmp_path / "copy.db")[0] == 0
    copy = open_store(str(tmp_path / "copy.db"))
    assert list(copy.messages()) == list(store.messages())
    copy.close()
    store.close()


@pytest.mark.parametrize("fails", [False, True])
def test_a_writer_that_ends_rewrites_and_a_failure_is_no_loss(films, tmp_path, monkeypatch, fails, capfd):
    store = open_store(str(tmp_path / "films.db"), films)
    called = threading.Event()

    def rewrite():
        called.set()
        if fails:
            raise FileError("There is no room.")

    monkeypatch.setattr(store, "rewrite", rewrite)
    writer = GroupWriter(store, seconds=0.0)
    given = submission(films, Device(films).message({"film 3": 5.0}))
    assert asyncio.run(writer.submit(given)).kept == 1
    writer.stop()
    assert called.is_set() and store.counts() == (1, 1)
    assert ("rewrite failed" in capfd.readouterr().err) == fails
    store.close()
