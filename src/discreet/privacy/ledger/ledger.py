"""Record the cost of every release before it is made, in an append-only ledger.

A spending is written and synced before the noise is drawn, and it stays spent whether the release then
succeeds, fails, or is killed. Budgets are per dataset, which is identified by its declared name alone:
reading the content would be a query, too. proofs/ledger.md states the guarantee.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

from discreet.core import FrameKind, Spent, renamed, require, to_frame
from discreet.core.checks import DiscreetError
from discreet.privacy.accounting.events import event_from_json, event_to_json
from discreet.privacy.errors import NeedsEpsilon, NotCounted, SeveralDefinitions, SpendingEnded, Unbudgeted
from discreet.privacy.guarantee import Assumption, Guarantee
from discreet.privacy.ledger.accounts import Account
from discreet.privacy.ledger.balance import Balance, balance, require_covered, together
from discreet.privacy.ledger.chain import Anchor, Chain, latest_anchor, record_place
from discreet.privacy.ledger.records import (
    BUDGETS,
    ENTRIES,
    RELEASE,
    Amount,
    Budget,
    Entry,
    EntryState,
    Frame,
    Period,
    allowed_promise,
    budgeted_names,
    check_new_budget,
    counted_entries,
    fetched,
    insert,
    last_number,
    latest_budget,
    next_budget,
    read_budget,
    read_entry,
    require_weighable,
    sealed,
    spent_by_definition,
)
from discreet.privacy.ledger.report import (
    budgets_table,
    entries_table,
    entry_columns,
    in_one_line,
    ledger_chart,
    report_json,
)
from discreet.privacy.ledger.sqlite_file import LedgerStore, add_anchors, has_anchors

if TYPE_CHECKING:
    from dp_accounting import DpEvent

    from discreet.privacy.ledger.release import PaidRelease
    from discreet.report import Charts

__all__ = [
    "Account", "Amount", "Balance", "Budget", "Entry", "EntryState",
    "Frame", "Ledger", "Period", "Spending", "report_json", "spending_in",
]  # fmt: skip


@final
class Ledger:
    """Spending and budgets of datasets, in memory or in a file that processes share.

    Example:
        >>> from discreet.privacy.guarantee import Basis, Neighbors, Trust, Unit
        >>> guarantee = Guarantee(epsilon=0.5, unit=Unit.USER, neighbors=Neighbors.REPLACE,
        ...                       trust=Trust.CENTRAL, basis=Basis.PROVED)
        >>> ledger = Ledger.in_memory()
        >>> with ledger.spend("films", guarantee, what="biases") as entry:
        ...     pass  # draw the noise here
        >>> ledger.spent("films")
        Amount(epsilon=0.5, delta=0.0)

    Stability
        Stable.
    """

    #: Whether this process has opened a file that it may write. Without one, nothing was recorded.
    any_opened: ClassVar[bool] = False

    def __init__(
        self,
        store: LedgerStore,
        *,
        allow_unbudgeted: bool = False,
        release: PaidRelease | None = None,
    ) -> None:
        self._store, self._release = store, release
        self._allow_unbudgeted = allow_unbudgeted

    @classmethod
    def in_memory(cls, *, allow_unbudgeted: bool = False) -> Self:
        """Return a ledger that ends with this process."""
        return cls(LedgerStore(None), allow_unbudgeted=allow_unbudgeted)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        allow_unbudgeted: bool = False,
        release: PaidRelease | None = None,
    ) -> Self:
        """Return the ledger in a file. Unless `read_only`, create it with access for its owner only.

        Parameters:
            path: The file.
            read_only: Reject writes.
            allow_unbudgeted: Let names without a budget spend without limit, although other names have
                budgets.
            release: The file that the spending makes (`releasing`). If a process was killed while it made
                that file, its spending is used again.

        Raises:
            FileError: The file is missing (when `read_only`), damaged, or not a ledger. It was not changed.
        """
        Ledger.any_opened |= not read_only
        store = LedgerStore(Path(path), read_only=read_only)
        return cls(store, allow_unbudgeted=allow_unbudgeted, release=release)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: between two operations no file is open."""

    def __repr__(self) -> str:
        return f"<Ledger {self._where}: {in_one_line(self)}>"

    def _repr_html_(self) -> str:
        spent = entries_table(self, f"Ledger {self._where}, latest first")
        return budgets_table(self, "Privacy budgets") + spent

    @property
    def _where(self) -> str:
        return str(self._store.path or "in memory")

    def to_frame(self, kind: FrameKind = "polars", *, dataset: str | None = None) -> Any:
        """Return a data frame with a row for each spending, oldest first. Times are UTC."""
        return to_frame(entry_columns(self, dataset), kind)

    def plot(self, dataset: str | None = None) -> Charts:
        """Return a chart of the spending on a dataset and its budget, release by release, for a notebook."""
        return ledger_chart(self, dataset)

    def spend(
        self,
        dataset: str,
        guarantee: Guarantee,
        *,
        what: str,
        events: Iterable[DpEvent] = (),
        release: str = "",
    ) -> Spending:
        """Spend on a release now. Use the result in a `with` statement around making the release.

        When this returns, the spending is on the disk with state `open`. Leaving the block records `done`,
        and an exception `failed`. Simulated noise is spent like any other. `events` let a reader recount.

        A name without a budget isn't limited, unless a different name has a budget. Then it is rejected,
        because the same users could be spent on without limit under a different name of the data.
        `release` is a random name by which a killed process finds its spending again.

        Raises:
            BudgetError: The budget doesn't cover the release, or only other names have a budget. Nothing was
                spent.
            PrivacyError: The budget has a different privacy definition, or a release without privacy has a
                budget.
        """
        _check_text("dataset", dataset)
        _check_text("what", what)
        records = [event_to_json(event) for event in events]
        if self._release is not None:
            left = self._release.interrupted(self, dataset, guarantee, what)
            if left is not None:
                return Spending(self, left)
            release = self._release.token
        with self._store.writing() as connection:
            budget = latest_budget(connection, dataset)
            if budget is not None:
                counted = counted_entries(connection, budget, datetime.now(UTC))
                require_covered(budget, counted, guarantee, records, self._place())
            else:
                self._require_budgeted(dataset, budgeted_names(connection))
            values = {
                "time": datetime.now(UTC).isoformat(),
                "dataset": dataset,
                "what": what,
                "epsilon": guarantee.epsilon,
                "delta": guarantee.delta,
                "frame": "/".join(guarantee.definition),
                "events": json.dumps(records),
                "process": os.getpid(),
            }
            named = {RELEASE: release} if release else {}
            number = insert(connection, "spendings", sealed(values, guarantee.to_json() | named))
            (row,) = fetched(connection, f"{ENTRIES} WHERE spendings.id = ?", number)
            entry = read_entry(row)
        return Spending(self, entry)

    def _place(self) -> str:
        """Return the ledger's file as a command names it."""
        return str(self._store.path or "LEDGER")

    def set_budget(
        self,
        dataset: str,
        guarantee: Guarantee | float | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        reason: str = "",
        account: Account | None = None,
        renews: Period | None = None,
        renewed: str = "",
    ) -> None:
        """Allow spending on a dataset up to a guarantee, with that guarantee's privacy definition only.

        `set_budget("shop", 3.0)`, or `epsilon=3.0, delta=1e-6`, uses the current budget's definition and
        delta, or else a user's whole history with a trusted data owner and 1e-5. Budgets are appended like
        everything else, and the latest counts. You can always lower a budget, even below what is spent. To
        raise a budget, pass a `reason`, which the ledger keeps. The privacy definition can't change, nor the
        account once something was spent.

        Parameters:
            account: How releases compose. Default: the first budget's account, or else adding epsilons.
            renews: Count only the spending of the last 12 months, 3 months, or month. Default: as in the
                previous budget.
            renewed: Begin with nothing spent now, under this assumption ("a different set of users"). Every
                later label states it.

        Raises:
            PrivacyError: The dataset's budget or past spending has a different privacy definition or account,
                a release without privacy was made already, or the budget was raised without a reason.
        """
        _check_text("dataset", dataset)
        allowed = allowed_promise(guarantee, epsilon, delta, self.budget(dataset))
        if math.isinf(allowed.epsilon):
            raise NeedsEpsilon()
        with self._store.writing() as connection:
            current, now = latest_budget(connection, dataset), datetime.now(UTC)
            last = last_number(connection, dataset)
            wanted = next_budget(
                current,
                time=now,
                dataset=dataset,
                guarantee=allowed,
                reason=reason,
                account=account,
                renews=renews,
                renewed=renewed.strip(),
                last=last,
            )
            check_new_budget(current, wanted, last)
            require_weighable(connection, wanted)
            # An account that can't count earlier spending is rejected here, not at the next release.
            balance(wanted, counted_entries(connection, wanted, now))
            values = {
                "time": now.isoformat(),
                "dataset": dataset,
                "reason": reason,
                "process": os.getpid(),
            }
            insert(connection, "budgets", sealed(values, wanted.to_json()))

    def spent(self, dataset: str, definition: Frame | None = None) -> Amount:
        """Return the spending on a dataset by basic composition, which is valid for any adaptive choices.

        Raises:
            PrivacyError: The spending has several privacy definitions, which don't add. Pass a `definition`.
        """
        totals = self.spent_by_definition(dataset)
        if definition is not None:
            return totals.get(definition, Amount(0.0, 0.0))
        if len(totals) > 1:
            raise SeveralDefinitions(dataset=dataset, count=len(totals))
        return next(iter(totals.values()), Amount(0.0, 0.0))

    def spent_by_definition(self, dataset: str) -> dict[Frame, Amount]:
        """Return the spending on a dataset under each privacy definition."""
        with self._store.reading() as connection:
            return spent_by_definition(connection, dataset)

    def spent_by_frame(self, dataset: str) -> dict[Frame, Amount]:
        """Return `spent_by_definition`, under its name in 0.2."""
        renamed("Ledger.spent_by_frame", "spent_by_definition")
        return self.spent_by_definition(dataset)

    def budget(self, dataset: str) -> Budget | None:
        """Return the budget that counts, if any."""
        with self._store.reading() as connection:
            return latest_budget(connection, dataset)

    def budgets(self, dataset: str) -> list[Budget]:
        """Return every budget a dataset ever had, oldest first."""
        with self._store.reading() as connection:
            rows = fetched(connection, f"{BUDGETS} WHERE dataset = ? ORDER BY id", dataset)
            return [read_budget(row) for row in rows]

    def balance(self, dataset: str) -> Balance | None:
        """Return the spent part of the budget and the rest, or None if spending isn't limited."""
        with self._store.reading() as connection:
            budget = latest_budget(connection, dataset)
            if budget is None:
                return None
            return balance(budget, counted_entries(connection, budget, datetime.now(UTC)))

    def together(self, dataset: str, entries: Sequence[Entry]) -> Amount:
        """Return the cost of some of a dataset's spendings, all of one privacy definition, as `balance` adds.

        Earlier spending that the account can't count is added by epsilon and delta, which is always valid.
        """
        budget = self.budget(dataset)
        try:
            return together(budget, entries)
        except NotCounted:
            return together(None, entries)

    def remaining(self, dataset: str) -> Amount | None:
        """Return the rest of the budget, or None if spending isn't limited."""
        found = self.balance(dataset)
        return None if found is None else found.left

    def assumptions(self, dataset: str) -> tuple[Assumption, ...]:
        """Return the assumptions of a budget that was renewed. Labels state them."""
        budget = self.budget(dataset)
        return () if budget is None else budget.assumptions()

    def price(self, dataset: str, guarantee: Guarantee, events: Iterable[DpEvent] = ()) -> Balance | None:
        """Return the balance after such a release, without making it. None if spending isn't limited.

        Raises:
            BudgetError: The budget doesn't cover the release, or only other names have a budget.
            PrivacyError: The budget has a different privacy definition, or can't count the release.
        """
        records = [event_to_json(event) for event in events]
        with self._store.reading() as connection:
            budget, now = latest_budget(connection, dataset), datetime.now(UTC)
            if budget is None:
                self._require_budgeted(dataset, budgeted_names(connection))
                return None
            counted = counted_entries(connection, budget, now)
        require_covered(budget, counted, guarantee, records, self._place())
        paid = Entry(
            id=0,
            time=now,
            dataset=dataset,
            what="planned",
            guarantee=guarantee,
            state=EntryState.OPEN,
            process=0,
            events=tuple(records),
        )
        return balance(budget, [*counted, paid])

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """Return the spendings, oldest first, of one dataset or of all."""
        where, values = ("", ()) if dataset is None else (" WHERE dataset = ?", (dataset,))
        with self._store.reading() as connection:
            rows = fetched(connection, f"{ENTRIES}{where} ORDER BY spendings.id", *values)
            return [read_entry(row) for row in rows]

    def datasets(self) -> list[str]:
        """Return the names of all datasets with a spending or a budget."""
        with self._store.reading() as connection:
            rows = fetched(
                connection, "SELECT dataset FROM spendings UNION SELECT dataset FROM budgets ORDER BY 1"
            )
            return [row[0] for row in rows]

    def budgeted(self) -> list[str]:
        """Return the names of all datasets with a budget."""
        with self._store.reading() as connection:
            return budgeted_names(connection)

    def refuse_unbudgeted(self, dataset: str) -> None:
        """Raise for a name without a budget if other names have budgets, as `spend` would."""
        with self._store.reading() as connection:
            if latest_budget(connection, dataset) is None:
                self._require_budgeted(dataset, budgeted_names(connection))

    def _require_budgeted(self, dataset: str, budgeted: list[str]) -> None:
        """Raise for a name without a budget if other names have budgets, unless `allow_unbudgeted`."""
        if budgeted and not self._allow_unbudgeted:
            raise Unbudgeted(dataset=dataset, budgeted=tuple(budgeted))

    def recounted(self, dataset: str, delta: float) -> float | None:
        """Return the epsilon at `delta` of all recorded events together, or None if some entry has none.

        This is often far below `spent`, but it is valid only if no release's parameters were chosen after
        seeing an earlier release. Therefore a budget never uses it.
        """
        from discreet.privacy.accounting.accountant import epsilon_at

        self.spent(dataset)
        entries = self.entries(dataset)
        if not all(entry.events for entry in entries):
            return None
        return epsilon_at([event_from_json(record) for entry in entries for record in entry.events], delta)

    def anchor(self, chain: str) -> Anchor:
        """Return the latest recorded place in the chain of a party's events, or its start."""
        with self._store.reading() as connection:
            return latest_anchor(connection, chain) if has_anchors(connection) else Anchor()

    def keep_place(self, name: str, chain: Chain) -> None:
        """Record the latest place of a chain. When this returns, it is on the disk.

        Raises:
            PrivacyError: The chain doesn't contain the recorded place: the party's state is an older copy.
                Nothing was recorded.
        """
        with self._store.writing() as connection:
            add_anchors(connection)
            record_place(connection, name, chain)

    def close(self, entry: Entry, state: EntryState) -> None:
        """Record how a release ended.

        Raises:
            BudgetError: The ledger has recorded that it ended.
        """
        with self._store.writing() as connection:
            if fetched(connection, "SELECT 1 FROM outcomes WHERE id = ?", entry.id):
                raise SpendingEnded(number=entry.id)
            values = {"id": entry.id, "time": datetime.now(UTC).isoformat(), "state": state.value}
            insert(connection, "outcomes", values)


