"""Both stores keep each report once, count, refuse and close alike, and know no more than they must."""

import random
import sqlite3
import threading

import pytest

from discreet.collect import wire
from discreet.collect.device import CatalogDevice
from discreet.collect.wire import RatingReport, ReportRefusal
from discreet.core.checks import DiscreetError
from discreet.privacy.ledger.ledger import Ledger
from discreet.service.admission import submission
from discreet.service.refitting import collected_from
from discreet.service.stores import open_store
from discreet.testing import refuses

ANN, BOB = bytes(16), bytes([1]) * 16


def of(campaign, sender, *pairs):
    items, codes = zip(*pairs, strict=True)
    return submission(campaign, wire.to_bytes(campaign, RatingReport(sender, items, codes)))


@pytest.fixture
def kept(store_url, films):
    store = open_store(store_url, films)
    yield store
    store.close()


def test_each_report_is_kept_once_and_the_first_answer_counts(kept, films):
    first, again, other, both = kept.take(
        [
            of(films, ANN, (3, 10), (5, 7)),
            of(films, ANN, (3, 10)),
            of(films, ANN, (3, 11), (9, 1)),
            of(films, BOB, (3, 200)),
        ]
    )
    assert (first.kept, again.kept, again.repeated, other.kept, both.kept) == (2, 0, 1, 1, 1)
    assert other.refused == {ReportRefusal.REPLAYED: 1}
    assert list(kept.reports()) == [(ANN, 3, 10), (ANN, 5, 7), (ANN, 9, 1), (BOB, 3, 200)]
    assert kept.counts() == (2, 4)
    assert kept.take([of(films, BOB, (3, 200))])[0].repeated == 1


def test_a_sender_stops_at_the_cap_and_nonsense_is_refused_alone(kept, films):
    (whole,) = kept.take([of(films, ANN, *((item, 1) for item in range(30)))])
    assert whole.kept == 20 and whole.refused == {ReportRefusal.OVER_CAP: 10}
    (mixed,) = kept.take([of(films, BOB, (1, 2), (999, 2), (2, 250))])
    assert mixed.kept == 1 and mixed.refused == {ReportRefusal.OUT_OF_RANGE: 2}


def test_invented_senders_stop_at_the_limit(kept, films):
    kept.most_senders = 3
    receipts = kept.take([of(films, bytes([number]) * 16, (1, 1)) for number in range(5)])
    assert [receipt.kept for receipt in receipts] == [1, 1, 1, 0, 0]
    assert receipts[-1].refused == {ReportRefusal.TOO_MANY_SENDERS: 1}


def test_a_store_remembers_its_campaign_and_takes_no_other(kept, store_url, films, shelf):
    again = open_store(store_url)
    assert again.campaign.digest == films.digest and again.campaign.text == films.text
    again.close()
    with refuses("store-of-another"):
        open_store(store_url, shelf)


def test_closed_is_closed_for_everybody(kept, store_url, films):
    kept.take([of(films, ANN, (3, 10))])
    other = open_store(store_url)
    other.close_collection()
    assert kept.is_closed and kept.take([of(films, BOB, (3, 10))])[0].closed
    assert kept.counts() == (1, 1)
    other.close()


def test_a_message_about_a_whole_catalog_is_kept_once(store_url, shelf):
    store = open_store(store_url, shelf)
    device = CatalogDevice(shelf, budget=100.0)
    raw = device.message({3: 5.0})
    one = submission(shelf, raw)
    assert [receipt.kept for receipt in store.take([one, one])] == [1, 0]
    # Another message in the same sender's name.
    place = 4 + 1 + 32
    forged = CatalogDevice(shelf, budget=100.0).message({5: 1.0})
    forged = forged[:place] + one.sender + forged[place + 16 :]
    (receipt,) = store.take([submission(shelf, forged)])
    assert receipt.refused == {ReportRefusal.REPLAYED: 1}
    assert list(store.messages()) == [(one.sender, raw)] and store.counts() == (1, 1)
    store.close()


