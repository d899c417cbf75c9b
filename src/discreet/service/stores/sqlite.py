"""Keep reports in one SQLite file: written ahead, and flushed to the disk at every commit."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

from discreet.collect.opening import AnyCampaign
from discreet.core.checks import FileError
from discreet.core.sqlite import connect
from discreet.service.errors import DamagedStore, NotAStore, ReportStoreUnusable
from discreet.service.stores.store import ReportStore, Transaction, only_bytes

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
            self.close()
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.close()
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

    def _look(self, query: str, key: Any) -> bytes | None:
        with self._looking_lock, self._sound():
            return only_bytes(self._looking.execute(_own(query), (key,)).fetchall())

    def _all(self, query: str, *kinds: type) -> Iterator[Any]:
        with self._lock, self._sound():
            for row in self._connection.execute(_own(query)):
                if tuple(map(type, row)) != kinds:
                    raise DamagedStore(path=self._path, why="a row has the wrong type")
                yield row

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

    def close(self) -> None:
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

    def run(self, query: str, *values: Any) -> list[Any]:
        return self._connection.execute(_own(query), values).fetchall()

    def rows_of(self, table: str, senders: list[bytes]) -> Iterator[Any]:
        for sender in senders:
            yield from self._connection.execute(f"SELECT * FROM {table} WHERE sender = ?", (sender,))

    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _own(query: str) -> str:
    """Return a query in the words of SQLite, for a file that has no other tables."""
    return query.replace("%s", "?").replace("discreet_", "")
