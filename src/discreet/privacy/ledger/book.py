"""Pay for every release before it is made, in a book that only grows.

A spending is written and synced before the noise is drawn, and it stays paid whether the release then
succeeds, fails or is killed. Budgets are per data set, which is known by its declared name alone: looking
at the content would be a query too. What is guaranteed is in proofs/ledger.md.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, final

from discreet.checks import BudgetError, DiscreetError, PrivacyError, require
from discreet.privacy.accounting.events import event_from_json, event_to_json
from discreet.privacy.accounting.rounding import left_over, sum_up
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.records import (
    BUDGETS,
    ENTRIES,
    Amount,
    Budget,
    Entry,
    Frame,
    State,
    insert,
    latest_budget,
    read_budget,
    read_entry,
    spent_by_frame,
)
from discreet.privacy.ledger.report import report_json
from discreet.privacy.ledger.store import Store

if TYPE_CHECKING:
    from dp_accounting import DpEvent

__all__ = ["Amount", "Budget", "Entry", "Frame", "Ledger", "Spending", "State", "report_json"]

# Ten spendings of 0.1 fit a budget of 1, although the floats add up to a hair more.
_TOLERANCE = 1e-12


@final
class Ledger:
    """Keep the spendings and budgets of data sets, in memory or in a file that processes share.

    Example:
        >>> from discreet.privacy.guarantee import Basis, Neighbors, Trust, Unit
        >>> promise = Guarantee(epsilon=0.5, unit=Unit.USER, neighbors=Neighbors.REPLACE,
        ...                     trust=Trust.CENTRAL, basis=Basis.PROVED)
        >>> ledger = Ledger.in_memory()
        >>> with ledger.spend("films", promise, what="biases") as entry:
        ...     pass  # draw the noise here
        >>> ledger.spent("films")
        Amount(epsilon=0.5, delta=0.0)
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @classmethod
    def in_memory(cls) -> Self:
        """Return a ledger that ends with this process."""
        return cls(Store(None))

    @classmethod
    def open(cls, path: str | Path, *, read_only: bool = False) -> Self:
        """Return the ledger in a file; it is created, for the owner's eyes only, unless `read_only`.

        Raises:
            FileError: the file is missing (when `read_only`), damaged or not a ledger; it was left as it is.
        """
        return cls(Store(Path(path), read_only=read_only))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: between two operations no file is open."""

    def __repr__(self) -> str:
        return f"<Ledger {self._store.path or 'in memory'}>"

    def spend(
        self, dataset: str, guarantee: Guarantee, *, what: str, events: Iterable[DpEvent] = ()
    ) -> Spending:
        """Pay for a release now; use the result in a `with` statement around making it.

        When this returns, the spending is on the disk with state `open`. Leaving the block records `done`,
        an exception `failed`; simulated noise is paid like any other. `events` let a reader recount.

        Raises:
            BudgetError: the budget does not cover it; nothing was spent.
            PrivacyError: the budget is in another frame, or a release without privacy has a budget.
        """
        _check_text("dataset", dataset)
        _check_text("what", what)
        records = json.dumps([event_to_json(event) for event in events])
        with self._store.writing() as connection:
            budget = latest_budget(connection, dataset)
            if budget is not None:
                _check_covered(budget, spent_by_frame(connection, dataset), guarantee)
            values = {
                "time": datetime.now(UTC).isoformat(),
                "dataset": dataset,
                "what": what,
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                "frame": "/".join(guarantee.frame),
                "guarantee": json.dumps(guarantee.to_json()),
                "events": records,
                "process": os.getpid(),
            }
            number = insert(connection, "spendings", values)
            entry = read_entry(connection.execute(f"{ENTRIES} WHERE spendings.id = ?", (number,)).fetchone())
        return Spending(self, entry)

    def set_budget(self, dataset: str, guarantee: Guarantee, *, reason: str = "") -> None:
        """Allow spending on a data set up to a promise, in that promise's frame only.

        Budgets are appended like everything else and the latest counts. Lowering one is always allowed,
        even below what is spent; raising one takes a `reason`, which stays in the book; its frame stays.

        Raises:
            PrivacyError: the data set's budget or past spending is in another frame, a release without
                privacy was made already, or a larger budget came without a reason.
        """
        _check_text("dataset", dataset)
        if math.isinf(guarantee.epsilon):
            raise PrivacyError("A budget needs a finite epsilon. Without a budget spending is not limited.")
        with self._store.writing() as connection:
            _check_new_budget(latest_budget(connection, dataset), guarantee, reason)
            for frame, amount in spent_by_frame(connection, dataset).items():
                if frame != guarantee.frame or math.isinf(amount.epsilon):
                    raise PrivacyError(
                        f"{dataset!r} has spending that a budget cannot weigh ({'/'.join(frame)}, "
                        f"epsilon={amount.epsilon:g}). Keep a budget under a new name, or in that frame."
                    )
            values = {
                "time": datetime.now(UTC).isoformat(),
                "dataset": dataset,
                "guarantee": json.dumps(guarantee.to_json()),
                "reason": reason,
                "process": os.getpid(),
            }
            insert(connection, "budgets", values)

    def spent(self, dataset: str, frame: Frame | None = None) -> Amount:
        """Return what was spent on a data set by basic composition, which holds for any adaptive choices.

        Raises:
            PrivacyError: spending was in several frames, which do not add; say which `frame`.
        """
        totals = self.spent_by_frame(dataset)
        if frame is not None:
            return totals.get(frame, Amount(0.0, 0.0))
        if len(totals) > 1:
            raise PrivacyError(
                f"{dataset!r} was spent on in {len(totals)} frames, which do not add. Say which one you mean."
            )
        return next(iter(totals.values()), Amount(0.0, 0.0))

    def spent_by_frame(self, dataset: str) -> dict[Frame, Amount]:
        """Return what was spent on a data set in each frame."""
        with self._store.reading() as connection:
            return spent_by_frame(connection, dataset)

    def budget(self, dataset: str) -> Budget | None:
        """Return the budget that counts, if one was set."""
        with self._store.reading() as connection:
            return latest_budget(connection, dataset)

    def budgets(self, dataset: str) -> list[Budget]:
        """Return every budget a data set ever had, oldest first."""
        with self._store.reading() as connection:
            rows = connection.execute(f"{BUDGETS} WHERE dataset = ? ORDER BY id", (dataset,))
            return [read_budget(row) for row in rows]

    def remaining(self, dataset: str) -> Amount | None:
        """Return what is left of the budget, or None when spending is not limited."""
        with self._store.reading() as connection:
            budget, totals = latest_budget(connection, dataset), spent_by_frame(connection, dataset)
        if budget is None:
            return None
        limit, spent = budget.guarantee, totals.get(budget.guarantee.frame, Amount(0.0, 0.0))
        return Amount(left_over(limit.epsilon, spent.epsilon), left_over(limit.delta, spent.delta))

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """Return the spendings, oldest first, of one data set or of all."""
        where, values = ("", ()) if dataset is None else (" WHERE dataset = ?", (dataset,))
        with self._store.reading() as connection:
            rows = connection.execute(f"{ENTRIES}{where} ORDER BY spendings.id", values)
            return [read_entry(row) for row in rows]

    def datasets(self) -> list[str]:
        """Return the names of all data sets with a spending or a budget."""
        with self._store.reading() as connection:
            rows = connection.execute(
                "SELECT dataset FROM spendings UNION SELECT dataset FROM budgets ORDER BY 1"
            )
            return [row[0] for row in rows]

    def recounted(self, dataset: str, delta: float) -> float | None:
        """Return the epsilon at `delta` of all recorded events together, or None where some entry has none.

        This is often far below `spent`, but holds only if no release's parameters were chosen after seeing
        an earlier release; a budget therefore never uses it.
        """
        from discreet.privacy.accounting.accountant import epsilon_at

        self.spent(dataset)
        entries = self.entries(dataset)
        if not all(entry.events for entry in entries):
            return None
        return epsilon_at([event_from_json(record) for entry in entries for record in entry.events], delta)

    def _close(self, entry: Entry, state: State) -> None:
        with self._store.writing() as connection:
            values = {"id": entry.id, "time": datetime.now(UTC).isoformat(), "state": state.value}
            insert(connection, "outcomes", values)


@final
class Spending:
    """Stand for a release that is paid and not finished yet."""

    def __init__(self, ledger: Ledger, entry: Entry) -> None:
        self._ledger = ledger
        self.entry = entry

    def __enter__(self) -> Entry:
        return self.entry

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record how it ended; where that cannot be written the entry stays open, paid all the same."""
        with contextlib.suppress(DiscreetError):
            self._ledger._close(self.entry, State.DONE if kind is None else State.FAILED)


