"""Store a run's messages in a file that survives a crash at any moment.

A record is on the disk before it is used: a party sends an answer only after it was stored, so after a crash
it repeats the same answer instead of drawing noise again. A record that a crash cut short was never used and
is dropped when the file is read. Only one process at a time may have a file open: two would not know of each
other's answers.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, final

from discreet.core import sync_folder
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
        #: All stored messages, oldest first.
        self.messages: tuple[Message, ...] = ()
        self._usable = True
        self._process = os.getpid()
        self._path = None if path is None else Path(path)
        self._file = None if self._path is None else self._open(self._path)
        if self._file is not None:
            weakref.finalize(self, self._file.close)

    def keep(self, message: Message) -> None:
        """Append a message; when this returns it is on the disk."""
        with self._writing() as file:
            if file is not None:
                file.write(_record(message))
                file.flush()
                os.fsync(file.fileno())
        self.messages += (message,)

    def replace(self, messages: Sequence[Message]) -> None:
        """Write these messages in place of all stored ones; a crash leaves the former or the latter."""
        with self._writing() as file:
            if file is not None and self._path is not None:
                aside = self._path.with_name(f"{self._path.name}.new")
                # The new file is locked before it gets the name, and the old one until then.
                with ExitStack() as stack:
                    other = stack.enter_context(_opened(aside))
                    other.truncate()
                    other.writelines(map(_record, messages))
                    other.flush()
                    os.fsync(other.fileno())
                    aside.replace(self._path)
                    sync_folder(self._path.parent)
                    stack.pop_all()
                self._file = other
                weakref.finalize(self, other.close)
                file.close()
        self.messages = tuple(messages)

    @contextmanager
    def _writing(self) -> Iterator[BinaryIO | None]:
        """Yield the file, which no one can use after a failure: only reading it shows what is in it."""
        # A fork shares the lock, and the two processes would not know of each other's answers.
        if not self._usable or os.getpid() != self._process:
            raise StateClosed
        self._usable = False
        try:
            yield self._file
        except OSError as error:
            raise StateClosed(why=str(error.strerror)) from error
        self._usable = True

    def close(self) -> None:
        """Close the file, so that another process can continue with it."""
        self._usable = self._file is None
        if self._file is not None:
            self._file.close()

    def _open(self, path: Path) -> BinaryIO:
        file = _opened(path)
        try:
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
                self.messages += (decode(record, 2 * MOST_BYTES),)
            except Refused as error:
                if len(raw) - offset < PREFIX_BYTES:
                    return offset
                raise NotAState(path=path) from error
            offset = end
        return offset


def _record(message: Message) -> bytes:
    raw = encode(message)
    return raw + hashlib.sha256(raw).digest()


def _opened(path: Path) -> BinaryIO:
    """Return a file that is locked while it is open."""
    try:
        file = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b")
    except OSError as error:
        raise CannotUse(path=path, why=error.strerror) from error
    try:
        sync_folder(path.parent)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another process may have replaced the file before this one locked it.
        if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
            raise StateInUse(path=path)
        return file
    except BaseException as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise StateInUse(path=path) from error
        if isinstance(error, OSError):
            raise CannotUse(path=path, why=error.strerror) from error
        raise
