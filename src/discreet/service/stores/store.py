"""Define a store: one campaign, its reports, its invitations, and whether more reports are taken.

Queries are written once, as PostgreSQL reads them: `%s` is a value, and tables have names with `discreet_`.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

from discreet.collect.campaign import Campaign, pack
from discreet.collect.errors import ClosedMeanwhile, EmptyRound, NoRounds, RoundsOver
from discreet.collect.gradient_rounds import GradientCampaign, read_answer
from discreet.collect.opening import AnyCampaign, campaign_from_bytes
from discreet.collect.wire import ReportRefusal
from discreet.service.admission import Receipt, Submission, admit
from discreet.service.errors import EmptyStore, StoreOfAnother, TooManyInvitations

#: How many senders a store takes unless its operator says otherwise: a refit holds all of their reports.
MOST_SENDERS = 1 << 20
CAMPAIGN, CLOSED, SENDERS, ROUND = "campaign", "closed", "senders", "round"
#: How many invitations a store holds, used or not.
MOST_INVITATIONS = 1 << 20
# What is kept of an unused invitation.
_UNUSED = b""
_FACT = "SELECT value FROM discreet_facts WHERE name = %s"
_INVITATION = "SELECT request FROM discreet_invitations WHERE name = %s"


class Counts(NamedTuple):
    """The number of reports and senders in a store."""

    senders: int
    reports: int


class StoredReport(NamedTuple):
    """A row: a sender, the number of an item, and a code."""

    sender: bytes
    item: int
    code: int


class ReportStore(ABC):
    """Keep the reports of one campaign. `take` returns after its transaction is on disk.

    A store knows senders, items and codes: no address and no time. What comes together is written in the
    order of senders, and `rewrite` puts all into that order: until then files show which batch came when.
    """

    campaign: AnyCampaign
    most_senders: int = MOST_SENDERS

    @final
    def take(self, batch: Sequence[Submission]) -> list[Receipt]:
        """Keep what is new of several submissions in one transaction; return what became of each."""
        senders = list({one.sender for one in batch})
        with self._transaction() as transaction:
            if transaction.value(CLOSED) is not None:
                return [Receipt(closed=True) for _ in batch]
            # Counted in the database: other services may write to it as well.
            before = int(transaction.value(SENDERS) or b"0")
            # An answer to a round has a number of its own, which no other round knows.
            rounds = self.campaign.rounds if isinstance(self.campaign, GradientCampaign) else 1
            room = self.most_senders * rounds - before
            if isinstance(self.campaign, Campaign):
                receipts, added = self._take_reports(batch, transaction, senders, room)
            else:
                receipts, added = self._take_messages(batch, transaction, senders, room)
            if added:
                transaction.put(SENDERS, str(before + added).encode())
        return receipts

    def _take_reports(
        self, batch: Sequence[Submission], transaction: Transaction, senders: list[bytes], room: int
    ) -> tuple[list[Receipt], int]:
        assert isinstance(self.campaign, Campaign)
        known: dict[bytes, dict[int, int]] = {}
        for sender, item, code in transaction.rows_of("reports", senders):
            known.setdefault(sender, {})[item] = code
        rows: list[StoredReport] = []
        receipts, added = [], 0
        for one in batch:
            newcomer = one.sender not in known
            if newcomer and one.pairs and added >= room:
                receipt = Receipt(refused=one.refused.copy())
                receipt.refused[ReportRefusal.TOO_MANY_SENDERS] += len(one.pairs)
                receipts.append(receipt)
                continue
            new, receipt = admit(known.setdefault(one.sender, {}), one.pairs, self.campaign.max_reports)
            receipt.refused += one.refused
            added += newcomer and bool(new)
            rows += (StoredReport(one.sender, item, code) for item, code in new)
            receipts.append(receipt)
        transaction.add("reports", sorted(rows))
        return receipts, added

    def _take_messages(
        self, batch: Sequence[Submission], transaction: Transaction, senders: list[bytes], room: int
    ) -> tuple[list[Receipt], int]:
        known: dict[bytes, bytes] = dict(transaction.rows_of("messages", senders))
        rows: list[tuple[bytes, bytes]] = []
        receipts = []
        for one in batch:
            assert one.body is not None
            receipt = Receipt()
            if known.get(one.sender) == one.body:
                receipt.repeated = 1
            elif one.sender in known:
                receipt.refused[ReportRefusal.REPLAYED] += 1
            elif not self._is_asked(one.body, transaction):
                receipt.refused[ReportRefusal.WRONG_ROUND] += 1
            elif len(rows) >= room:
                receipt.refused[ReportRefusal.TOO_MANY_SENDERS] += 1
            else:
                known[one.sender] = one.body
                rows.append((one.sender, one.body))
                receipt.kept = 1
            receipts.append(receipt)
        transaction.add("messages", sorted(rows))
        return receipts, len(rows)

    def _is_asked(self, body: bytes, transaction: Transaction) -> bool:
        """Return whether a message answers what is asked now: a round that is closed takes no answers."""
        if not isinstance(self.campaign, GradientCampaign):
            return True
        return read_answer(self.campaign, body).round == int(transaction.value(ROUND) or b"0")

    @final
    @property
    def round(self) -> int:
        """Return the number of the open round; as many as the campaign has after the last one."""
        return int(self._fact(ROUND) or b"0")

    @final
    def close_round(self) -> int:
        """Close the open round, so that the next one begins; return how many devices answered it."""
        campaign, number = self.campaign, self.round
        if not isinstance(campaign, GradientCampaign):
            raise NoRounds
        if number >= campaign.rounds:
            raise RoundsOver(rounds=campaign.rounds)
        answers = sum(read_answer(campaign, body).round == number for _, body in self.messages())
        if not answers:
            raise EmptyRound(number=number)
        with self._transaction() as transaction:
            if int(transaction.value(ROUND) or b"0") != number:
                raise ClosedMeanwhile(number=number)
            transaction.put(ROUND, str(number + 1).encode())
        return answers

    @final
    def add_invitations(self, names: Sequence[bytes]) -> None:
        """Keep the names of new invitations; see `code_name`."""
        with self._transaction() as transaction:
            known = transaction.run("SELECT count(*) FROM discreet_invitations")[0][0]
            if known + len(names) > MOST_INVITATIONS:
                raise TooManyInvitations(most=MOST_INVITATIONS)
            transaction.add("invitations", [(name, _UNUSED) for name in sorted(names)])

    @final
    def redeem(self, name: bytes, request: bytes) -> bool:
        """Use an invitation for one request; return whether it may be answered.

        The same request may come again: its answer may have been lost. Any other is rejected. Strangers
        without an invitation only read: they don't keep others from writing.
        """
        if self._invitation(name) not in (_UNUSED, request):
            return False
        with self._transaction() as transaction:
            if transaction.value(CLOSED) is not None:
                return False
            found = transaction.run(_INVITATION, name)
            known = found[0][0] if found else None
            if known == _UNUSED:
                transaction.run("UPDATE discreet_invitations SET request = %s WHERE name = %s", request, name)
            return known in (_UNUSED, request)

    def close_collection(self) -> None:
        """Take no more reports, in this process or another."""
        with self._transaction() as transaction:
            transaction.put(CLOSED, b"closed")

    @property
    def is_closed(self) -> bool:
        """Return whether no more reports are taken."""
        return self._fact(CLOSED) is not None

    @final
    def counts(self) -> Counts:
        """Count what is stored."""
        query = (
            "SELECT (SELECT count(*) FROM (SELECT DISTINCT sender FROM discreet_reports) AS each), "
            "(SELECT count(*) FROM discreet_reports), (SELECT count(*) FROM discreet_messages)"
        )
        ((senders, reports, messages),) = self._all(query, int, int, int)
        return Counts(senders + messages, reports + messages)

    @final
    def reports(self) -> Iterator[StoredReport]:
        """Return every report, by sender and item."""
        query = "SELECT sender, item, code FROM discreet_reports ORDER BY sender, item"
        return map(StoredReport._make, self._all(query, bytes, int, int))

    @final
    def messages(self) -> Iterator[tuple[bytes, bytes]]:
        """Return every sender's answer to a whole catalog or a round."""
        return self._all("SELECT sender, body FROM discreet_messages ORDER BY sender", bytes, bytes)

    @final
    def invitations(self) -> Iterator[tuple[bytes, bytes]]:
        """Return every invitation's name, and the request it was used for."""
        return self._all("SELECT name, request FROM discreet_invitations ORDER BY name", bytes, bytes)

    @final
    def _fact(self, name: str) -> bytes | None:
        return self._look(_FACT, name)

    @final
    def _invitation(self, name: bytes) -> bytes | None:
        """Return the request an invitation was used for, empty before; None if it is unknown."""
        return self._look(_INVITATION, name)

    @abstractmethod
    def _look(self, query: str, key: Any) -> bytes | None:
        """Return the one value of a query, or None, also while this store is written."""

    @abstractmethod
    def _all(self, query: str, *kinds: type) -> Iterator[Any]:
        """Return all rows of a query, whose values are of these kinds, in pages."""

    @abstractmethod
    def settle(self) -> None:
        """Bring what was committed to its place, so that no log of writes grows; never waits for readers."""

    @abstractmethod
    def rewrite(self) -> None:
        """Write all rows anew in the order of their senders, so that nothing shows when they came."""

    @abstractmethod
    def close(self) -> None:
        """Give back files and connections."""

    @abstractmethod
    def _transaction(self) -> Transaction:
        """Begin what is kept whole or not at all."""

    @final
    def _begin(self, campaign: AnyCampaign | None) -> None:
        """Keep the campaign in a new store; a store that has a different one is rejected and closed."""
        try:
            self._adopt(campaign)
        except BaseException:
            self.close()
            raise

    def _adopt(self, campaign: AnyCampaign | None) -> None:
        with self._transaction() as transaction:
            stored = transaction.value(CAMPAIGN)
            if stored is None and campaign is None:
                raise EmptyStore()
            if stored is None and campaign is not None:
                stored = pack(campaign.text)
                transaction.put(CAMPAIGN, stored)
            # Also for stores of earlier versions, and for copies.
            senders = str(self.counts().senders).encode()
            if transaction.value(SENDERS) != senders:
                transaction.put(SENDERS, senders)
        assert stored is not None
        self.campaign = campaign_from_bytes(stored)
        if campaign is not None and campaign.digest != self.campaign.digest:
            raise StoreOfAnother()


