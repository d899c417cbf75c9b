"""Spend, draw, publish: a release into one file that a killed process can repeat without spending twice.

A record next to the output states what is being made. It is on the disk before the budget is spent, and it is
removed after the output is in its place. If a process is killed in between, the same command finds the
record. Ctrl-C also keeps the record:

- The output is in its place: the command only records that it is done.
- The output isn't in its place: the first draw was never published. The command draws again, with the budget
  that was already spent.

The output is put in its place by one rename, so the file at its path is either the old file or the new
file. A different command, or the same command with other settings, doesn't use the spending of a killed one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, final

from discreet.core import CannotWrite, is_locked_elsewhere, name_aside
from discreet.core.checks import DiscreetError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.records import Entry, EntryState

if TYPE_CHECKING:
    from discreet.privacy.ledger.ledger import Ledger


_IS_WRITING = "another process is writing it. No budget was spent"


@final
class PaidRelease:
    """One release into one file, as `releasing` yields it.

    `is_published` is true if an earlier process with the same command was killed after it put the output in
    its place. Nothing is left to do then.
    """

    def __init__(self, output: Path, record: BinaryIO, command: Mapping[str, Any]) -> None:
        self._record = record
        self._command = json.loads(json.dumps(command))
        self._before = _identity(output)
        self._paid: tuple[Ledger, Entry] | None = None
        left = _read(record)
        self._left = left if left is not None and left["command"] == self._command else None
        self.is_published = self._left is not None and self._left["before"] != self._before
        self._output = output
        self._now = self._left

    @property
    def has_written(self) -> bool:
        """Return whether the output is in its place."""
        return self.is_published or _identity(self._output) != self._before

    @property
    def has_begun(self) -> bool:
        """Return whether this process or an earlier one was about to spend."""
        return self._now is not None

    @property
    def continues(self) -> bool:
        """Return whether an earlier process began this release, and this one spends nothing more."""
        return self._now is not None and self._now is self._left

    def held(self, ledger: Ledger) -> list[Entry]:
        """Return the open spending for this release, of this process or of an earlier one."""
        return [one for one in _of(self._now, ledger) if one.state is EntryState.OPEN]

    def left(self, ledger: Ledger) -> list[Entry]:
        """Return what an earlier process has spent for this release, also if it is done."""
        return _of(self._left, ledger)

    def continued(self, ledger: Ledger, dataset: str, guarantee: Guarantee, what: str) -> Entry | None:
        """Return the spending of a killed process that this release would continue, if any."""
        for entry in self.left(ledger):
            if (
                entry.state is EntryState.OPEN
                and entry.dataset == dataset
                and entry.what == what
                and entry.guarantee == guarantee
            ):
                return entry
        return None

    def interrupted(self, ledger: Ledger, dataset: str, guarantee: Guarantee, what: str) -> Entry | None:
        """Return the spending of a killed process for this release, or record that a new release begins."""
        entry = self.continued(ledger, dataset, guarantee, what)
        if entry is not None:
            return entry
        content: dict[str, Any] = {
            "command": self._command,
            "before": self._before,
            "process": os.getpid(),
            "began": datetime.now(UTC).isoformat(),
        }
        # If the process is killed here, nothing was spent, and an incomplete record is ignored.
        self._record.seek(0)
        self._record.truncate()
        self._record.write(json.dumps(content).encode())
        self._record.flush()
        os.fsync(self._record.fileno())
        self._now = content
        return None

    def drawn(self, ledger: Ledger, entry: Entry) -> None:
        """Note a spending that is done as soon as the output is in its place."""
        self._paid = ledger, entry

    def finish(self, ledger: Ledger) -> str:
        """Record that the release of a killed process is done. Return the name of its data."""
        name = ""
        for entry in self.left(ledger):
            name = entry.dataset
            if entry.state is EntryState.OPEN:
                ledger.close(entry, EntryState.DONE)
        return name

    def _close(self, state: EntryState) -> None:
        if self._paid is not None:
            with contextlib.suppress(DiscreetError):
                self._paid[0].close(self._paid[1], state)


@contextlib.contextmanager
def releasing(output: Path, command: Mapping[str, Any]) -> Iterator[PaidRelease]:
    """Yield the release into a file to one process at a time.

    Only a killed process, or a process that Ctrl-C ended, keeps a record.

    Parameters:
        command: Values that identify the release. A killed process is continued only with the same values.

    Raises:
        FileError: Another process makes the same output now, or the folder can't be written.
    """
    path = _record_of(output)
    if not path.parent.is_dir():
        raise CannotWrite(path=output, why="its folder does not exist")
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise CannotWrite(path=output, why=error.strerror) from error
    with os.fdopen(handle, "r+b") as record:
        if is_locked_elsewhere(handle) or not _is_at(handle, path):
            raise CannotWrite(path=output, why=_IS_WRITING)
        release = PaidRelease(output, record, command)
        try:
            yield release
            release._close(EntryState.DONE)
        except KeyboardInterrupt:
            # As after a kill, the draw was not shown. The same command continues with the recorded spending.
            if _is_empty(handle):
                path.unlink(missing_ok=True)
            raise
        except BaseException:
            release._close(EntryState.FAILED)
            # What an earlier process spent isn't lost because this one couldn't read its data.
            if not release.continues:
                path.unlink(missing_ok=True)
            raise
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def foreseen(output: Path, command: Mapping[str, Any]) -> Iterator[PaidRelease | None]:
    """Yield the release that `releasing` would continue, or None. Nothing is written.

    Raises:
        FileError: Another process makes the same output now.
    """
    with contextlib.ExitStack() as stack:
        try:
            record = stack.enter_context(_record_of(output).open("rb"))
        except OSError:
            yield None
            return
        if is_locked_elsewhere(record.fileno()):
            raise CannotWrite(path=output, why=_IS_WRITING)
        yield PaidRelease(output, record, command)


def _record_of(output: Path) -> Path:
    return output.absolute().parent / f"{name_aside(output)}.json"


def _of(record: Mapping[str, Any] | None, ledger: Ledger) -> list[Entry]:
    """Return what the process of a record has spent since the record began."""
    if record is None:
        return []
    began, process = datetime.fromisoformat(record["began"]), record["process"]
    return [one for one in ledger.entries() if one.process == process and one.time >= began]


def _is_empty(handle: int) -> bool:
    """Return whether nothing was recorded, because nothing was spent yet."""
    return os.fstat(handle).st_size == 0


def _is_at(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one at its path. Another process may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def _identity(path: Path) -> list[int] | None:
    """Return facts that distinguish the file at a path from a file that replaces it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_dev, found.st_ino]


def _read(record: BinaryIO) -> dict[str, Any] | None:
    """Return the record of a killed process, or None if there isn't a usable record."""
    try:
        found = json.loads(record.read())
        known = {"command", "before", "process", "began"} <= found.keys()
        datetime.fromisoformat(found["began"])
    except (OSError, ValueError, TypeError, AttributeError, KeyError):
        return None
    return found if known else None
