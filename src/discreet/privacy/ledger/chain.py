"""A hash chain of a party's events in a run, and its latest place, which the ledger records.

A party that answers questions stores what it drew and sent. If its files are replaced by an older copy, it
would draw again what it already sent. So everything that it stores extends a hash chain, and the chain's
latest place is recorded elsewhere before anything is sent. If a party's own chain doesn't contain a recorded
place, the party's state is older than that record (proofs/rollback.md).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple, final

from discreet.privacy.errors import OlderCopy

_START = hashlib.sha256(b"discreet: chain of answered questions\0").hexdigest()[:32]


class Anchor(NamedTuple):
    """A place in a chain: how many events it has, and the hash of all of them."""

    events: int = 0
    head: str = _START

    def __str__(self) -> str:
        return f"{self.events}:{self.head}"

    @classmethod
    def parse(cls, text: object) -> Anchor:
        """Return the place that `str` wrote, or raise `ValueError`."""
        count, _, head = str(text).partition(":")
        if not count.isdecimal() or len(count) > 18 or len(head) != len(_START):
            raise ValueError("not a place in a chain")
        return cls(int(count), head)


def event_digest(event: bytes) -> bytes:
    """Return what a chain hashes of an event."""
    return hashlib.sha256(event).digest()


@final
class Chain:
    """A chain of events, each of which is hashed with everything before it.

    Example:
        >>> chain = Chain([b"first", b"second"])
        >>> earlier = Chain([b"first"]).latest
        >>> chain.latest.events, chain.contains(earlier), Chain([b"other"]).contains(earlier)
        (2, True, False)
    """

    def __init__(self, events: Iterable[bytes] = ()) -> None:
        self._heads = [_START]
        for event in events:
            self.add(event)

    def add(self, event: bytes) -> None:
        """Append an event."""
        self.add_digest(event_digest(event))

    def add_digest(self, digest: bytes) -> None:
        """Append an event of which the digest alone is known."""
        self._heads.append(self._after(digest).head)

    def after(self, event: bytes) -> Anchor:
        """Return the place that an event would lead to."""
        return self._after(event_digest(event))

    def _after(self, digest: bytes) -> Anchor:
        head = hashlib.sha256(bytes.fromhex(self._heads[-1]) + digest).hexdigest()[:32]
        return Anchor(len(self._heads), head)

    @property
    def latest(self) -> Anchor:
        """Return the place after the latest event."""
        return self.place(len(self._heads) - 1)

    def place(self, count: int) -> Anchor:
        """Return the place after this many events."""
        return Anchor(count, self._heads[count])

    def contains(self, anchor: Anchor) -> bool:
        """Return whether this chain went through a place."""
        return anchor.events < len(self._heads) and self._heads[anchor.events] == anchor.head


#: Tables that a ledger gets when a chain is first recorded in it.
ANCHORS = (
    """CREATE TABLE anchors (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, chain TEXT NOT NULL, events INTEGER NOT NULL,
    head TEXT NOT NULL)""",
    "CREATE INDEX anchors_by_chain ON anchors(chain)",
)


def latest_anchor(connection: sqlite3.Connection, chain: str) -> Anchor:
    """Return the latest recorded place of a chain, or its start if none is recorded."""
    rows = connection.execute(
        "SELECT events, head FROM anchors WHERE chain = ? ORDER BY id DESC LIMIT 1", (chain,)
    ).fetchall()
    return Anchor(*rows[0]) if rows else Anchor()


def record_place(connection: sqlite3.Connection, name: str, chain: Chain) -> None:
    """Record the latest place of a chain. Raise `OlderCopy` unless the chain contains the recorded place."""
    known = latest_anchor(connection, name)
    if not chain.contains(known):
        raise OlderCopy(chain=name, known=known.events, here=chain.latest.events)
    if known != chain.latest:
        connection.execute(
            "INSERT INTO anchors (time, chain, events, head) VALUES (?, ?, ?, ?)",
            (datetime.now(UTC).isoformat(), name, *chain.latest),
        )
