"""Turn a ledger's rows into values and back into totals."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, final

from discreet.privacy.accounting.rounding import sum_up
from discreet.privacy.guarantee import Guarantee, Neighbors, Trust, Unit

Frame = tuple[Unit, Neighbors, Trust]


class State(StrEnum):
    """Say how a spending ended; whichever it is, it was paid."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"


class Amount(NamedTuple):
    """Hold an amount of privacy loss; its frame is known from the context."""

    epsilon: float
    delta: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Record one spending. `process` is the number of the process that paid."""

    id: int
    time: datetime
    dataset: str
    what: str
    guarantee: Guarantee
    state: State
    process: int
    events: tuple[dict[str, Any], ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Record one decision about how much may be spent; the latest one counts."""

    time: datetime
    dataset: str
    guarantee: Guarantee
    reason: str


ENTRIES = (
    "SELECT spendings.id, spendings.time, dataset, what, guarantee, coalesce(state, 'open'), process, events"
    " FROM spendings LEFT JOIN outcomes ON outcomes.id = spendings.id"
)
BUDGETS = "SELECT time, dataset, guarantee, reason FROM budgets"


def insert(connection: sqlite3.Connection, table: str, values: dict[str, Any]) -> int:
    """Append a row and return its number."""
    columns, places = ", ".join(values), ", ".join(f":{name}" for name in values)
    number = connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", values).lastrowid
    assert number is not None
    return number


def read_entry(row: tuple[Any, ...]) -> Entry:
    """Return the spending in a row of `ENTRIES`."""
    number, time, dataset, what, guarantee, state, process, events = row
    return Entry(
        id=number,
        time=datetime.fromisoformat(time),
        dataset=dataset,
        what=what,
        guarantee=Guarantee.from_json(json.loads(guarantee)),
        state=State(state),
        process=process,
        events=tuple(json.loads(events)),
    )


def read_budget(row: tuple[Any, ...]) -> Budget:
    """Return the budget in a row of `BUDGETS`."""
    time, dataset, guarantee, reason = row
    return Budget(
        time=datetime.fromisoformat(time),
        dataset=dataset,
        guarantee=Guarantee.from_json(json.loads(guarantee)),
        reason=reason,
    )


def latest_budget(connection: sqlite3.Connection, dataset: str) -> Budget | None:
    """Return the budget of a data set that counts."""
    row = connection.execute(f"{BUDGETS} WHERE dataset = ? ORDER BY id DESC LIMIT 1", (dataset,)).fetchone()
    return None if row is None else read_budget(row)


def spent_by_frame(connection: sqlite3.Connection, dataset: str) -> dict[Frame, Amount]:
    """Return the totals of a data set by basic composition; frames do not add."""
    rows = connection.execute(
        "SELECT frame, epsilon, delta FROM spendings WHERE dataset = ? ORDER BY id", (dataset,)
    )
    amounts: dict[str, list[tuple[float, float]]] = {}
    for frame, epsilon, delta in rows:
        amounts.setdefault(frame, []).append((epsilon, delta))
    return {
        _frame(frame): Amount(sum_up(epsilon for epsilon, _ in parts), sum_up(delta for _, delta in parts))
        for frame, parts in amounts.items()
    }


def _frame(text: str) -> Frame:
    unit, neighbors, trust = text.split("/")
    return Unit(unit), Neighbors(neighbors), Trust(trust)
