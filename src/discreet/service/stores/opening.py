"""Open a store by its address, and copy one into a single file without the order of arrival."""

from __future__ import annotations

import itertools
from pathlib import Path

from discreet.collect.opening import AnyCampaign
from discreet.core.errors import CannotWrite
from discreet.core.files import begun_path
from discreet.service.errors import BadReportStore
from discreet.service.stores.sqlite import SqliteStore
from discreet.service.stores.store import CLOSED, ROUND, Counts, ReportStore


def open_store(url: str, campaign: AnyCampaign | None = None) -> ReportStore:
    """Return the store at `url`; with a campaign it is made if there is none yet."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        from discreet.service.stores.postgresql import PostgresqlStore

        return PostgresqlStore(url, campaign)
    if separator and scheme != "sqlite":
        raise BadReportStore()
    return SqliteStore(Path(rest[1:] if separator else url), campaign)


_ROWS = 10_000


def copy_store(source: ReportStore, target: Path) -> Counts:
    """Write all reports of a store to a new SQLite store, in the order of senders; return how many.

    The copy is made next to the target and put in its place when it is complete.
    """
    aside = begun_path(target)
    for name in (aside.name, f"{aside.name}-wal", f"{aside.name}-shm"):
        aside.with_name(name).unlink(missing_ok=True)
    try:
        aside.touch(mode=0o600, exist_ok=False)
        copy = SqliteStore(aside, source.campaign)
        try:
            counts = _fill(copy, source)
        finally:
            copy.close()
        aside.replace(target)
    except OSError as error:
        raise CannotWrite(path=target, why=error.strerror) from error
    finally:
        aside.unlink(missing_ok=True)
    return counts


def _fill(copy: SqliteStore, source: ReportStore) -> Counts:
    # Before the messages: a round that is closed meanwhile is open in the copy, with all answers or some.
    facts = {name: source._fact(name) for name in (CLOSED, ROUND)}
    reports, messages, invitations = source.reports(), source.messages(), source.invitations()
    with copy._transaction() as transaction:
        while some := list(itertools.islice(reports, _ROWS)):
            transaction.add("reports", some)
        while others := list(itertools.islice(messages, _ROWS)):
            transaction.add("messages", others)
        while invited := list(itertools.islice(invitations, _ROWS)):
            transaction.add("invitations", invited)
        for name, value in facts.items():
            if value is not None:
                transaction.put(name, value)
    copy.rewrite()
    return copy.counts()
