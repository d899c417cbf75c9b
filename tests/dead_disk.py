"""A disk that stops taking anything at the n-th call that writes, as a killed process leaves it.

From that call on nothing under the folder is changed: every call that would write raises `Killed`. What the
process still does while it unwinds has no effect, so the folder is as after kill -9.
"""

import contextlib
import os
import sqlite3
import sys
from pathlib import Path


class Killed(BaseException):
    """The end of a process."""


class _Disk:
    folder, count, dies_at = None, 0, 0

    def writes(self, *paths):
        """Count a call that writes to one of these paths; raise if the disk is dead."""
        if self.folder is None or not any(self._is_inside(path) for path in paths):
            return
        self.count += 1
        if self.dies_at and self.count >= self.dies_at:
            raise Killed

    def _is_inside(self, path):
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        return str(Path(os.fsdecode(path)).absolute()).startswith(self.folder)


_DISK = _Disk()
_OF_PATHS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate")
_READS = ("SELECT", "PRAGMA", "ROLLBACK")


def _heard(event, given):
    if _DISK.folder is None:
        return
    if event == "open":
        path, _, flags = given
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            _DISK.writes(path)
    elif event in _OF_PATHS:
        _DISK.writes(*given[:2])


class _Connection(sqlite3.Connection):
    where = ""

    def execute(self, statement, *given):
        if not statement.lstrip().upper().startswith(_READS):
            _DISK.writes(self.where)
        return super().execute(statement, *given)

    def executemany(self, statement, *given):
        _DISK.writes(self.where)
        return super().executemany(statement, *given)

    def executescript(self, script):
        _DISK.writes(self.where)
        return super().executescript(script)


@contextlib.contextmanager
def dying(folder, at):
    """Let the disk die at the call with this number (never, if 0); yield what counts the calls."""
    if not hasattr(_DISK, "hooked"):
        # A hook can't be removed; outside of this block it looks away.
        sys.addaudithook(_heard)
        _DISK.hooked = True
    connect = sqlite3.connect

    def counting(database, *given, **options):
        made = connect(database, *given, factory=_Connection, **options)
        made.where = str(database).removeprefix("file:").partition("?")[0]
        return made

    _DISK.folder, _DISK.count, _DISK.dies_at = str(folder), 0, at
    sqlite3.connect = counting
    try:
        yield _DISK
    finally:
        _DISK.folder, sqlite3.connect = None, connect
