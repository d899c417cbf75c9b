"""Keep reports so that an acknowledged one is never lost: in a SQLite file, or in PostgreSQL.

A store has one campaign, its reports, its invitations, and whether more reports are taken. Queries are
written once, as PostgreSQL reads them: `%s` is a value, and tables have names with `discreet_`.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, final

from discreet.collect.campaign import Campaign, pack
from discreet.collect.errors import ClosedMeanwhile, EmptyRound, NoRounds, RoundsOver
from discreet.collect.gradient_rounds import GradientCampaign, read_answer
from discreet.collect.opening import AnyCampaign, campaign_from_bytes
from discreet.collect.wire import ReportRefusal
from discreet.core import CannotWrite, ExtraMissing, begun_path, connect
from discreet.core.checks import FileError
from discreet.service.admission import Receipt, Submission, admit
from discreet.service.errors import (
    BadReportStore,
    DamagedStore,
    DatabaseBusy,
    DatabaseFails,
    DatabaseForbids,
    EmptyStore,
    NotAStore,
    ReportStoreUnusable,
    StoreOfAnother,
    TooManyInvitations,
)

#: How many senders a store takes unless its operator says otherwise: a refit holds all of their reports.
MOST_SENDERS = 1 << 20
CAMPAIGN, CLOSED, SENDERS, ROUND = "campaign", "closed", "senders", "round"
#: How many invitations a store holds, used or not.
MOST_INVITATIONS = 1 << 20
# What is kept of an unused invitation.
_UNUSED = b""
_FACT = "SELECT value FROM discreet_facts WHERE name = %s"
_INVITATION = "SELECT request FROM discreet_invitations WHERE name = %s"


class Counts(NamedTuple):
    """The number of reports and senders in a store."""

    senders: int
    reports: int


class StoredReport(NamedTuple):
    """A row: a sender, the number of an item, and a code."""

    sender: bytes
    item: int
    code: int


class ReportStore(ABC):
    """Keep the reports of one campaign. `take` returns after its transaction is on disk.

    A store knows senders, items and codes: no address and no time. What comes together is written in the
    order of senders, and `rewrite` puts all into that order: until then files show which batch came when.
    """

    campaign: AnyCampaign
    most_senders: int = MOST_SENDERS

    @final
    def take(self, batch: Sequence[Submission]) -> list[Receipt]:
        """Keep what is new of several submissions in one transaction; return what became of each."""
        senders = list({one.sender for one in batch})
        with self._transaction() as transaction:
            if transaction.value(CLOSED) is not None:
                return [Receipt(closed=True) for _ in batch]
            # Counted in the database: other services may write to it as well.
            before = int(transaction.value(SENDERS) or b"0")
            # An answer to a round has a number of its own, which no other round knows.
            rounds = self.campaign.rounds if isinstance(self.campaign, GradientCampaign) else 1
            room = self.most_senders * rounds - before
            if isinstance(self.campaign, Campaign):
                receipts, added = self._take_reports(batch, transaction, senders, room)
            else:
                receipts, added = self._take_messages(batch, transaction, senders, room)
            if added:
                transaction.put(SENDERS, str(before + added).encode())
        return receipts

    def _take_reports(
        self, batch: Sequence[Submission], transaction: Transaction, senders: list[bytes], room: int
    ) -> tuple[list[Receipt], int]:
        assert isinstance(self.campaign, Campaign)
        known: dict[bytes, dict[int, int]] = {}
        for sender, item, code in transaction.rows_of("reports", senders):
            known.setdefault(sender, {})[item] = code
        rows: list[StoredReport] = []
        receipts, added = [], 0
        for one in batch:
            newcomer = one.sender not in known
            if newcomer and one.pairs and added >= room:
                receipt = Receipt(refused=one.refused.copy())
                receipt.refused[ReportRefusal.TOO_MANY_SENDERS] += len(one.pairs)
                receipts.append(receipt)
                continue
            new, receipt = admit(known.setdefault(one.sender, {}), one.pairs, self.campaign.max_reports)
            receipt.refused += one.refused
            added += newcomer and bool(new)
            rows += (StoredReport(one.sender, item, code) for item, code in new)
            receipts.append(receipt)
        transaction.add("reports", sorted(rows))
        return receipts, added

    def _take_messages(
        self, batch: Sequence[Submission], transaction: Transaction, senders: list[bytes], room: int
    ) -> tuple[list[Receipt], int]:
        known: dict[bytes, bytes] = dict(transaction.rows_of("messages", senders))
        rows: list[tuple[bytes, bytes]] = []
        receipts = []
        for one in batch:
            assert one.body is not None
            receipt = Receipt()
            if known.get(one.sender) == one.body:
                receipt.repeated = 1
            elif one.sender in known:
                receipt.refused[ReportRefusal.REPLAYED] += 1
            elif not self._is_asked(one.body, transaction):
                receipt.refused[ReportRefusal.WRONG_ROUND] += 1
            elif len(rows) >= room:
                receipt.refused[ReportRefusal.TOO_MANY_SENDERS] += 1
            else:
                known[one.sender] = one.body
                rows.append((one.sender, one.body))
                receipt.kept = 1
            receipts.append(receipt)
        transaction.add("messages", sorted(rows))
        return receipts, len(rows)

    def _is_asked(self, body: bytes, transaction: Transaction) -> bool:
        """Return whether a message answers what is asked now: a round that is closed takes no answers."""
        if not isinstance(self.campaign, GradientCampaign):
            return True
        return read_answer(self.campaign, body).round == int(transaction.value(ROUND) or b"0")

    @final
    @property
    def round(self) -> int:
        """Return the number of the open round; as many as the campaign has after the last one."""
        return int(self._fact(ROUND) or b"0")

    @final
    def close_round(self) -> int:
        """Close the open round, so that the next one begins; return how many devices answered it."""
        campaign, number = self.campaign, self.round
        if not isinstance(campaign, GradientCampaign):
            raise NoRounds
        if number >= campaign.rounds:
            raise RoundsOver(rounds=campaign.rounds)
        answers = sum(read_answer(campaign, body).round == number for _, body in self.messages())
        if not answers:
            raise EmptyRound(number=number)
        with self._transaction() as transaction:
            if int(transaction.value(ROUND) or b"0") != number:
                raise ClosedMeanwhile(number=number)
            transaction.put(ROUND, str(number + 1).encode())
        return answers

    @final
    def add_invitations(self, names: Sequence[bytes]) -> None:
        """Keep the names of new invitations; see `code_name`."""
        with self._transaction() as transaction:
            known = transaction.run("SELECT count(*) FROM discreet_invitations")[0][0]
            if known + len(names) > MOST_INVITATIONS:
                raise TooManyInvitations(most=MOST_INVITATIONS)
            transaction.add("invitations", [(name, _UNUSED) for name in sorted(names)])

    @final
    def redeem(self, name: bytes, request: bytes) -> bool:
        """Use an invitation for one request; return whether it may be answered.

        The same request may come again: its answer may have been lost. Any other is rejected. Strangers
        without an invitation only read: they don't keep others from writing.
        """
        if self._invitation(name) not in (_UNUSED, request):
            return False
        with self._transaction() as transaction:
            if transaction.value(CLOSED) is not None:
                return False
            found = transaction.run(_INVITATION, name)
            known = found[0][0] if found else None
            if known == _UNUSED:
                transaction.run("UPDATE discreet_invitations SET request = %s WHERE name = %s", request, name)
            return known in (_UNUSED, request)

    def close_collection(self) -> None:
        """Take no more reports, in this process or another."""
        with self._transaction() as transaction:
            transaction.put(CLOSED, b"closed")

    @property
    def is_closed(self) -> bool:
        """Return whether no more reports are taken."""
        return self._fact(CLOSED) is not None

    @final
    def counts(self) -> Counts:
        """Count what is stored."""
        query = (
            "SELECT (SELECT count(*) FROM (SELECT DISTINCT sender FROM discreet_reports) AS each), "
            "(SELECT count(*) FROM discreet_reports), (SELECT count(*) FROM discreet_messages)"
        )
        ((senders, reports, messages),) = self._all(query, int, int, int)
        return Counts(senders + messages, reports + messages)

    @final
    def reports(self) -> Iterator[StoredReport]:
        """Return every report, by sender and item."""
        query = "SELECT sender, item, code FROM discreet_reports ORDER BY sender, item"
        return map(StoredReport._make, self._all(query, bytes, int, int))

    @final
    def messages(self) -> Iterator[tuple[bytes, bytes]]:
        """Return every sender's answer to a whole catalog or a round."""
        return self._all("SELECT sender, body FROM discreet_messages ORDER BY sender", bytes, bytes)

    @final
    def invitations(self) -> Iterator[tuple[bytes, bytes]]:
        """Return every invitation's name, and the request it was used for."""
        return self._all("SELECT name, request FROM discreet_invitations ORDER BY name", bytes, bytes)

    @final
    def _fact(self, name: str) -> bytes | None:
        return self._look(_FACT, name)

    @final
    def _invitation(self, name: bytes) -> bytes | None:
        """Return the request an invitation was used for, empty before; None if it is unknown."""
        return self._look(_INVITATION, name)

    @abstractmethod
    def _look(self, query: str, key: Any) -> bytes | None:
        """Return the one value of a query, or None, also while this store is written."""

    @abstractmethod
    def _all(self, query: str, *kinds: type) -> Iterator[Any]:
        """Return all rows of a query, whose values are of these kinds, in pages."""

    @abstractmethod
    def settle(self) -> None:
        """Bring what was committed to its place, so that no log of writes grows; never waits for readers."""

    @abstractmethod
    def rewrite(self) -> None:
        """Write all rows anew in the order of their senders, so that nothing shows when they came."""

    @abstractmethod
    def close(self) -> None:
        """Give back files and connections."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Transaction]:
        """Begin what is kept whole or not at all; no other process writes meanwhile."""

    @final
    def _begin(self, campaign: AnyCampaign | None) -> None:
        """Keep the campaign in a new store; a store that has a different one is rejected and closed."""
        try:
            self._adopt(campaign)
        except BaseException:
            self.close()
            raise

    def _adopt(self, campaign: AnyCampaign | None) -> None:
        with self._transaction() as transaction:
            stored = transaction.value(CAMPAIGN)
            if stored is None and campaign is None:
                raise EmptyStore()
            if stored is None and campaign is not None:
                stored = pack(campaign.text)
                transaction.put(CAMPAIGN, stored)
            # Also for stores of earlier versions, and for copies.
            senders = str(self.counts().senders).encode()
            if transaction.value(SENDERS) != senders:
                transaction.put(SENDERS, senders)
        assert stored is not None
        self.campaign = campaign_from_bytes(stored)
        if campaign is not None and campaign.digest != self.campaign.digest:
            raise StoreOfAnother()


class Transaction(ABC):
    """Reads and writes between a beginning and a commit that is on disk when the block ends."""

    @abstractmethod
    def run(self, query: str, *values: Any) -> list[Any]:
        """Run a query, and return its rows."""

    @abstractmethod
    def rows_of(self, table: str, senders: list[bytes]) -> Iterator[Any]:
        """Return the rows of these senders in a table."""

    @abstractmethod
    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows that are new to a table."""

    @final
    def value(self, name: str) -> bytes | None:
        """Return what is kept about the store itself."""
        return only_bytes(self.run(_FACT, name))

    @final
    def put(self, name: str, value: bytes) -> None:
        """Keep something about the store itself."""
        self.run(
            "INSERT INTO discreet_facts VALUES (%s, %s) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name,
            value,
        )


