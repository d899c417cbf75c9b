"""Keep a ledger's rows in SQLite: durable before control returns, append-only, and safe between processes.

Every operation on a file opens a connection of its own, so threads and forks share nothing. A file that
is not a ledger is recognized by its first hundred bytes, before SQLite may touch it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import final
from urllib.parse import quote

from discreet.core.checks import FileError, PrivacyError
from discreet.privacy.ledger.chain import ANCHORS
from discreet.privacy.ledger.locking import PATIENCE_SECONDS, SILENCE_SECONDS, locked

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
    """Yield triggers against changing, deleting and (what INSERT OR REPLACE would do) overwriting a row."""
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
_DAMAGED = (
    "{path} is a damaged ledger and was left as it is. An older copy doesn't know what was spent since. "
    "Begin a new ledger, with a budget of what is certainly left."
)

# SQLite remembers locks per process. A fork in the middle of an operation would leave the child with locks
# nobody holds, so a fork waits for the operation to end.
_gate = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_gate.acquire, after_in_parent=_gate.release, after_in_child=_gate.release)


@final
class LedgerStore:
    """Hand out connections to one ledger, in memory or in a file, one operation at a time."""

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._process = os.getpid()
        self._memory: sqlite3.Connection | None = None
        if path is None:
            self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            weakref.finalize(self, self._memory.close)
            _settle(self._memory, None)
            _write_schema(self._memory)
            return
        if not path.exists() and not read_only:
            _create(path)
        with self.reading() as connection:
            _check_contents(connection, path)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Provide a connection that reads."""
        with _gate, self._locked(alone=False), _one_sentence(self.path), self._connection() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Provide the only connection that writes; what it adds is on the disk afterwards."""
        if self.read_only:
            raise PrivacyError("This ledger was opened for reading. Open it without read_only=True to spend.")
        with _gate, self._locked(alone=True), _one_sentence(self.path), self._connection() as connection:
            _execute(connection, "BEGIN IMMEDIATE", self.path)
            try:
                yield connection
                _execute(connection, "COMMIT", self.path)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _locked(self, *, alone: bool) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.path is None else locked(self.path, alone=alone)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        if self.path is None:
            if self._memory is None or self._process != os.getpid():
                raise PrivacyError(
                    "A ledger in memory stays with the process that made it. Share one by Ledger.open(path)."
                )
            yield self._memory
            return
        _check_header(self.path)
        with contextlib.closing(_connect(self.path, "ro" if self.read_only else "rw")) as connection:
            yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=PATIENCE_SECONDS,
    )
    try:
        _settle(connection, path)
        return connection
    except sqlite3.OperationalError as error:
        connection.close()
        if mode == "ro" and getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK:
            # A writer was killed: its unfinished rows must be rolled back before anybody can read.
            return _connect(path, "rw")
        raise
    except BaseException:
        connection.close()
        raise


def _execute(connection: sqlite3.Connection, statement: str, path: Path | None) -> None:
    """Run a statement that may have to wait for another process, and say so if that takes long."""
    try:
        _wait_at_most(connection, SILENCE_SECONDS)
        connection.execute(statement).close()
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise
        print(f"discreet: waiting for {path}, which another process is using.", file=sys.stderr)
        _wait_at_most(connection, PATIENCE_SECONDS - SILENCE_SECONDS)
        connection.execute(statement).close()
    finally:
        _wait_at_most(connection, PATIENCE_SECONDS)


def _wait_at_most(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    # The low byte is the kind of error, the rest is detail; errors from decoding text have no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _settle(connection: sqlite3.Connection, path: Path | None) -> None:
    """Choose durability over speed: EXTRA also syncs the folder, so a power cut cannot undo a commit."""
    _execute(connection, "PRAGMA synchronous = EXTRA", path)
    _execute(connection, "PRAGMA trusted_schema = OFF", path)
    _execute(connection, "PRAGMA foreign_keys = ON", path)
    _execute(connection, "SELECT count(*) FROM sqlite_master", path)


def _write_schema(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in _SCHEMA:
        connection.execute(statement).close()


def has_anchors(connection: sqlite3.Connection) -> bool:
    """Return whether a ledger records chains of answered questions."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == WITH_ANCHORS)


def add_anchors(connection: sqlite3.Connection) -> None:
    """Write the tables for chains into a ledger without them; earlier versions then reject the file."""
    if not has_anchors(connection):
        for statement in (*_ANCHORS_SCHEMA, f"PRAGMA user_version = {WITH_ANCHORS}"):
            connection.execute(statement).close()


def _create(path: Path) -> None:
    """Make a ledger in a temporary file and link it into place, so that nobody ever sees half of one.

    When several processes create it at once, one link succeeds and all of them use that file.
    """
    try:
        handle, aside = tempfile.mkstemp(prefix=".ledger-", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise FileError(
            f"{path} cannot be created: {error.strerror}. Choose a folder that can be written."
        ) from error
    try:
        with contextlib.closing(sqlite3.connect(aside, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            _write_schema(connection)
            connection.execute("COMMIT")
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
        _sync_folder(path.parent)
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise FileError(f"{path} cannot be created: {why}. Choose a folder that can be written.") from error
    finally:
        Path(aside).unlink()


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _check_header(path: Path) -> None:
    """Refuse what is not a ledger by its first bytes; SQLite has not seen the file yet."""
    if path.is_fifo():
        # Reading would wait for somebody to write.
        raise FileError(f"{path} is not a ledger and was left as it is.")
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise FileError(f"{path} cannot be read as a ledger: {error.strerror}.") from error
    owner, version = int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0") or owner != APPLICATION:
        raise FileError(f"{path} is not a ledger and was left as it is.")
    # In another journal mode, which we never use, SQLite would wait for locks that nobody holds.
    if header[18:20] != _ROLLBACK_JOURNAL:
        raise FileError(_DAMAGED.format(path=path))
    if version not in (VERSION, WITH_ANCHORS):
        raise FileError(
            f"{path} is a ledger of version {version} and was left as it is. "
            f"This discreet reads {VERSION} and {WITH_ANCHORS}."
        )


def _check_contents(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a ledger whose pages are damaged or whose tables and triggers are not exactly ours."""
    # The index repeats the names of datasets, so a name that changed in only one of them is found here.
    findings = [row[0] for row in connection.execute("PRAGMA integrity_check").fetchall()]
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    expected = (*_SCHEMA, *_ANCHORS_SCHEMA) if has_anchors(connection) else _SCHEMA
    if findings != ["ok"] or {row[0] for row in rows} != set(expected):
        raise FileError(_DAMAGED.format(path=path))


@contextlib.contextmanager
def _one_sentence(path: Path | None) -> Iterator[None]:
    """Turn SQLite's errors into one sentence."""
    where = "The ledger in memory" if path is None else str(path)
    try:
        yield
    except sqlite3.OperationalError as error:
        why = "another process holds it, so nothing was written" if _is_busy(error) else error
        raise FileError(f"{where} cannot be used: {why}.") from error
    except (sqlite3.DatabaseError, ValueError) as error:
        raise FileError(f"{where} is a damaged ledger and was left as it is ({error}).") from error