def _check_covered(budget: Budget, totals: dict[Frame, Amount], cost: Guarantee) -> None:
    limit = budget.guarantee
    if math.isinf(cost.epsilon):
        raise PrivacyError(
            f"{budget.dataset!r} has a budget, so a release without privacy was not made. Give it an epsilon."
        )
    if cost.frame != limit.frame:
        raise PrivacyError(
            f"The budget of {budget.dataset!r} is {'/'.join(limit.frame)} and this release promises "
            f"{'/'.join(cost.frame)}; nothing was spent. Choose a model that promises the same, "
            "or keep a budget for this one under another name (discreet budget --name NAME --for MODEL)."
        )
    spent = totals.get(limit.frame, Amount(0.0, 0.0))
    after = Amount(sum_up([spent.epsilon, cost.epsilon]), sum_up([spent.delta, cost.delta]))
    if after.epsilon > limit.epsilon * (1 + _TOLERANCE) or after.delta > limit.delta * (1 + _TOLERANCE):
        left = Amount(left_over(limit.epsilon, spent.epsilon), left_over(limit.delta, spent.delta))
        raise BudgetError(
            f"The budget of {budget.dataset!r} has epsilon={left.epsilon:g}, delta={left.delta:g} left and "
            f"this release costs epsilon={cost.epsilon:g}, delta={cost.delta:g}; nothing was spent. "
            "Ask for less, or raise the budget with a reason."
        )


def _check_new_budget(current: Budget | None, wanted: Guarantee, reason: str) -> None:
    if current is None:
        return
    if current.guarantee.frame != wanted.frame:
        raise PrivacyError(
            f"The budget of {current.dataset!r} is {'/'.join(current.guarantee.frame)} and stays so. "
            "Set it in that frame, or keep a budget in another one under a new name."
        )
    if not reason.strip() and not wanted <= current.guarantee:
        raise PrivacyError("Raising a budget needs a reason, which is kept. Pass reason=... (--reason).")


def _check_text(name: str, value: object) -> None:
    require(isinstance(value, str) and bool(value.strip()), name, value, "must be a text that is not empty")
