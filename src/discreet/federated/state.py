"""Keep a run's messages in a file that survives a crash at any moment.

A record is on the disk before it is used: a party sends an answer only after it was kept, so after a crash it
repeats the same answer instead of drawing noise again. A record that a crash cut short was never used and is
dropped when the file is read.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import final

from discreet.checks import FileError
from discreet.federated.wire import MOST_BYTES, PREFIX_BYTES, Message, Refused, decode, encode, message_bytes

_DIGEST_BYTES = 32


@final
class Journal:
    """Append messages and read them back, in memory or in a file for the owner's eyes only."""

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._messages: list[Message] = []
        if self._path is not None:
            self._open(self._path)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return everything that was kept, oldest first."""
        return tuple(self._messages)

    def keep(self, message: Message) -> None:
        """Append a message; when this returns it is on the disk."""
        if self._path is not None:
            raw = encode(message)
            with self._path.open("ab") as file:
                file.write(raw + hashlib.sha256(raw).digest())
                file.flush()
                os.fsync(file.fileno())
        self._messages.append(message)

    def _open(self, path: Path) -> None:
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            os.close(handle)
            if os.name == "posix":
                folder = os.open(path.parent, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
            raw = path.read_bytes()
        except OSError as error:
            raise FileError(f"{path} cannot be used for the state of a run: {error.strerror}.") from error
        whole = self._read(raw, path)
        if whole < len(raw):
            # The tail was being written when the process died; nobody has seen it.
            with path.open("r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())

    def _read(self, raw: bytes, path: Path) -> int:
        place = 0
        while place < len(raw):
            try:
                size = message_bytes(raw[place : place + PREFIX_BYTES], 2 * MOST_BYTES)
                end = place + size + _DIGEST_BYTES
                if end > len(raw):
                    return place
                record = raw[place : place + size]
                if hashlib.sha256(record).digest() != raw[place + size : end]:
                    raise FileError(f"{path} is damaged and was left as it is. Restore it from a backup.")
                self._messages.append(decode(record, 2 * MOST_BYTES))
            except Refused as error:
                if len(raw) - place < PREFIX_BYTES:
                    return place
                raise FileError(f"{path} is not the state of a run and was left as it is.") from error
            place = end
        return place