@final
class Spending:
    """A release whose cost is recorded and that isn't finished yet."""

    def __init__(self, ledger: Ledger, entry: Entry) -> None:
        self._ledger = ledger
        self.entry = entry

    def __enter__(self) -> Entry:
        return self.entry

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record how the release ended. If that can't be written, the entry stays open and stays spent.

        An error that ends the block gets one more sentence: that the release was spent. A release into a
        file is done when the file is in its place, and not before. After Ctrl-C, the same command continues
        with the recorded spending, so its entry stays open.
        """
        release = self._ledger._release
        if kind is not None and release is not None and issubclass(kind, KeyboardInterrupt):
            return
        if kind is None and release is not None:
            release.drawn(self._ledger, self.entry)
            return
        with contextlib.suppress(DiscreetError):
            self._ledger.close(self.entry, EntryState.DONE if kind is None else EntryState.FAILED)
        if isinstance(error, DiscreetError):
            cost = self.entry.guarantee
            error.spent = Spent(cost.epsilon, cost.delta, self.entry.dataset)


def spending_in(
    ledger: Ledger | None,
    dataset: str,
    guarantee: Guarantee,
    *,
    what: str,
    events: Iterable[DpEvent] = (),
    release: str = "",
) -> contextlib.AbstractContextManager[Entry | None]:
    """Spend on a release as `Ledger.spend` does; without a ledger it isn't recorded."""
    if ledger is not None:
        return ledger.spend(dataset, guarantee, what=what, events=events, release=release)
    _check_text("dataset", dataset)
    return contextlib.nullcontext()


def _check_text(name: str, value: object) -> None:
    require(isinstance(value, str) and bool(value.strip()), name, value, must="be a text that is not empty")
