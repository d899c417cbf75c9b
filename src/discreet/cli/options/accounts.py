"""The account that proposed commands spend from: an account of a ledger in the working folder, or a new one.

Costs about the same users add up, also if the users' data come in several files. So a proposed command uses
an account that is there, and only the data owner can know that new data are about other users.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from datetime import datetime
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from discreet.cli import lib
from discreet.core.checks import DiscreetError

# The header of SQLite files, and where it names the application.
_HEADER, _APPLICATION = b"SQLite format 3\0", slice(68, 72)
_MOST_FILES = 1_000


class LedgerAccount(NamedTuple):
    """A name in a ledger; `is_known` if the ledger has it."""

    name: str
    ledger: str
    is_known: bool

    @property
    def options(self) -> str:
        """Return the options that spend from it."""
        return f"--name {shlex.quote(self.name)} --ledger {shlex.quote(self.ledger)}"

    @property
    def place(self) -> str:
        """Return the ledger and the name, as `discreet budget` takes them."""
        return f"{shlex.quote(self.ledger)} --name {shlex.quote(self.name)}"

    def remark(self) -> str | None:
        """Return why a proposed command spends from this account, if it is there already."""
        if not self.is_known:
            return None
        return (
            f"{self.ledger} has an account {self.name!r}, so this command uses it: costs about the same "
            "users add up. If the data are about other users, choose a new --name."
        )


def account_for(called: str) -> LedgerAccount:
    """Return the account for data of this name: an account with the name, or else the latest one in use.

    Without a ledger in the working folder, it is a new account with a ledger of its own.
    """
    name = plain(called)
    found = [*_accounts()]
    if not found:
        return LedgerAccount(name, f"{name}.ledger", is_known=False)
    # Among accounts with the right name, and among all, the latest.
    _, _, ledger, known = max((one in (called, name), latest, ledger, one) for latest, ledger, one in found)
    return LedgerAccount(known, ledger, is_known=True)


def plain(called: str) -> str:
    """Return a name for files and accounts."""
    return re.sub(r"[^\w.]+", "-", called).strip("-.") or "mine"


def unused(name: str) -> str:
    """Return a model file of this name that isn't there yet."""
    names = (f"{name}{'' if place == 1 else f'-{place}'}.discreet" for place in count(1))
    return next(one for one in names if not Path(one).exists())


def _accounts() -> Iterator[tuple[datetime, str, str]]:
    """Yield when each account of the working folder's ledgers was last used, its ledger, and its name."""
    for path in sorted(islice(Path().iterdir(), _MOST_FILES)):
        with contextlib.suppress(DiscreetError, OSError):
            if not _is_ledger(path):
                continue
            book = lib.Ledger.open(path, read_only=True)
            for name in book.datasets():
                used = [one.time for one in book.entries(name)] + [one.time for one in book.budgets(name)]
                yield max(used), str(path), name


def _is_ledger(path: Path) -> bool:
    """Return whether the file has a ledger's header. Other files aren't opened as databases."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_APPLICATION.stop)
    return head.startswith(_HEADER) and head[_APPLICATION] == lib.LEDGER_APPLICATION.to_bytes(4, "big")
