"""Spend, draw, publish: a release into one file that a killed process can repeat without spending twice.

A record next to the output states what is being made. It is on the disk before the budget is spent, and it is
removed after the output is in its place. The output is first written whole next to its place: the draft. The
record then gets the draft's digest, the ledger records that the spending is done, and one rename puts the
draft in its place. The ledger ends each spending once, so of several processes one publishes. If a process is
killed, or Ctrl-C ends it, the same command finds the record:

- Without a digest, nothing was published. The command draws again, with the budget that was already spent.
- With a digest, the command publishes that draft, or finds it in its place. It never draws again.
- With a digest, but no such file: the output was published and moved away. The command spends again.

A different command, or a copy of the record, doesn't use the spending of a killed process (proofs/ledger.md).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, final

from discreet.core import CannotWrite, FileExists, is_locked_elsewhere, name_aside, sqlite
from discreet.core.checks import DiscreetError
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.records import Entry, EntryState

if TYPE_CHECKING:
    from discreet.privacy.ledger.ledger import Ledger


_IS_WRITING = "another process is writing it. No budget was spent"


@final
class PaidRelease:
    """One release into one file, as `releasing` yields it. `draft` is where to write the file first.

    `is_gone` is true if a killed process has published this release, and its output isn't there anymore.
    """

    def __init__(self, output: Path, record: BinaryIO, command: Mapping[str, Any]) -> None:
        self.draft = output.absolute().with_name(f"{name_aside(output)}.draft")
        self.is_gone = False
        self._output, self._record = output.absolute(), record
        self._command = json.loads(json.dumps(command))
        self._paid: tuple[Ledger, Entry] | None = None
        self._is_published = False
        # A line without an end was cut by the kill.
        raw = record.read()
        self._end = raw.rfind(b"\n") + 1
        found = _read(raw[: self._end])
        own = found is not None and (found["command"], found["inode"]) == (self._command, self._inode)
        self._left = self._now = found if own else None

    @property
    def _inode(self) -> int:
        # A copy of a record has another one.
        return os.fstat(self._record.fileno()).st_ino

    @property
    def token(self) -> str:
        """The random name of this release in the ledger, once it has begun."""
        return "" if self._now is None else str(self._now["token"])

    @property
    def has_written(self) -> bool:
        """Return whether the output is in its place."""
        return bool(self._now and self._now["made"]) and not self.draft.exists()

    @property
    def has_begun(self) -> bool:
        """Return whether this process or an earlier one was about to spend."""
        return self._now is not None

    @property
    def continues(self) -> bool:
        """Return whether an earlier process began this release, and this one spends nothing more."""
        return self._now is not None and self._now is self._left

    def held(self, ledger: Ledger) -> list[Entry]:
        """Return the spending for this release, of this process or of an earlier one, unless it failed."""
        if self._now is None:
            return []
        return [
            one
            for one in ledger.entries()
            if one.release == self.token and one.state is not EntryState.FAILED
        ]

    def waiting(self, ledger: Ledger) -> Entry | None:
        """Return the spending of a killed process whose draw only has to be published, or was published."""
        made = self._left["made"] if self._left is not None else []
        is_here = all(digest in (_digest(draft), _digest(place)) for draft, place, digest, _ in made)
        return next(iter(self.held(ledger)), None) if made and is_here else None

    def continued(self, ledger: Ledger, dataset: str, guarantee: Guarantee, what: str) -> Entry | None:
        """Return the spending of a killed process with which this release would draw, if any."""
        if self._left is None or self._left["made"]:
            return None
        for entry in self.held(ledger):
            if (
                entry.state is EntryState.OPEN
                and entry.dataset == dataset
                and entry.what == what
                and entry.guarantee == guarantee
            ):
                return entry
        return None

    def finish(self, ledger: Ledger) -> str | None:
        """Publish what a killed process has drawn. Return the name of its data, or None if there is nothing.

        Raises:
            FileError: A file that wasn't there before is in the output's place.
            BudgetError: Another process has published for the same spending.
        """
        if self._left is None:
            return None
        made, paid = self._left["made"], self.waiting(ledger)
        if paid is not None:
            self._publish(ledger, paid, made)
            return paid.dataset
        for entry in self.held(ledger):
            if not made and entry.state is EntryState.OPEN:
                return None
            self.is_gone = bool(made)
            self._close(ledger, entry, EntryState.DONE)
        # The spending has ended, and its output isn't here: the next release is a new one.
        self._left = self._now = None
        return None

    def interrupted(self, ledger: Ledger, dataset: str, guarantee: Guarantee, what: str) -> Entry | None:
        """Return the spending of a killed process that published nothing, or record that a release begins."""
        # A draft without a digest in the record is of a draw that is made again.
        self.draft.unlink(missing_ok=True)
        entry = self.continued(ledger, dataset, guarantee, what)
        if entry is not None:
            return entry
        content = {"command": self._command, "inode": self._inode, "token": secrets.token_hex(16)}
        # If the process is killed here, nothing was spent, and an incomplete record is ignored.
        self._end = 0
        self._write(content)
        self._now = {**content, "made": []}
        return None

    def drawn(self, ledger: Ledger, entry: Entry) -> None:
        """Note a spending that ends when the output is published."""
        self._paid = ledger, entry

    def publish(self, *beside: tuple[Path, Path]) -> None:
        """Put the draft in its place, after other drafts of the same draw: pairs of a draft and its place.

        Raises:
            BudgetError: Another process has published for the same spending. Nothing was published here.
            FileError: A draft can't be moved. The same command tries again.
        """
        assert self._paid is not None and self._now is not None, "nothing was spent for this release"
        files = (*((one.absolute(), place.absolute()) for one, place in beside), (self.draft, self._output))
        made = [(str(one), str(place), _digest(one), _identity(place)) for one, place in files]
        self._write({"made": made})
        self._now["made"] = made
        self._publish(*self._paid, made)

    def _publish(self, ledger: Ledger, entry: Entry, made: list[Any]) -> None:
        if entry.state is EntryState.OPEN:
            ledger.close(entry, EntryState.DONE)
        self._is_published, self._paid = True, None
        for draft, place, digest, before in made:
            if _digest(draft) != digest:
                continue
            if _identity(place) not in (None, before):
                raise FileExists(path=Path(place))
            try:
                Path(draft).replace(place)
            except OSError as error:
                raise CannotWrite(path=Path(place), why=error.strerror) from error
            sqlite.sync_folder(Path(place).parent)

    def _write(self, line: Mapping[str, Any]) -> None:
        self._record.seek(self._end)
        self._record.truncate()
        self._record.write(json.dumps(line).encode() + b"\n")
        self._end = self._record.tell()
        self._record.flush()
        os.fsync(self._record.fileno())

    def _fail(self) -> None:
        """Record that a release failed that wasn't published."""
        if self._paid is not None:
            self._close(*self._paid, EntryState.FAILED)
        self.draft.unlink(missing_ok=True)

    @staticmethod
    def _close(ledger: Ledger, entry: Entry, state: EntryState) -> None:
        with contextlib.suppress(DiscreetError):
            ledger.close(entry, state)


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
        except KeyboardInterrupt:
            # As after a kill, the draw was not shown. The same command continues with the recorded spending.
            if _is_empty(handle):
                path.unlink(missing_ok=True)
            raise
        except BaseException:
            # A draft whose spending is done stays: the same command puts it in its place. What an earlier
            # process spent isn't lost because this one couldn't read its data.
            if not release._is_published:
                release._fail()
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


def _is_empty(handle: int) -> bool:
    """Return whether nothing was recorded, because nothing was spent yet."""
    return os.fstat(handle).st_size == 0


def _is_at(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one at its path. Another process may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False


def _identity(path: str | Path) -> list[int] | None:
    """Return facts that distinguish the file at a path from a file that replaces it."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return [found.st_ino, found.st_mtime_ns]


def _digest(path: str | Path) -> str | None:
    """Return the digest of a file's content, or None if the file can't be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _read(raw: bytes) -> dict[str, Any] | None:
    """Return the record of a killed process, or None if it isn't a usable record."""
    try:
        first, *more = map(json.loads, raw.splitlines())
        made = [tuple(one) for one in more[-1]["made"]] if more else []
        found = {name: first[name] for name in ("command", "inode", "token")} | {"made": made}
        return found if all(len(one) == 4 for one in made) else None
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
