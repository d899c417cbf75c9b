"""A database shows no order of arrival, its backups are complete, and its locks stop nothing for long."""

import contextlib
import subprocess
import threading
import time

import pytest

from discreet.collect.device import Device
from discreet.core.checks import FileError
from discreet.service import stores as databases
from discreet.service.admission import seal, submission
from discreet.service.stores import open_store
from discreet.testing import refuses
from service.servers import Server, ask, ask_json, postgresql_programs

psycopg = pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")

ROWS = 100_000
READ_ALL = "SELECT count(*) FROM discreet_reports"


@pytest.fixture
def url(postgresql):
    return postgresql.fresh()


@pytest.fixture
def kept(url, films):
    store = open_store(url, films)
    yield store
    store.close()


def one(films, number=3):
    return submission(films, Device(films).message({f"film {number}": 5.0}))


def fill(url):
    """Add rows in an order of their own, as reports of many senders."""
    with psycopg.connect(url) as other:
        other.execute(
            "INSERT INTO discreet_reports SELECT decode(md5(n::text), 'hex'), n %% 60, 1 "
            "FROM generate_series(1, %s) AS n",
            (ROWS,),
        )


@contextlib.contextmanager
def reading(url, query=READ_ALL):
    """Keep a transaction open that has read all reports."""
    with psycopg.connect(url) as other:
        other.execute(query)
        yield other


def senders_in(url):
    """Return the senders by where they are in the table's file."""
    with psycopg.connect(url) as other:
        rows = other.execute("SELECT sender FROM discreet_reports ORDER BY ctid").fetchall()
    return [bytes(row[0]) for row in rows]


def test_a_database_that_was_rewritten_shows_no_order(kept, url, films):
    for number in range(40):
        kept.take([one(films, number)])
    rows = list(kept.reports())
    # The twin: before it is rewritten, the table does show an order that is not the order of senders.
    assert senders_in(url) != sorted(senders_in(url))
    for _ in range(2):
        kept.rewrite()
        assert list(kept.reports()) == rows
        assert senders_in(url) == sorted(senders_in(url))
        with psycopg.connect(url) as other:
            transactions = other.execute("SELECT count(DISTINCT xmin::text) FROM discreet_reports").fetchone()
            size = other.execute("SELECT pg_relation_size('discreet_reports')").fetchone()
        # All rows are of one transaction, and no page has deleted rows.
        assert transactions == (1,) and size == (8192,)


def test_a_snapshot_from_before_a_rewrite_shows_every_row(kept, url):
    fill(url)
    with psycopg.connect(url) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("SELECT 1 FROM discreet_facts")
        kept.rewrite()
        assert other.execute(READ_ALL).fetchone() == (ROWS,)
        # The twin: TRUNCATE empties a snapshot of before.
        with psycopg.connect(url) as third:
            third.execute("CREATE TABLE twin AS SELECT * FROM discreet_reports")
        other.commit()
        other.execute("SELECT 1 FROM discreet_facts")
        with psycopg.connect(url) as third:
            third.execute("TRUNCATE twin")
        assert other.execute("SELECT count(*) FROM twin").fetchone() == (0,)


def test_every_dump_during_rewrites_is_complete(kept, url):
    fill(url)
    ended, failures = threading.Event(), []

    def rewrite():
        while not ended.is_set():
            # A dump that reads a table keeps it from being written anew; then it is tried again.
            with contextlib.suppress(FileError):
                kept.rewrite()

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        for _ in range(6):
            command = [str(postgresql_programs() / "pg_dump"), "--data-only", "-t", "discreet_reports", url]
            dump = subprocess.run(command, capture_output=True, timeout=120)
            lines = dump.stdout.count(b"\\\\x")
            if dump.returncode or lines != ROWS:
                failures.append((dump.returncode, lines))
    finally:
        ended.set()
        thread.join(120)
    assert failures == []
    kept.rewrite()
    assert kept.counts().reports == ROWS


def test_a_reader_delays_a_rewrite_and_neither_answers_nor_reports(kept, url, films, monkeypatch):
    monkeypatch.setattr(databases, "_LOCK_SECONDS", 1)
    kept.take([one(films)])
    kept.close()  # the next connections have the shorter time
    fill(url)
    with reading(url):
        before = pages_of(url)
        for _ in range(2):
            with refuses("database-busy"):
                kept.rewrite()
        # Attempts that fail leave no copies of the table behind.
        assert pages_of(url) == before
        assert not kept.is_closed and kept.take([one(films, 4)])[0].kept == 1
    kept.rewrite()
    assert senders_in(url) == sorted(senders_in(url))


def pages_of(url):
    with psycopg.connect(url) as other:
        return other.execute("SELECT pg_relation_size('discreet_reports')").fetchone()


@pytest.mark.parametrize(
    "lock",
    [
        READ_ALL,
        "LOCK TABLE discreet_reports IN ACCESS EXCLUSIVE MODE",
        "SELECT pg_advisory_lock(7235441147305616756)",
    ],
)
def test_sigterm_ends_a_service_whose_database_is_locked(url, films, tmp_path, lock):
    campaign = tmp_path / "films.campaign"
    campaign.write_bytes(films.to_bytes())
    server = Server(campaign, url, log=tmp_path / "log").start()
    assert ask(f"{server.url}/reports", seal(Device(films).message({"film 3": 5.0})))[0] == 200
    with reading(url, lock):
        assert ask_json(f"{server.url}/health")[1]["status"] == "ok"
        begun = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begun < 60
    assert "rewrite failed" in (tmp_path / "log").read_text()
    with psycopg.connect(url) as other:
        assert other.execute(READ_ALL).fetchone() == (1,)
