"""What cannot be locked, read or trusted is one sentence: ledgers, shards and databases."""

import errno
import fcntl
import os
import shutil

import numpy as np
import psycopg
import pytest

from discreet.collect.device import Device
from discreet.core.checks import DiscreetError, FileError
from discreet.federated.journal import Journal
from discreet.privacy.ledger.ledger import Ledger
from discreet.service.client import CollectionClient
from discreet.service.running import log
from discreet.service.stores import open_store
from discreet.sources import shards as shard_folders
from discreet.sources.sharding import make_shards
from discreet.sources.shards import open_shards
from discreet.statistics.counts import ItemVotes
from discreet.testing import refuses


@pytest.mark.thorough
@pytest.mark.parametrize("tried", [500, pytest.param(1500, marks=pytest.mark.slow)])
def test_a_lost_bit_anywhere_in_a_ledger_is_a_sentence(films, tmp_path, tried):
    path = tmp_path / "spent.ledger"
    with Ledger.open(path) as ledger:
        ledger.set_budget("films", films.for_person(3))
        ledger.spend("films", films.for_person(1), what="a release")
    raw, texts = path.read_bytes(), 0
    # Where the lowest bit of a column's type flips, a text becomes bytes.
    places = [place for place in range(len(raw)) if raw[place] and place % 4096 > 8]
    hurt = tmp_path / "hurt.ledger"
    for place in places[:: max(1, len(places) // tried)]:
        hurt.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
        for name in ("hurt.ledger-journal", "hurt.ledger.lock"):
            (tmp_path / name).unlink(missing_ok=True)
        try:
            found = Ledger.open(hurt)
            found.entries()
            for dataset in found.datasets():
                found.spent_by_definition(dataset), found.remaining(dataset), found.budgets(dataset)
        except DiscreetError:
            texts += 1
    assert texts > 20


def test_a_text_that_became_bytes_is_a_sentence(films, tmp_path):
    path = tmp_path / "spent.ledger"
    with Ledger.open(path) as ledger:
        ledger.set_budget("films", films.for_person(3))
        ledger.spend("films", films.for_person(1), what="a release")
    raw = path.read_bytes()
    for word in (b"films", b"a release"):
        # The type of a text of n letters is 13 + 2n, of as many bytes 12 + 2n; it stands before the row.
        kind, found = 13 + 2 * len(word), 0
        for place in (at for at in range(len(raw)) if raw[at] == kind):
            (tmp_path / "hurt.ledger").write_bytes(raw[:place] + bytes([kind ^ 1]) + raw[place + 1 :])
            (tmp_path / "hurt.ledger.lock").unlink(missing_ok=True)
            try:
                hurt = Ledger.open(tmp_path / "hurt.ledger")
                hurt.entries(), hurt.datasets(), hurt.remaining("films"), hurt.budgets("films")
            except DiscreetError:
                found += 1
        assert found > 0


def test_a_lock_that_cannot_be_taken_is_a_sentence(films, tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with refuses("ledger-unlockable"), Ledger.open(tmp_path / "spent.ledger") as ledger:
        ledger.set_budget("films", films.for_person(3))
    with pytest.raises(FileError, match="local disk"):
        Journal(tmp_path / "state")
    table = tmp_path / "table.csv"
    table.write_text("user,item,rating\n" + "".join(f"u{k},i{k % 5},{1 + k % 5}\n" for k in range(20)))
    with refuses("shards-in-use"):
        make_shards([table], tmp_path / "shards", n_shards=2)


@pytest.mark.parametrize("fails", [True, False])
def test_a_shard_that_changes_after_its_check_is_a_sentence(tmp_path, monkeypatch, fails):
    table = tmp_path / "table.csv"
    table.write_text("user,item,rating\n" + "".join(f"u{k},i{k % 5},{1 + k % 5}\n" for k in range(20)))
    make_shards([table], tmp_path / "shards", n_shards=1)
    data = open_shards(tmp_path / "shards")
    items = next((tmp_path / "shards").rglob("items.npy"))
    whole = shard_folders.blocks

    def changing(people):
        found = list(whole(people))
        held = np.load(items)
        held[:] = 4 if not fails else 10**6
        shutil.copymode(items, items)
        np.save(items, held)
        if fails:
            raise IndexError("index 1000000 is out of bounds")
        return iter(found)

    monkeypatch.setattr(shard_folders, "blocks", changing)
    with refuses("shards-damaged"):
        data.total(ItemVotes(n_items=data.n_items, norm="l2"))


def test_an_error_of_a_statistic_is_its_own(tmp_path, monkeypatch):
    table = tmp_path / "table.csv"
    table.write_text("user,item,rating\n" + "".join(f"u{k},i{k % 5},{1 + k % 5}\n" for k in range(20)))
    make_shards([table], tmp_path / "shards", n_shards=1)
    data = open_shards(tmp_path / "shards")

    def broken(_):
        raise IndexError("a mistake")

    monkeypatch.setattr(shard_folders, "blocks", broken)
    with pytest.raises(IndexError, match="a mistake"):
        data.total(ItemVotes(n_items=data.n_items, norm="l2"))


def test_a_database_user_without_rights_gets_a_sentence(postgresql, films):
    url = postgresql.fresh()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS nobody_special")
        connection.execute("CREATE ROLE nobody_special LOGIN")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    with pytest.raises(FileError, match="create tables"):
        open_store(url.replace("discreet@", "nobody_special@"), films)


def test_the_state_of_a_device_is_for_its_owner_alone(collecting, films, tmp_path):
    service, _ = collecting(films)
    device, path = Device(films), tmp_path / "device.json"
    message = device.message({"film 3": 5.0})
    CollectionClient(service.url).send(message, state=path, kept=device.state())
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written_ends_nothing(monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("sys.stderr", Full())
    log("store failed")