class Transaction(ABC):
    """Read and write between a beginning and a commit that is on disk when the block ends."""

    @abstractmethod
    def __enter__(self) -> Transaction:
        """Begin; no other process writes meanwhile."""

    @abstractmethod
    def __exit__(self, *problem: object) -> None:
        """Commit, or take everything back if there was a problem."""

    @abstractmethod
    def run(self, query: str, *values: Any) -> list[Any]:
        """Run a query, and return its rows."""

    @abstractmethod
    def rows_of(self, table: str, senders: list[bytes]) -> Iterator[Any]:
        """Return the rows of these senders in a table."""

    @abstractmethod
    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows that are new to a table."""

    @final
    def value(self, name: str) -> bytes | None:
        """Return what is kept about the store itself."""
        return only_bytes(self.run(_FACT, name))

    @final
    def put(self, name: str, value: bytes) -> None:
        """Keep something about the store itself."""
        self.run(
            "INSERT INTO discreet_facts VALUES (%s, %s) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name,
            value,
        )


def only_bytes(rows: Sequence[Any]) -> bytes | None:
    """Return the value of the one row, or None without one; SQLite takes other types for bytes as well."""
    if rows and not isinstance(rows[0][0], bytes):
        raise sqlite3.DatabaseError("a value has the wrong type")
    return rows[0][0] if rows else None
