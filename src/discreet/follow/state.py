"""Keep a continual release in one private file: who entered what when, exact sums, and what was released.

The file is a SQLite database for the owner's eyes only. An `add` is one transaction: what entered, the sums
and the drawn release are on the disk together or not at all, and nothing of a release leaves the process
before that. Arrays are kept as blocks of bytes, so that no rating is handled one by one. Erased rows are
overwritten with zeros in the file; what the file system keeps of its rollback journal is not.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from discreet.core import sqlite
from discreet.follow import errors
from discreet.privacy import locked

# "DSFL" in ASCII, where SQLite keeps a place for the name of the application that owns a file.
APPLICATION, VERSION = 0x4453464C, 3
_TABLES = (
    "CREATE TABLE settings (id INTEGER PRIMARY KEY, content TEXT NOT NULL, secret BLOB NOT NULL)",
    "CREATE TABLE items (id INTEGER PRIMARY KEY, since INTEGER NOT NULL, ids TEXT NOT NULL)",
    "CREATE TABLE users (id INTEGER PRIMARY KEY, ids TEXT NOT NULL)",
    "CREATE TABLE erased (fingerprint BLOB PRIMARY KEY)",
    """CREATE TABLE entries (id INTEGER PRIMARY KEY, release INTEGER NOT NULL, users BLOB NOT NULL,
    items BLOB NOT NULL, weights BLOB NOT NULL, counted BLOB NOT NULL, contributed BLOB NOT NULL)""",
    """CREATE TABLE sums (release INTEGER PRIMARY KEY, counts BLOB NOT NULL, totals BLOB NOT NULL,
    level BLOB NOT NULL)""",
    """CREATE TABLE releases (number INTEGER PRIMARY KEY, time TEXT NOT NULL, simulated INTEGER NOT NULL,
    counts BLOB NOT NULL, totals BLOB NOT NULL, level BLOB NOT NULL)""",
)
# Made when it is first needed: years that began without it go on.
_BATCHES = "CREATE TABLE IF NOT EXISTS batches (name TEXT PRIMARY KEY)"
# Ratings of one row of `entries`, so that a few copies of one fit in memory.
_BLOCK = 1 << 20
# A byte that no text in UTF-8 has, so that no user's fingerprint is that of a release.
_RELEASED = b"\xffrelease\xff"
#: The item at which a user's own mean is.
LEVEL = -1
_COLUMNS = "users, items, weights, counted, contributed"

Whole = npt.NDArray[np.int64]


class Entries(NamedTuple):
    """What entered together: codes of users and items, whole weights, whole counts and rating values.

    A user's own mean is at the item LEVEL.
    """

    users: npt.NDArray[np.int32]
    items: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls,
        users: npt.NDArray[Any],
        items: npt.NDArray[Any],
        weights: npt.NDArray[Any],
        counts: npt.NDArray[Any],
        values: npt.NDArray[Any] | None,
    ) -> Entries:
        """Columns of whole numbers; without values they are zeros."""
        found = (users, items, weights, counts, np.zeros(users.size) if values is None else values)
        return cls(*(column.astype(np.int32) for column in found))

    def joined(self, more: Entries) -> Entries:
        """Return these and more."""
        return Entries(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))

    def where(self, mask: npt.NDArray[np.bool_]) -> Entries:
        """Return those that the mask marks."""
        return Entries(*(column[mask] for column in self))

    @property
    def ratings(self) -> int:
        """Return how many ratings are among them."""
        return int(np.count_nonzero(self.items != LEVEL))


class ItemSums(NamedTuple):
    """One integer per item for counts and for rating values, and two for all users' own means."""

    counts: Whole
    values: Whole
    level: Whole

    def padded(self, n_items: int) -> ItemSums:
        """Return the same with zeros for items that came later."""
        return ItemSums(_padded(self.counts, n_items), _padded(self.values, n_items), self.level)

    def plus(self, other: ItemSums, sign: int = 1) -> ItemSums:
        """Return these sums and others, or without them."""
        return ItemSums(*(one + sign * more for one, more in zip(self, other, strict=True)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release as it was drawn; all of it is public."""

    number: int
    time: str
    simulated: bool
    drawn: ItemSums


@final
class State:
    """Read and write the rows of one followed year inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, mark: bytes = b"") -> None:
        self._connection, self.mark = connection, mark

    def settings(self) -> tuple[dict[str, Any], bytes]:
        """Return the public settings, and the secret behind fingerprints."""
        ((content, secret),) = self._rows("SELECT content, secret FROM settings")
        return json.loads(content), secret

    def found(self, content: dict[str, Any]) -> None:
        """Write the settings of a new year."""
        self._run("INSERT INTO settings VALUES (0, ?, ?)", json.dumps(content), os.urandom(32))

    def remember(self, **more: Any) -> None:
        """Add to the public settings: how files are read, where the model is, and what sources assume."""
        content, _ = self.settings()
        self._run("UPDATE settings SET content = ?", json.dumps(content | more))

    def item_ids(self) -> list[tuple[int, list[Any]]]:
        """Return the declared items: before which release, and their ids."""
        return [
            (since, json.loads(ids)) for since, ids in self._rows("SELECT since, ids FROM items ORDER BY id")
        ]

    def declare(self, since: int, ids: list[Any]) -> None:
        """Append items."""
        self._run("INSERT INTO items (since, ids) VALUES (?, ?)", since, json.dumps(ids))

    def user_ids(self) -> list[str | None]:
        """Return every user's id in the order of their codes; None for those who were erased."""
        return [one for (ids,) in self._rows("SELECT ids FROM users ORDER BY id") for one in json.loads(ids)]

    def add_users(self, ids: list[str]) -> None:
        """Append users."""
        self._run("INSERT INTO users (ids) VALUES (?)", json.dumps(ids))

    def batch_known(self, name: str) -> bool:
        """Return whether a batch of this public name was added; years that began earlier know none."""
        self._run(_BATCHES)
        return bool(self._rows("SELECT 1 FROM batches WHERE name = ?", name))

    def keep_batch(self, name: str) -> None:
        """Remember the public name of a batch; one that is added again keeps its place."""
        self._run("INSERT OR IGNORE INTO batches VALUES (?)", name)

    def fingerprints(self) -> set[bytes]:
        """Return what is left of erased users: enough to know them again, if they come back."""
        return {fingerprint for (fingerprint,) in self._rows("SELECT fingerprint FROM erased")}

    def entries(self) -> Iterator[tuple[int, Entries]]:
        """Yield what entered, block by block, with its release."""
        for release, *blobs in self._connection.execute(
            f"SELECT release, {_COLUMNS} FROM entries ORDER BY id"
        ):
            yield release, Entries(*(np.frombuffer(blob, dtype=np.int32) for blob in blobs))

    def enter(self, release: int, entered: Entries) -> None:
        """Append what entered at a release."""
        for start in range(0, entered.users.size, _BLOCK):
            block = [_bytes(column[start : start + _BLOCK]) for column in entered]
            self._run(
                f"INSERT INTO entries (release, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
                release,
                *block,
            )

    def add_sums(self, release: int, sums: ItemSums) -> None:
        """Append the exact sums of what entered at a release."""
        self._run("INSERT INTO sums VALUES (?, ?, ?, ?)", release, *(_bytes(part) for part in sums))

    def sums(self, n_items: int) -> list[ItemSums]:
        """Return the exact sums of every release so far; items that came later have zeros."""
        rows = self._rows("SELECT counts, totals, level FROM sums ORDER BY release")
        return [_sums(row).padded(n_items) for row in rows]

    def publish(self, release: Release) -> None:
        """Append a release as it was drawn."""
        self._run(
            "INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?)",
            release.number,
            release.time,
            int(release.simulated),
            *(_bytes(part) for part in release.drawn),
        )

    def made(self) -> int:
        """Return how many releases were drawn."""
        ((count,),) = self._rows("SELECT count(*) FROM releases")
        return int(count)

    def events(self, secret: bytes) -> list[bytes]:
        """Return what each release adds to the chain of answered questions: a keyed hash of its numbers.

        A share of noise hides little by itself, and the chain is known to others.
        """
        rows = self._rows("SELECT number, simulated, counts, totals, level FROM releases ORDER BY number")
        found = []
        for number, simulated, *blobs in rows:
            state = hmac.new(secret, _RELEASED + f"{number} {simulated}".encode(), hashlib.sha256)
            for blob in blobs:
                state.update(len(blob).to_bytes(8, "little") + blob)
            found.append(state.digest())
        return found

    def releases(self, n_items: int) -> list[Release]:
        """Return what was released so far, oldest first; items that came later have zeros, and no noise."""
        columns = "number, time, simulated, counts, totals, level"
        rows = self._rows(f"SELECT {columns} FROM releases ORDER BY number")
        return [
            Release(
                number=number,
                time=time,
                simulated=bool(simulated),
                drawn=_sums(drawn).padded(n_items),
            )
            for number, time, simulated, *drawn in rows
        ]

    def erase(self, code: int, fingerprint: bytes) -> int:
        """Take a user out of everything that is still to be released; return how many ratings that were."""
        taken = 0
        for key, release, *blobs in self._rows(f"SELECT id, release, {_COLUMNS} FROM entries ORDER BY id"):
            block = Entries(*(np.frombuffer(blob, dtype=np.int32) for blob in blobs))
            own = block.users == code
            if own.any():
                taken += block.where(own).ratings
                kept = [_bytes(column) for column in block.where(~own)]
                self._run(
                    f"UPDATE entries SET ({_COLUMNS}) = (?, ?, ?, ?, ?) WHERE id = ?",
                    *kept,
                    key,
                )
                self._subtract(release, block.where(own))
        self._forget(code)
        self._run("INSERT OR IGNORE INTO erased VALUES (?)", fingerprint)
        return taken

    def _subtract(self, release: int, gone: Entries) -> None:
        (row,) = self._rows("SELECT counts, totals, level FROM sums WHERE release = ?", release)
        before = _sums(row)
        after = before.plus(summed(gone, before.counts.size), sign=-1)
        self._run(
            "UPDATE sums SET (counts, totals, level) = (?, ?, ?) WHERE release = ?",
            *(_bytes(part) for part in after),
            release,
        )

    def _forget(self, code: int) -> None:
        start = 0
        for key, text in self._rows("SELECT id, ids FROM users ORDER BY id"):
            ids = json.loads(text)
            if start <= code < start + len(ids):
                ids[code - start] = None
                self._run("UPDATE users SET ids = ? WHERE id = ?", json.dumps(ids), key)
            start += len(ids)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._connection.execute(query, values).fetchall()

    def _run(self, statement: str, *values: Any) -> None:
        self._connection.execute(statement, values).close()


def summed(entered: Entries | None, n_items: int) -> ItemSums:
    """Return the exact sums of contributions: floats hold whole numbers below 2^53 as they are.

    A contribution is at most 2^22, so 2^31 ratings of one item stay below 2^53.
    """
    if entered is None:
        return ItemSums(*(np.zeros(size, dtype=np.int64) for size in (n_items, n_items, 2)))
    level, pairs = entered.where(entered.items == LEVEL), entered.where(entered.items != LEVEL)
    return ItemSums(
        np.bincount(pairs.items, weights=pairs.counts, minlength=n_items).astype(np.int64),
        np.bincount(pairs.items, weights=pairs.values, minlength=n_items).astype(np.int64),
        np.array([column.sum(dtype=np.int64) for column in (level.counts, level.values)]),
    )


@contextlib.contextmanager
def opened(path: Path, *, writing: bool) -> Iterator[State]:
    """Lend the state of a year; what was written is on the disk when the block ends, or nothing is."""
    if not path.exists():
        raise errors.NoState(path=path)
    with locked(path, alone=writing), _one_sentence(path):
        # Not while a connection is open: to close the file a second time would let go of SQLite's locks.
        mark = _check_header(path)
        with (
            contextlib.closing(_connect(path)) as connection,
            sqlite.transaction(connection, path, writing=writing),
        ):
            state = State(connection, mark)
            yield state
        if writing:
            state.mark = written_mark(path)


@final
class Draft:
    """The state of a year that is not spent yet, next to the place where it will be."""

    def __init__(self, path: Path, aside: Path) -> None:
        self._path, self._aside = path, aside

    def content(self) -> tuple[dict[str, Any], list[Any]] | None:
        """Return settings and items that an interrupted start has left, if it came so far."""
        if not is_state(self._aside):
            return None
        try:
            with contextlib.closing(_connect(self._aside)) as connection:
                state = State(connection)
                return state.settings()[0], [one for _, ids in state.item_ids() for one in ids]
        except (sqlite3.Error, ValueError):
            return None

    def write(self, content: dict[str, Any], items: list[Any]) -> None:
        """Write settings and items; they are on the disk when this returns."""
        os.truncate(self._aside, 0)
        self._aside.with_name(f"{self._aside.name}-journal").unlink(missing_ok=True)
        with (
            contextlib.closing(_connect(self._aside)) as connection,
            sqlite.transaction(connection, self._aside, writing=True),
        ):
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in _TABLES:
                connection.execute(statement)
            state = State(connection)
            state.found(content)
            state.declare(0, items)

    def publish(self) -> None:
        """Put the state in its place, never over another file."""
        try:
            os.link(self._aside, self._path)
        except FileExistsError:
            raise errors.StateTaken(path=self._path) from None
        sqlite.sync_folder(self._path.absolute().parent)


def draft_path(path: Path) -> Path:
    """Return where the draft of a state is."""
    return path.with_name(f".follow-{path.name}")


@contextlib.contextmanager
def drafted(path: Path) -> Iterator[Draft]:
    """Lend the draft of a new year to one process at a time; only a process that dies leaves it behind."""
    aside = draft_path(path)
    with _one_sentence(path):
        handle = os.open(aside, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            if not _is_alone(handle, aside):
                raise errors.StateBeingStarted(path=path)
            try:
                yield Draft(path, aside)
            finally:
                for name in (aside.name, f"{aside.name}-journal"):
                    aside.with_name(name).unlink(missing_ok=True)
        finally:
            os.close(handle)


def _is_alone(handle: int, aside: Path) -> bool:
    """Lock an open file; return whether no one else has it, and whether it is still the one at its path."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), aside.lstat())
    except OSError:
        return False


def is_state(path: Path) -> bool:
    """Return whether a file is the state of a continual release, by its first bytes."""
    found = _header(path)
    return found is not None and found.owner == APPLICATION


def _header(path: Path) -> sqlite.Header | None:
    try:
        return sqlite.header(path)
    except OSError:
        return None


def written_mark(path: Path, header: sqlite.Header | None = None) -> bytes:
    """Return what every write to a state changes: which file it is, and SQLite's own count of transactions.

    It is empty if no one can know: a journal is there, so a process died or writes now. A caller that has
    just read the header passes it.
    """
    header = header or _header(path)
    if header is None or path.with_name(f"{path.name}-journal").exists():
        return b""
    found = path.stat()
    return header.writes + f"{found.st_ino} {found.st_size} {found.st_mtime_ns}".encode()


def _connect(path: Path) -> sqlite3.Connection:
    # Erased bytes are overwritten.
    return sqlite.connect(path, settings=(*sqlite.DURABLE, "secure_delete = ON"))


def _check_header(path: Path) -> bytes:
    """Raise unless a file is a state that this version reads; return its mark."""
    found = _header(path)
    if found is None or found.owner != APPLICATION:
        raise errors.NotAReleaseState(path=path)
    if found.version != VERSION:
        raise errors.OtherStateVersion(path=path, found=found.version, read=VERSION)
    return written_mark(path, found)


@contextlib.contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise errors.StateUnusable(path=path, why=str(error)) from error
    except sqlite3.IntegrityError as error:
        raise errors.DrawnBefore(what="This release") from error
    except sqlite3.DatabaseError as error:
        raise errors.StateUnusable(path=path, why="it is damaged") from error


def _bytes(column: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(column).tobytes()


def _sums(row: Sequence[bytes]) -> ItemSums:
    return ItemSums(*(np.frombuffer(blob, dtype=np.int64) for blob in row))


def _padded(kept: Whole, size: int) -> Whole:
    numbers = np.zeros(size, dtype=np.int64)
    numbers[: kept.size] = kept
    return numbers
