"""Read and write the rows of a ledger, and add them up.

A row is sealed with a checksum, so that a damaged bit anywhere in it is found. The checksum is in the row's
own JSON, where older versions ignore it. It finds damage, not fraud: anyone who can write the file can
compute it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sqlite3
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, cast, final

from discreet.privacy.accounting.rounding import sum_up
from discreet.privacy.errors import BudgetIsFixed, ReasonNeeded, SpendingNotCounted, TwoEpsilons
from discreet.privacy.guarantee import Assumption, Basis, Fact, Guarantee, Kind, Neighbors, Trust, Unit
from discreet.privacy.ledger.accounts import Account

_SEAL = "row"
#: The key of a release's random name next to the guarantee of a spending.
RELEASE = "release"
# Columns that aren't the row's own statement.
_BESIDE = ("guarantee", "process")


def sealed(values: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a row with the JSON of its guarantee, sealed."""
    return {**values, "guarantee": json.dumps({**record, _SEAL: _checksum(values, record)})}


def require_sealed(values: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a row that differs from the sealed row. A row without a seal passes."""
    if _SEAL in record and record[_SEAL] != _checksum(values, record):
        raise ValueError("a row lost a bit")


def _checksum(values: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    columns = {name: value for name, value in values.items() if name not in _BESIDE}
    promise = {name: value for name, value in record.items() if name != _SEAL}
    text = json.dumps([columns, promise], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


Frame = tuple[Unit, Neighbors, Trust]


class EntryState(StrEnum):
    """How a spending ended. It stays spent in every state."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"


class Amount(NamedTuple):
    """An amount of privacy loss. Its privacy definition is known from the context."""

    epsilon: float
    delta: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One spending. `process` is the number of the process that spent.

    `release` is the random name of the release into a file that it is for, if there is one.
    """

    id: int
    time: datetime
    dataset: str
    what: str
    guarantee: Guarantee
    state: EntryState
    process: int
    events: tuple[dict[str, Any], ...] = ()
    release: str = ""


class Period(StrEnum):
    """How long a budget counts spending: any 12 months, 3 months, or month, by dates in UTC."""

    YEARLY = "yearly"
    QUARTERLY = "quarterly"
    MONTHLY = "monthly"

    @property
    def window(self) -> str:
        """The length in words."""
        return {Period.YEARLY: "12 months", Period.QUARTERLY: "3 months"}.get(self, "month")

    def start(self, now: datetime) -> datetime:
        """Return the beginning of the period that ends today: spending from then on counts.

        A spending of May 17 counts in a year up to May 16 of the next, and no longer on May 17.
        """
        months = {Period.YEARLY: 12, Period.QUARTERLY: 3}.get(self, 1)
        year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
        # The last of two months may have different numbers.
        day = min(now.day, monthrange(year, month + 1)[1])
        return datetime(year, month + 1, day, tzinfo=UTC) + timedelta(days=1)

    def end(self, spent: datetime) -> datetime:
        """Return the date from which a spending doesn't count anymore."""
        day = datetime(spent.year, spent.month, spent.day, tzinfo=UTC)
        return next(end for days in range(367) if self.start(end := day + timedelta(days=days)) > spent)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One decision about how much may be spent. The latest decision counts.

    `renews` counts only the spending of the last period. `renewed` is the assumption ("a different set of
    users") under which spending up to number `after` stopped counting. It is empty if that never happened.
    """

    time: datetime
    dataset: str
    guarantee: Guarantee
    reason: str
    account: Account = Account.ADDING
    renews: Period | None = None
    renewed: str = ""
    after: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the guarantee and the rules that differ from those of version 0.1."""
        rules: dict[str, Any] = {} if self.account is Account.ADDING else {"account": self.account.value}
        if self.renews is not None:
            rules["renews"] = self.renews.value
        if self.renewed:
            rules |= {"renewed": self.renewed, "after": self.after}
        return self.guarantee.to_json() | rules

    def assumptions(self) -> tuple[Assumption, ...]:
        """Return the assumptions of a budget that was renewed. Every later label states them."""
        found = []
        if self.renews is not None:
            found.append(Assumption.of(Kind.LEDGER, Fact.RENEWAL, period=self.renews.window))
        if self.renewed:
            found.append(Assumption.of(Kind.LEDGER, Fact.NEW_START, reason=self.renewed))
        return tuple(found)


#: The delta of a budget that names none.
USUAL_DELTA = 1e-5
#: The delta of a fit that names none.
FIT_DELTA = 1e-6


def allowed_promise(
    given: Guarantee | float | None, epsilon: float | None, delta: float | None, current: Budget | None
) -> Guarantee:
    """Return the allowance of a budget: a guarantee as it is, or an epsilon under the current definition.

    Without a current budget, the definition is a user's whole history with a trusted data owner.
    """
    if isinstance(given, Guarantee):
        if epsilon is not None or delta is not None:
            raise TwoEpsilons()
        return given
    if (given is None) == (epsilon is None):
        raise TwoEpsilons()
    definition = (Unit.USER, Neighbors.ADD_OR_REMOVE, Trust.JOINT)
    unit, neighbors, trust = definition if current is None else current.guarantee.definition
    if delta is None:
        # A new epsilon doesn't change delta.
        delta = USUAL_DELTA if current is None else current.guarantee.delta
    return Guarantee(
        epsilon=cast(float, epsilon if given is None else given),
        delta=delta,
        unit=unit,
        neighbors=neighbors,
        trust=trust,
        basis=Basis.PROVED,
    )


#: Assumed if a budget starts anew while continual releases go on.
PAID_AT_ONCE = Assumption.of(Kind.LEDGER, Fact.PERIOD_OF_A_YEAR)

ENTRIES = (
    "SELECT spendings.id, spendings.time, dataset, what, guarantee, coalesce(state, 'open'), process, events,"
    " epsilon, delta, frame"
    " FROM spendings LEFT JOIN outcomes ON outcomes.id = spendings.id"
)
BUDGETS = "SELECT time, dataset, guarantee, reason FROM budgets"


def insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> int:
    """Append a row and return its number."""
    columns, places = ", ".join(values), ", ".join(f":{name}" for name in values)
    number = connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", values).lastrowid
    assert number is not None
    return number


def fetched(connection: sqlite3.Connection, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Return all rows at once.

    An unfinished statement keeps a lock on the file as long as anything refers to it, for instance an error
    about a damaged row, and this process would wait for itself.
    """
    with contextlib.closing(connection.execute(query, values)) as cursor:
        rows = cursor.fetchall()
    # One bit separates a text from bytes, and a ledger contains no bytes.
    if any(isinstance(value, bytes) for row in rows for value in row):
        raise ValueError("a row contains bytes instead of a text")
    return rows


def read_entry(row: tuple[Any, ...]) -> Entry:
    """Return the spending in a row of `ENTRIES`. A row that contradicts itself is a `ValueError`."""
    number, time, dataset, what, guarantee, state, process, events, *numbers = row
    record = _record(guarantee)
    promise = _promise(record, *numbers)
    columns = {"time": time, "dataset": dataset, "what": what, "events": events}
    require_sealed(columns | dict(zip(("epsilon", "delta", "frame"), numbers, strict=True)), record)
    return Entry(
        id=number,
        time=datetime.fromisoformat(time),
        dataset=dataset,
        what=what,
        guarantee=promise,
        state=EntryState(state),
        process=process,
        events=tuple(json.loads(events)),
        release=str(record.get(RELEASE, "")),
    )


def read_budget(row: tuple[Any, ...]) -> Budget:
    """Return the budget in a row of `BUDGETS`."""
    time, dataset, guarantee, reason = row
    record = _record(guarantee)
    require_sealed({"time": time, "dataset": dataset, "reason": reason}, record)
    return Budget(
        time=datetime.fromisoformat(time),
        dataset=dataset,
        guarantee=_read_promise(record),
        reason=reason,
        account=Account(record.get("account", Account.ADDING)),
        renews=Period(record["renews"]) if "renews" in record else None,
        renewed=str(record.get("renewed", "")),
        after=int(record.get("after", 0)),
    )


def latest_budget(connection: sqlite3.Connection, dataset: str) -> Budget | None:
    """Return the latest budget of a dataset, which is the one that counts."""
    rows = fetched(connection, f"{BUDGETS} WHERE dataset = ? ORDER BY id DESC LIMIT 1", dataset)
    return read_budget(rows[0]) if rows else None


def budgeted_names(connection: sqlite3.Connection) -> list[str]:
    """Return the names of all datasets with a budget."""
    return [row[0] for row in fetched(connection, "SELECT DISTINCT dataset FROM budgets ORDER BY dataset")]


def counted_entries(connection: sqlite3.Connection, budget: Budget, now: datetime) -> list[Entry]:
    """Return the spending that counts against a budget: its privacy definition, in the period up to now.

    After the first spending of the period, all later spending counts, even if the clock was set back.
    """
    where = "WHERE dataset = ? AND spendings.id > ? ORDER BY spendings.id"
    rows = fetched(connection, f"{ENTRIES} {where}", budget.dataset, budget.after)
    entries = [read_entry(row) for row in rows]
    if budget.renews is not None:
        start = budget.renews.start(now)
        first = next((index for index, one in enumerate(entries) if one.time >= start), len(entries))
        entries = entries[first:]
    return [entry for entry in entries if entry.guarantee.definition == budget.guarantee.definition]


def last_number(connection: sqlite3.Connection, dataset: str) -> int:
    """Return the number of a dataset's latest spending, or 0."""
    ((number,),) = fetched(connection, "SELECT max(id) FROM spendings WHERE dataset = ?", dataset)
    return int(number or 0)


def spent_by_definition(connection: sqlite3.Connection, dataset: str) -> dict[Frame, Amount]:
    """Return the totals of a dataset by basic composition, one for each privacy definition."""
    amounts: dict[Frame, list[Guarantee]] = {}
    for row in fetched(connection, f"{ENTRIES} WHERE dataset = ? ORDER BY spendings.id", dataset):
        promise = read_entry(row).guarantee
        amounts.setdefault(promise.definition, []).append(promise)
    return {
        definition: Amount(sum_up(part.epsilon for part in parts), sum_up(part.delta for part in parts))
        for definition, parts in amounts.items()
    }


def _as_named_now(definition: object) -> str:
    """Return a stored privacy definition with the current name of its unit. Old rows have an old name."""
    unit, _, rest = str(definition).partition("/")
    try:
        return f"{Unit(unit).value}/{rest}"
    except ValueError:
        return str(definition)


def _promise(record: dict[str, Any], epsilon: object, delta: object, definition: object) -> Guarantee:
    """Return the guarantee of a row. The row states its numbers twice, which reveals a damaged disk."""
    promise = _read_promise(record)
    if (promise.epsilon, promise.delta, "/".join(promise.definition)) != (
        epsilon,
        delta,
        _as_named_now(definition),
    ):
        raise ValueError("a row contradicts itself")
    return promise


def _record(text: object) -> dict[str, Any]:
    record = json.loads(text) if isinstance(text, str) else None
    if not isinstance(record, dict):
        raise ValueError("a row has no guarantee")
    return record


def _read_promise(record: dict[str, Any]) -> Guarantee:
    try:
        return Guarantee.from_json(record)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("a row's guarantee can't be read") from error


def next_budget(
    current: Budget | None,
    *,
    account: Account | None,
    renews: Period | None,
    renewed: str,
    last: int,
    **said: Any,
) -> Budget:
    """Return the budget that follows the current one. Its rules stay unless new rules are given.

    A `renewed` budget begins after the spending with the number `last`.
    """
    kept: tuple[Account, Period | None, str, int] = (Account.ADDING, None, "", 0)
    if current is not None:
        kept = (current.account, current.renews, current.renewed, current.after)
    return Budget(
        account=account or kept[0],
        renews=renews or kept[1],
        renewed=renewed or kept[2],
        after=last if renewed else kept[3],
        **said,
    )


def require_weighable(connection: sqlite3.Connection, budget: Budget) -> None:
    """Raise for a budget of data with earlier spending that the budget can't weigh."""
    for definition, amount in spent_by_definition(connection, budget.dataset).items():
        if definition != budget.guarantee.definition or math.isinf(amount.epsilon):
            raise SpendingNotCounted(
                dataset=budget.dataset, definition="/".join(definition), epsilon=amount.epsilon
            )


def check_new_budget(current: Budget | None, wanted: Budget, last: int) -> None:
    """Raise for a budget that contradicts the current one, or is larger without a reason.

    `last` is the number of the dataset's latest spending. It is 0 until something is spent: the account may
    then change.
    """
    if current is None:
        return
    if current.guarantee.definition != wanted.guarantee.definition:
        raise BudgetIsFixed(
            dataset=current.dataset, kept=f"the definition {'/'.join(current.guarantee.definition)}"
        )
    if last and current.account is not wanted.account:
        # A choice between two accounts after seeing both would not be a valid account.
        raise BudgetIsFixed(dataset=current.dataset, kept=f"{current.account.value} weights")
    larger = not wanted.guarantee <= current.guarantee
    anew = wanted.after > current.after or wanted.renews is not current.renews
    if not wanted.reason.strip() and (larger or anew):
        raise ReasonNeeded()
