"""Keep reports in one SQLite file: written ahead, and flushed to the disk at every commit."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import final

from discreet.collect.opening import AnyCampaign
from discreet.core.checks import FileError
from discreet.core.sqlite import connect
from discreet.service.errors import DamagedStore, NotAStore, ReportStoreUnusable
from discreet.service.stores.store import Counts, ReportStore, StoredReport, Transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reports (
    sender BLOB NOT NULL, item INTEGER NOT NULL, code INTEGER NOT NULL, PRIMARY KEY (sender, item)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (sender BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS invitations (name BLOB PRIMARY KEY, request BLOB NOT NULL) WITHOUT ROWID;
"""
_TABLES = {"facts", "reports", "messages"}
# Tables are kept by key, without row numbers. Pages still show which of their rows came first: see `rewrite`.
_PATIENCE = 10.0


@final
class SqliteStore(ReportStore):
    """Keep a campaign's reports in a file; give the campaign to begin, leave it out to go on."""

    def __init__(self, path: Path, campaign: AnyCampaign | None = None) -> None:
        if campaign is None and not path.is_file():
            raise NotAStore(path=path)
        self._lock, self._looking_lock = threading.RLock(), threading.Lock()
        self._path = path
        # What is looked up for an answer has a connection of its own: `rewrite` takes a while.
        self._connection, self._looking = self._opened(), self._opened()
        try:
            self._refuse_foreign()
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.executescript(_SCHEMA)
        except FileError:
            self.dispose()
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.dispose()
            raise ReportStoreUnusable(path=path) from error
        with self._sound():
            self._begin(campaign)
        self.settle()

    def _opened(self) -> sqlite3.Connection:
        try:
            found = connect(self._path, "rwc", (), across_threads=True)
            found.execute(f"PRAGMA busy_timeout = {1000 * _PATIENCE:.0f}")
            return found
        except sqlite3.Error as error:
            raise ReportStoreUnusable(path=self._path) from error

    def _refuse_foreign(self) -> None:
        """Raise for a database of something else, such as a ledger, before anything in it is changed."""
        rows = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        names = {row[0] for row in rows}
        # Stores of earlier versions have no invitations.
        if names and names - {"invitations"} != _TABLES:
            raise NotAStore(path=self._path)

    @contextlib.contextmanager
    def _sound(self) -> Iterator[None]:
        """Turn what SQLite finds damaged into one of our errors."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise DamagedStore(path=self._path, why=str(error)) from error

    def _fact(self, name: str) -> bytes | None:
        with self._looking_lock, self._sound():
            return _value(self._looking, name)

    def counts(self) -> Counts:
        """Count what is stored."""
        with self._lock, self._sound():
            row = self._connection.execute(
                "SELECT (SELECT count(*) FROM (SELECT DISTINCT sender FROM reports)), "
                "(SELECT count(*) FROM reports), (SELECT count(*) FROM messages)"
            ).fetchone()
        return Counts(row[0] + row[2], row[1] + row[2])

    def reports(self) -> Iterator[StoredReport]:
        """Return every report, by sender and item."""
        query = "SELECT sender, item, code FROM reports ORDER BY sender, item"
        with self._lock, self._sound():
            for row in self._connection.execute(query):
                self._require(isinstance(row[0], bytes) and type(row[1]) is type(row[2]) is int)
                yield StoredReport._make(row)

    def messages(self) -> Iterator[tuple[bytes, bytes]]:
        """Return every sender's message about a whole catalog."""
        with self._lock, self._sound():
            for sender, body in self._connection.execute("SELECT sender, body FROM messages ORDER BY sender"):
                self._require(isinstance(sender, bytes) and isinstance(body, bytes))
                yield sender, body

    def invitations(self) -> Iterator[tuple[bytes, bytes]]:
        """Return every invitation's name, and the request it was used for."""
        with self._lock, self._sound():
            for row in self._connection.execute("SELECT name, request FROM invitations ORDER BY name"):
                self._require(isinstance(row[0], bytes) and isinstance(row[1], bytes))
                yield row[0], row[1]

    def _invitation(self, name: bytes) -> bytes | None:
        with self._looking_lock, self._sound():
            return _invitation(self._looking, name)

    def _require(self, is_ours: bool) -> None:
        if not is_ours:
            raise DamagedStore(path=self._path, why="a row has the wrong type")

    def settle(self) -> None:
        """Empty the log of writes into the file, unless it is being read: then the next time."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {1000 * _PATIENCE:.0f}")

    def rewrite(self) -> None:
        """Write the file anew, in the order of keys."""
        with self._lock, self._sound():
            self._connection.execute("VACUUM")
        self.settle()

    def dispose(self) -> None:
        """Close the file."""
        with self._looking_lock:
            self._looking.close()
        with self._lock:
            self._connection.close()

    def _transaction(self) -> Transaction:
        return _SqliteTransaction(self._connection, self._lock)


@final
class _SqliteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection, lock: threading.RLock) -> None:
        self._connection, self._lock = connection, lock

    def __enter__(self) -> Transaction:
        self._lock.acquire()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        try:
            self._connection.execute("COMMIT" if problem[0] is None else "ROLLBACK")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._lock.release()

    def value(self, name: str) -> bytes | None:
        return _value(self._connection, name)

    def put(self, name: str, value: bytes) -> None:
        self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def reports_of(self, senders: list[bytes]) -> Iterable[StoredReport]:
        query = "SELECT sender, item, code FROM reports WHERE sender = ?"
        for sender in senders:
            yield from map(StoredReport._make, self._connection.execute(query, (sender,)))

    def add_reports(self, rows: list[StoredReport]) -> None:
        self._connection.executemany("INSERT INTO reports VALUES (?, ?, ?)", rows)

    def messages_of(self, senders: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
        for sender in senders:
            yield from self._connection.execute(
                "SELECT sender, body FROM messages WHERE sender = ?", (sender,)
            )

    def add_messages(self, rows: list[tuple[bytes, bytes]]) -> None:
        self._connection.executemany("INSERT INTO messages VALUES (?, ?)", rows)

    def count_invitations(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM invitations").fetchone()[0])

    def invitation(self, name: bytes) -> bytes | None:
        return _invitation(self._connection, name)

    def add_invitations(self, rows: list[tuple[bytes, bytes]]) -> None:
        self._connection.executemany("INSERT INTO invitations VALUES (?, ?)", rows)

    def use_invitation(self, name: bytes, request: bytes) -> None:
        self._connection.execute("UPDATE invitations SET request = ? WHERE name = ?", (request, name))


def _value(connection: sqlite3.Connection, name: str) -> bytes | None:
    row = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    if row is not None and not isinstance(row[0], bytes):
        # Of a number, bytes() would make as many zeros.
        raise sqlite3.DatabaseError("a fact has the wrong type")
    return None if row is None else row[0]


def _invitation(connection: sqlite3.Connection, name: bytes) -> bytes | None:
    row = connection.execute("SELECT request FROM invitations WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]
