"""Copy a store, while it collects, into one file that is whole by itself and shows no order of arrival."""

from __future__ import annotations

import itertools
from pathlib import Path

from discreet.checks import FileError
from discreet.service.stores.sqlite import SqliteStore
from discreet.service.stores.store import CLOSED, Counts, Store

_ROWS = 10_000


def copy_store(source: Store, target: Path) -> Counts:
    """Write all reports of a store to a new SQLite store, in the order of senders; return how many.

    The copy is made beside the target and put in its place when it is whole.
    """
    aside = target.with_name(f".{target.name}.part")
    for name in (aside.name, f"{aside.name}-wal", f"{aside.name}-shm"):
        aside.with_name(name).unlink(missing_ok=True)
    try:
        aside.touch(mode=0o600, exist_ok=False)
        copy = SqliteStore(aside, source.campaign)
        try:
            counts = _fill(copy, source)
        finally:
            copy.dispose()
        aside.replace(target)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        aside.unlink(missing_ok=True)
    return counts


def _fill(copy: SqliteStore, source: Store) -> Counts:
    reports, messages = source.reports(), source.messages()
    with copy._transaction() as transaction:
        while some := list(itertools.islice(reports, _ROWS)):
            transaction.add_reports(some)
        while others := list(itertools.islice(messages, _ROWS)):
            transaction.add_messages(others)
        if source.is_closed:
            transaction.put(CLOSED, b"closed")
    copy.rewrite()
    return copy.counts()