def test_a_failed_write_keeps_nothing_of_its_group(kept, films, monkeypatch):
    good = of(films, ANN, (1, 1))
    monkeypatch.setattr("discreet.service.stores.admit", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kept.take([good])
    monkeypatch.undo()
    assert kept.counts() == (0, 0) and kept.take([good])[0].kept == 1


def test_two_writers_never_exceed_a_cap(kept, store_url, films):
    other = open_store(store_url)

    def send(store, items):
        for item in items:
            store.take([of(films, ANN, (item, 1))])

    threads = [
        threading.Thread(target=send, args=(kept, range(0, 60, 2))),
        threading.Thread(target=send, args=(other, range(1, 60, 2))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert kept.counts() == (1, 20)


def test_rows_hold_a_sender_an_item_and_a_code_and_nothing_of_time_or_place(kept, store_url, films):
    kept.take([of(films, BOB, (7, 1)), of(films, ANN, (3, 10))])
    if store_url.startswith("sqlite"):
        with sqlite3.connect(store_url.removeprefix("sqlite:///")) as connection:
            tables = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        connection.close()
        assert set(tables) == {"facts", "reports", "messages", "invitations"}
        # Without row numbers the file does not tell who came first.
        assert all("WITHOUT ROWID" in sql for sql in tables.values())
    assert [row.sender for row in kept.reports()] == [ANN, BOB]


def test_addresses_that_lead_nowhere_are_refused(tmp_path, films):
    for url in ("mysql://host/name", "https://host"):
        with refuses("bad-report-store"):
            open_store(url)
    with refuses("not-a-store"):
        open_store(str(tmp_path / "none.db"))
    with refuses("database-fails", reached=False):
        open_store("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1", films)
    text = tmp_path / "text.db"
    text.write_text("not a database, but long enough to look at " * 50)
    with refuses("report-store-unusable"):
        open_store(str(text), films)
    empty = tmp_path / "empty.db"
    empty.touch()
    with refuses("empty-store"):
        open_store(str(empty))


def test_another_database_is_left_as_it_is(films, tmp_path):
    path = tmp_path / "spent.ledger"
    with Ledger.open(path) as ledger:
        ledger.set_budget("films", films.for_person(1))
    before = path.read_bytes()
    for campaign in (films, None):
        with refuses("not-a-store"):
            open_store(str(path), campaign)
    assert path.read_bytes() == before and Ledger.open(path).budget("films") is not None


@pytest.mark.parametrize(
    "row",
    [(ANN, 10**12, 1), (ANN, -1, 1), (ANN, 3, 10**6), ("ann", 3, 1), (ANN, 3.5, 1), (ANN, 3, "x"), (5, 3, 1)],
)
def test_rows_that_no_report_makes_get_a_sentence(row, films, tmp_path):
    path = tmp_path / "films.db"
    store = open_store(str(path), films)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO reports VALUES (?, ?, ?)", row)
    connection.close()
    with pytest.raises(DiscreetError):
        collected_from(store)
    store.close()


def test_damaged_files_get_a_sentence(films, tmp_path):
    whole, path, chance = tmp_path / "whole.db", tmp_path / "films.db", random.Random(0)
    store = open_store(str(whole), films)
    store.take([of(films, bytes([number]) * 16, (number, 10), (3 + number, 7)) for number in range(40)])
    store.close()
    raw, refused = whole.read_bytes(), 0
    for _ in range(150):
        changed = bytearray(raw)
        for _ in range(chance.choice((1, 4, 60))):
            changed[chance.randrange(len(raw))] = chance.randrange(256)
        path.write_bytes(changed)
        for name in ("films.db-wal", "films.db-shm"):
            path.with_name(name).unlink(missing_ok=True)
        try:
            hurt = open_store(str(path))
            try:
                assert not hurt.is_closed and hurt.counts()
                collected_from(hurt)
            finally:
                hurt.close()
        except DiscreetError:
            refused += 1
    assert refused > 30
