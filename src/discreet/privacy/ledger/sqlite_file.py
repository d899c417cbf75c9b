"""Keep a ledger's rows in SQLite: durable before control returns, append-only, and safe between processes.

Every operation on a file opens its own connection, so threads and forks share nothing. A file that
isn't a ledger is recognized by its first hundred bytes, before SQLite may touch it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import final

from discreet.core import CannotWrite, NoSuchFile, put_aside, remove_leftovers, sqlite
from discreet.privacy import errors
from discreet.privacy.ledger.chain import ANCHORS
from discreet.privacy.ledger.locking import locked

# "DSCT" in ASCII, in the field of the SQLite header that names the application.
APPLICATION = 0x44534354
VERSION = 1
#: The version of a ledger that also records chains of answered questions.
WITH_ANCHORS = 2
_ROLLBACK_JOURNAL = b"\x01\x01"
_TABLES = (
    """CREATE TABLE budgets (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, guarantee TEXT NOT NULL,
    reason TEXT NOT NULL, process INTEGER NOT NULL)""",
    """CREATE TABLE spendings (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL, what TEXT NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, frame TEXT NOT NULL, guarantee TEXT NOT NULL,
    events TEXT NOT NULL, process INTEGER NOT NULL)""",
    """CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY REFERENCES spendings(id), time TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('done', 'failed')))""",
)
_NAMES = ("budgets", "spendings", "outcomes")


def _append_only(table: str) -> Iterator[str]:
    """Yield triggers against changing, deleting, and (what INSERT OR REPLACE would do) overwriting a row."""
    refuse = "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
    yield f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}"
    yield f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}"
    exists = f"WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id)"
    yield f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} {exists} {refuse}"


_SCHEMA = (
    *_TABLES,
    "CREATE INDEX spendings_by_dataset ON spendings(dataset)",
    *(statement for table in _NAMES for statement in _append_only(table)),
)

_ANCHORS_SCHEMA = (*ANCHORS, *_append_only("anchors"))

# SQLite remembers locks per process. After a fork in the middle of an operation, the child would have locks
# that no process owns, so a fork waits for the operation to end.
_gate = threading.Lock()
os.register_at_fork(before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release)


@final
class LedgerStore:
    """Connections to one ledger, in memory or in a file, one operation at a time."""

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._process = os.getpid()
        self._memory: sqlite3.Connection | None = None
        if path is None:
            self._memory = sqlite.connect(None, across_threads=True)
            weakref.finalize(self, self._memory.close)
            _write_schema(self._memory)
            return
        if not path.exists() and not read_only:
            _create(path)
        elif not read_only:
            # A process that was killed right after it created the ledger left its draft.
            remove_leftovers(path)
        with self.reading() as connection:
            _check_contents(connection, path)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that reads."""
        with _gate, self._locked(alone=False), _one_sentence(self.path), self._connection() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the only connection that writes. Its rows are on the disk afterward."""
        if self.read_only:
            raise errors.ReadOnlyLedger()
        with (
            _gate,
            self._locked(alone=True),
            _one_sentence(self.path),
            self._connection() as connection,
            sqlite.transaction(connection, self.path, writing=True),
        ):
            yield connection

    def _locked(self, *, alone: bool) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.path is None else locked(self.path, alone=alone)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self.path is None:
            if self._memory is None or self._process != os.getpid():
                raise errors.LedgerOfOtherProcess()
            yield self._memory
            return
        _check_header(self.path)
        with contextlib.closing(_connect(self.path, "ro" if self.read_only else "rw")) as connection:
            yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    try:
        return sqlite.connect(path, mode, (*sqlite.DURABLE, "foreign_keys = ON"))
    except sqlite3.OperationalError as error:
        if mode == "ro" and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK:
            # A writer was killed: its unfinished rows must be rolled back before any process can read.
            return _connect(path, "rw")
        raise


def _write_schema(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in _SCHEMA:
        connection.execute(statement).close()


def has_anchors(connection: sqlite3.Connection) -> bool:
    """Return whether a ledger records chains of answered questions."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == WITH_ANCHORS)


def add_anchors(connection: sqlite3.Connection) -> None:
    """Write the tables for chains into a ledger without them. Earlier versions then reject the file."""
    if not has_anchors(connection):
        for statement in (*_ANCHORS_SCHEMA, f"PRAGMA user_version = {WITH_ANCHORS}"):
            connection.execute(statement).close()


def _create(path: Path) -> None:
    """Make a ledger in a temporary file and link it into place, so that no process ever sees half of one.

    When several processes create it at once, one link succeeds and all of them use that file.
    """
    try:
        with put_aside(path) as aside:
            with (
                contextlib.closing(sqlite.connect(aside)) as connection,
                sqlite.transaction(connection, aside, writing=True),
            ):
                _write_schema(connection)
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
            sqlite.sync_folder(path.parent)
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise CannotWrite(path=path, why=str(why)) from error


def _check_header(path: Path) -> None:
    """Raise unless the first bytes are a ledger's. SQLite has not seen the file yet."""
    try:
        found = sqlite.header(path)
    except FileNotFoundError as error:
        raise NoSuchFile(path=path, kind="ledger") from error
    except OSError as error:
        raise errors.NotALedger(path=path, why=f"it can't be read: {error.strerror}") from error
    if found is None or found.owner != APPLICATION:
        raise errors.NotALedger(path=path)
    # In another journal mode, which we never use, SQLite would wait for locks that no process owns.
    if found.journal != _ROLLBACK_JOURNAL:
        raise errors.LedgerDamaged(path=path)
    if found.version not in (VERSION, WITH_ANCHORS):
        reads = f"this discreet reads {VERSION} and {WITH_ANCHORS}"
        raise errors.NotALedger(path=path, why=f"it has version {found.version}, and {reads}")


def _check_contents(connection: sqlite3.Connection, path: Path) -> None:
    """Raise for a ledger whose pages are damaged or whose tables and triggers aren't exactly ours."""
    # The index repeats the names of datasets, so a name that changed in only one of them is found here.
    findings = [row[0] for row in connection.execute("PRAGMA integrity_check").fetchall()]
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    expected = (*_SCHEMA, *_ANCHORS_SCHEMA) if has_anchors(connection) else _SCHEMA
    if findings != ["ok"] or {row[0] for row in rows} != set(expected):
        raise errors.LedgerDamaged(path=path)


@contextlib.contextmanager
def _one_sentence(path: Path | None) -> Iterator[None]:
    """Turn SQLite's errors into one sentence."""
    where = "The ledger in memory" if path is None else str(path)
    try:
        yield
    except sqlite3.OperationalError as error:
        if sqlite.is_busy(error):
            raise errors.LedgerInUse(path=where) from error
        raise errors.NotALedger(path=where, why=f"it can't be used ({error})") from error
    except (sqlite3.DatabaseError, ValueError) as error:
        raise errors.LedgerDamaged(path=where) from error
