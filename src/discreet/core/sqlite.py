"""Open SQLite files: the ledger, the store of reports and the state of a continual release.

Transactions are explicit. A statement that waits for another process prints that it waits.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

#: Seconds that a statement waits for another process, and seconds before it prints that it waits.
PATIENCE_SECONDS = 60.0
SILENCE_SECONDS = 2.0
#: EXTRA also syncs the folder, so a power cut can't undo a commit.
DURABLE = ("synchronous = EXTRA",)


class Header(NamedTuple):
    """The first bytes of a SQLite file: its owner, the owner's version, its journal, its count of writes."""

    owner: int
    version: int
    journal: bytes
    writes: bytes


def header(path: Path) -> Header | None:
    """Return the header of a file, or None if it isn't a SQLite file; SQLite doesn't touch the file.

    Raises:
        OSError: The file can't be read.
    """
    # A pipe without a writer is empty. Nothing waits for a writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.read(handle, 100)
    finally:
        os.close(handle)
    if len(found) < 100 or not found.startswith(b"SQLite format 3\0"):
        return None
    owner, version = int.from_bytes(found[68:72], "big"), int.from_bytes(found[60:64], "big")
    return Header(owner, version, found[18:20], found[24:28])


def connect(
    path: Path | None, mode: str = "rw", settings: Sequence[str] = DURABLE, *, across_threads: bool = False
) -> sqlite3.Connection:
    """Return a connection with these settings to a file, or to a database in memory without a path."""
    where = ":memory:" if path is None else f"file:{quote(str(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(
        where,
        uri=path is not None,
        isolation_level=None,
        timeout=PATIENCE_SECONDS,
        check_same_thread=not across_threads,
    )
    try:
        for setting in (*settings, "trusted_schema = OFF"):
            execute(connection, f"PRAGMA {setting}", path)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, path: Path | None, *, writing: bool) -> Iterator[None]:
    """Provide a transaction: all of it is on the disk when the block ends, or nothing if it raises."""
    execute(connection, "BEGIN IMMEDIATE" if writing else "BEGIN", path)
    try:
        yield
        execute(connection, "COMMIT", path)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def execute(connection: sqlite3.Connection, statement: str, path: Path | None) -> None:
    """Run a statement that may have to wait for another process, and print it if that takes long."""
    try:
        _wait_at_most(connection, SILENCE_SECONDS)
        connection.execute(statement).close()
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        print(f"discreet: waiting for {path}, which another process is using.", file=sys.stderr)
        _wait_at_most(connection, PATIENCE_SECONDS - SILENCE_SECONDS)
        connection.execute(statement).close()
    finally:
        _wait_at_most(connection, PATIENCE_SECONDS)


def _wait_at_most(connection: sqlite3.Connection, seconds: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {1000 * seconds:.0f}")


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Return whether another process used the file for too long."""
    # The low byte is the kind of error, the rest is detail; errors from decoding text have no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