def only_bytes(rows: Sequence[Any]) -> bytes | None:
    """Return the value of the one row, or None without one; SQLite takes other types for bytes as well."""
    if rows and not isinstance(rows[0][0], bytes):
        raise sqlite3.DatabaseError("a value has the wrong type")
    return rows[0][0] if rows else None


_SQLITE_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reports (
    sender BLOB NOT NULL, item INTEGER NOT NULL, code INTEGER NOT NULL, PRIMARY KEY (sender, item)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages (sender BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS invitations (name BLOB PRIMARY KEY, request BLOB NOT NULL) WITHOUT ROWID;
"""
_TABLES = {"facts", "reports", "messages"}
# Tables are kept by key, without row numbers. Pages still show which of their rows came first: see `rewrite`.
_SQLITE_SECONDS = 10.0


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
            self._connection.executescript(_SQLITE_SCHEMA)
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
            found.execute(f"PRAGMA busy_timeout = {1000 * _SQLITE_SECONDS:.0f}")
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
                self._connection.execute(f"PRAGMA busy_timeout = {1000 * _SQLITE_SECONDS:.0f}")

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

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield _SqliteTransaction(self._connection)
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")


@final
class _SqliteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

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


_POSTGRESQL_SCHEMA = """
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
_KEYS = {"discreet_reports": "sender, item", "discreet_messages": "sender", "discreet_invitations": "name"}


@final
class PostgresqlStore(ReportStore):
    """Keep a campaign's reports in a database; give the campaign to begin, leave it out to go on."""

    def __init__(self, url: str, campaign: AnyCampaign | None = None) -> None:
        self._writing, self._looking = _Line(url), _Line(url)
        try:
            with self._told(), self._writing.held() as connection, connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                connection.execute(_POSTGRESQL_SCHEMA)
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

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        with self._writing.held() as connection, _alone(connection):
            yield _PostgresqlTransaction(connection)


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
    def __init__(self, connection: Any) -> None:
        self._connection = connection

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


def open_store(url: str, campaign: AnyCampaign | None = None) -> ReportStore:
    """Return the store at `url`; with a campaign it is made if there is none yet."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        return PostgresqlStore(url, campaign)
    if separator and scheme != "sqlite":
        raise BadReportStore()
    return SqliteStore(Path(rest[1:] if separator else url), campaign)


_COPIED_AT_ONCE = 10_000


def copy_store(source: ReportStore, target: Path) -> Counts:
    """Write all reports of a store to a new SQLite store, in the order of senders; return how many.

    The copy is made next to the target and put in its place when it is complete.
    """
    aside = begun_path(target)
    for name in (aside.name, f"{aside.name}-wal", f"{aside.name}-shm"):
        aside.with_name(name).unlink(missing_ok=True)
    try:
        aside.touch(mode=0o600, exist_ok=False)
        copy = SqliteStore(aside, source.campaign)
        try:
            counts = _fill(copy, source)
        finally:
            copy.close()
        aside.replace(target)
    except OSError as error:
        raise CannotWrite(path=target, why=error.strerror) from error
    finally:
        aside.unlink(missing_ok=True)
    return counts


def _fill(copy: SqliteStore, source: ReportStore) -> Counts:
    # Before the messages: a round that is closed meanwhile is open in the copy, with all answers or some.
    facts = {name: source._fact(name) for name in (CLOSED, ROUND)}
    reports, messages, invitations = source.reports(), source.messages(), source.invitations()
    with copy._transaction() as transaction:
        while some := list(itertools.islice(reports, _COPIED_AT_ONCE)):
            transaction.add("reports", some)
        while others := list(itertools.islice(messages, _COPIED_AT_ONCE)):
            transaction.add("messages", others)
        while invited := list(itertools.islice(invitations, _COPIED_AT_ONCE)):
            transaction.add("invitations", invited)
        for name, value in facts.items():
            if value is not None:
                transaction.put(name, value)
    copy.rewrite()
    return copy.counts()
