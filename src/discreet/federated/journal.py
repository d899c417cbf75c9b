"""Store a run's messages in a file that survives a crash at any moment.

A record is on the disk before it is used: a party sends an answer only after it was stored, so after a crash
it repeats the same answer instead of drawing noise again. A record that a crash cut short was never used and
is dropped when the file is read. Only one process at a time may have a file open: two would not know of each
other's answers.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from pathlib import Path
from typing import BinaryIO, final

from discreet.federated.errors import CannotUse, NotAState, StateClosed, StateDamaged, StateInUse
from discreet.federated.wire import (
    MOST_BYTES,
    PREFIX_BYTES,
    Message,
    Refused,
    decode,
    encode,
    is_cut_short,
    message_bytes,
)

_DIGEST_BYTES = 32


@final
class Journal:
    """Append messages and read them back, in memory or in a file that only its owner can read."""

    def __init__(self, path: str | Path | None = None) -> None:
        self._messages: list[Message] = []
        self._usable = True
        self._process = os.getpid()
        self._file = None if path is None else self._open(Path(path))
        if self._file is not None:
            weakref.finalize(self, self._file.close)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return all stored messages, oldest first."""
        return tuple(self._messages)

    def keep(self, message: Message) -> None:
        """Append a message; when this returns it is on the disk."""
        # A fork shares the lock, and the two processes would not know of each other's answers.
        if not self._usable or os.getpid() != self._process:
            raise StateClosed
        if self._file is not None:
            raw = encode(message)
            # After a failed write only reading the file again shows whether the record is in it.
            self._usable = False
            try:
                self._file.write(raw + hashlib.sha256(raw).digest())
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise StateClosed(why=str(error.strerror)) from error
            self._usable = True
        self._messages.append(message)

    def close(self) -> None:
        """Close the file, so that another process can continue with it."""
        self._usable = self._file is None
        if self._file is not None:
            self._file.close()

    def _open(self, path: Path) -> BinaryIO:
        try:
            file = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b")
            if os.name == "posix":
                folder = os.open(path.parent, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
        except OSError as error:
            raise CannotUse(path=path, why=error.strerror) from error
        try:
            _lock(file, path)
            raw = file.read()
            whole = self._read(raw, path)
            if whole < len(raw):
                # The tail was being written when the process died; no one has seen it.
                file.truncate(whole)
                os.fsync(file.fileno())
            file.seek(whole)
        except BaseException:
            file.close()
            raise
        return file

    def _read(self, raw: bytes, path: Path) -> int:
        offset = 0
        while offset < len(raw):
            try:
                size = message_bytes(raw[offset : offset + PREFIX_BYTES], 2 * MOST_BYTES)
                end = offset + size + _DIGEST_BYTES
                if end > len(raw):
                    if not is_cut_short(raw[offset:]):
                        raise StateDamaged(path=path)
                    return offset
                record = raw[offset : offset + size]
                if hashlib.sha256(record).digest() != raw[offset + size : end]:
                    raise StateDamaged(path=path)
                self._messages.append(decode(record, 2 * MOST_BYTES))
            except Refused as error:
                if len(raw) - offset < PREFIX_BYTES:
                    return offset
                raise NotAState(path=path) from error
            offset = end
        return offset


def _lock(file: BinaryIO, path: Path) -> None:
    """Lock the file for this journal while it is open; on POSIX systems only."""
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StateInUse(path=path) from error
    except OSError as error:
        raise CannotUse(path=path, why=error.strerror) from error
