"""Keep reports in a PostgreSQL database, so that several services may take them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, final

from discreet.collect.opening import AnyCampaign
from discreet.core.checks import FileError
from discreet.core.errors import ExtraMissing
from discreet.service.errors import DatabaseBusy, DatabaseFails, DatabaseForbids
from discreet.service.stores.store import ReportStore, Transaction, only_bytes

_SCHEMA = """
CREATE TABLE IF NOT EXISTS discreet_facts (name TEXT PRIMARY KEY, value BYTEA NOT NULL);
CREATE TABLE IF NOT EXISTS discreet_reports (
    sender BYTEA NOT NULL, item INTEGER NOT NULL, code INTEGER NOT NULL, PRIMARY KEY (sender, item)
);
CREATE TABLE IF NOT EXISTS discreet_messages (sender BYTEA PRIMARY KEY, body BYTEA NOT NULL);
CREATE TABLE IF NOT EXISTS discreet_invitations (name BYTEA PRIMARY KEY, request BYTEA NOT NULL);
"""
# One writer at a time, whichever service it belongs to: caps are counted before rows are added.
_LOCK = 0x6469736372656574
_PAGE = 10_000
# How long to wait for a lock of the database, and for another thread of this process.
_LOCK_SECONDS, _THREAD_SECONDS = 5, 15.0
# A server that is gone without a word is noticed; the address of a store may say otherwise.
_CONNECTING = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_KEYS = {
    "discreet_reports": "sender, item",
    "discreet_messages": "sender",
    "discreet_invitations": "name",
}


@final
class PostgresqlStore(ReportStore):
    """Keep a campaign's reports in a database; give the campaign to begin, leave it out to go on."""

    def __init__(self, url: str, campaign: AnyCampaign | None = None) -> None:
        self._writing, self._looking = _Line(url), _Line(url)
        try:
            with self._told(), self._writing.held() as connection, connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                connection.execute(_SCHEMA)
        except FileError:
            self.close()
            raise
        with self._told():
            self._begin(campaign)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the server rejects into one of our errors, without the server's own words."""
        psycopg = _driver()
        try:
            yield
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseForbids() from error
        except psycopg.errors.LockNotAvailable as error:
            raise DatabaseBusy(seconds=_LOCK_SECONDS) from error
        except psycopg.Error as error:
            raise DatabaseFails() from error

    def _look(self, query: str, key: Any) -> bytes | None:
        with self._told(), self._looking.held() as connection:
            return only_bytes(connection.execute(query, (key,)).fetchall())

    def _all(self, query: str, *kinds: type) -> Iterator[Any]:
        with (
            self._told(),
            self._writing.held() as connection,
            connection.transaction(),
            connection.cursor("all_rows") as cursor,
        ):
            cursor.itersize = _PAGE
            yield from cursor.execute(query)

    def settle(self) -> None:
        """Leave the log of writes to the server."""

    def rewrite(self) -> None:
        """Write all rows anew in the order of keys; a backup that runs meanwhile sees each of them once.

        Rows are deleted and inserted in one transaction, so that all of them have one transaction number, and
        a snapshot of before shows all of them as well: after TRUNCATE, or in a table that took the place of
        another, it would show none. CLUSTER then skips what was deleted; it respects snapshots, too.
        """
        with self._told(), self._writing.held() as connection:
            # If a reader is in the way, nothing is written: each attempt would leave a copy of all rows.
            with _alone(connection):
                connection.execute(f"LOCK TABLE {', '.join(_KEYS)} IN ACCESS EXCLUSIVE MODE")
            with _alone(connection):
                for table, key in _KEYS.items():
                    connection.execute(
                        f"WITH all_rows AS (DELETE FROM {table} RETURNING *) "
                        f"INSERT INTO {table} SELECT * FROM all_rows ORDER BY {key}"
                    )
            for table in _KEYS:
                with _alone(connection):
                    connection.execute(f"CLUSTER {table} USING {table}_pkey")

    def close(self) -> None:
        """Close the connections."""
        self._writing.close()
        self._looking.close()

    def _transaction(self) -> Transaction:
        return _PostgresqlTransaction(self._writing)


@final
class _Line:
    """A connection for one thread at a time; a lost connection is replaced."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.RLock()
        self._connection: Any = None

    @contextlib.contextmanager
    def held(self) -> Iterator[Any]:
        """Give the connection to this thread alone; a thread that waits too long gets a `FileError`."""
        if not self._lock.acquire(timeout=_THREAD_SECONDS):
            raise DatabaseBusy(seconds=_THREAD_SECONDS)
        try:
            yield self._connected()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection, also under a thread that waits for the database."""
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> Any:
        psycopg = _driver()
        if self._connection is None or self._connection.closed or self._connection.broken:
            try:
                asked = psycopg.conninfo.conninfo_to_dict(self._url)
                self._connection = psycopg.connect(**{**_CONNECTING, **asked}, autocommit=True)
                self._connection.execute("SET synchronous_commit TO on")
                self._connection.execute(f"SET lock_timeout TO '{_LOCK_SECONDS}s'")
            except psycopg.Error as error:
                raise DatabaseFails(reached=False) from error
        return self._connection


@contextlib.contextmanager
def _alone(connection: Any) -> Iterator[None]:
    """Be the only writer of a store for one transaction."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        yield


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise ExtraMissing(package="psycopg", extra="discreet[postgresql]") from error
    return psycopg


@final
class _PostgresqlTransaction(Transaction):
    def __init__(self, line: _Line) -> None:
        self._line = line
        self._held = contextlib.ExitStack()
        self._connection: Any = None

    def __enter__(self) -> Transaction:
        with contextlib.ExitStack() as stack:
            self._connection = stack.enter_context(self._line.held())
            stack.enter_context(_alone(self._connection))
            self._held = stack.pop_all()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._held.__exit__(*problem)

    def run(self, query: str, *values: Any) -> list[Any]:
        done = self._connection.execute(query, values)
        return list(done.fetchall()) if done.description else []

    def rows_of(self, table: str, senders: list[bytes]) -> Iterator[Any]:
        query = f"SELECT * FROM discreet_{table} WHERE sender = ANY(%s)"
        return iter(self._connection.execute(query, (senders,)).fetchall())

    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            columns = [list(column) for column in zip(*rows, strict=True)]
            kinds = ", ".join("%s::int[]" if type(one) is int else "%s::bytea[]" for one in rows[0])
            self._connection.execute(f"INSERT INTO discreet_{table} SELECT * FROM unnest({kinds})", columns)
