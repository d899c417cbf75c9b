"""Lock a ledger between its users by a lock that belongs to an open file, in addition to SQLite's own.

SQLite's locks belong to a process: any thread that opens and closes the ledger, for example for a backup,
drops them all. Then others could write at the same time, or roll an unfinished write back. This lock is on a
separate file and ends only when its process releases it or dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from discreet.core import PATIENCE_SECONDS, SILENCE_SECONDS
from discreet.privacy.errors import LedgerInUse, LedgerUnlockable

SUFFIX = ".lock"
# Seconds between two attempts. A process uses a ledger for milliseconds.
_PAUSE_SECONDS = 0.002


@contextlib.contextmanager
def locked(ledger: Path, *, alone: bool) -> Iterator[None]:
    """Lock a ledger, `alone` to write, or shared with other readers. Give up after a timeout.

    Readers create no lock file. If no process ever wrote with a lock, a reader doesn't need one.
    """
    path = ledger.with_name(ledger.name + SUFFIX)
    if not (alone or path.exists()):
        yield
        return
    handle = _acquire(path, ledger, alone)
    try:
        yield
    finally:
        os.close(handle)


def _acquire(path: Path, ledger: Path, alone: bool) -> int:
    start, announced = time.monotonic(), False
    while True:
        handle = _open(path, alone)
        if _is_locked(handle, alone) and _is_at(path, handle):
            return handle
        os.close(handle)
        waited = time.monotonic() - start
        if waited > PATIENCE_SECONDS:
            raise LedgerInUse(path=ledger)
        if waited > SILENCE_SECONDS and not announced:
            print(f"discreet: waiting for {ledger}, which another process is using.", file=sys.stderr)
            announced = True
        time.sleep(_PAUSE_SECONDS)


def _open(path: Path, alone: bool) -> int:
    how = os.O_CREAT | os.O_RDWR if alone else os.O_RDONLY
    try:
        return os.open(path, how | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise LedgerUnlockable(path=path, reason=str(error.strerror)) from error


def _is_locked(handle: int, alone: bool) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        os.close(handle)
        raise LedgerUnlockable(path="The ledger", reason=str(error.strerror)) from error
    return True


def _is_at(path: Path, handle: int) -> bool:
    """Return whether the path still names this open file. Another process may have removed it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False
