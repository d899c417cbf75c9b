"""Report the contents of a ledger: as one JSON object, a table with a row for each spending, or one line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.core.checks import DiscreetError
from discreet.report.notebooks import html_table
from discreet.report.numbers import number_above

if TYPE_CHECKING:
    from discreet.privacy.ledger.book import Amount, Entry, Ledger


def report_json(ledger: Ledger, dataset: str | None = None) -> dict[str, Any]:
    """Return the spending by release, and the rest of the budget. An infinite epsilon is the text "inf"."""
    names = ledger.datasets() if dataset is None else [dataset]
    return {"datasets": [_dataset_json(ledger, name) for name in names]}


def _dataset_json(ledger: Ledger, name: str) -> dict[str, Any]:
    balance = ledger.balance(name)
    return {
        "dataset": name,
        "spent": [
            {"unit": unit.value, "neighbours": neighbors.value, "trust": trust.value, **_amount_json(amount)}
            for (unit, neighbors, trust), amount in ledger.spent_by_definition(name).items()
        ],
        "budgets": [
            {
                "time": budget.time.isoformat(),
                "reason": budget.reason,
                "account": budget.account.value,
                "renews": None if budget.renews is None else budget.renews.value,
                "renewed": budget.renewed,
                "guarantee": budget.guarantee.to_json(),
            }
            for budget in ledger.budgets(name)
        ],
        "counted": None if balance is None else _amount_json(balance.spent),
        "share": None if balance is None else balance.share,
        "remaining": None if balance is None else _amount_json(balance.left),
        "entries": [_entry_json(entry) for entry in ledger.entries(name)],
    }


def _amount_json(amount: Amount) -> dict[str, Any]:
    return {"epsilon": "inf" if math.isinf(amount.epsilon) else amount.epsilon, "delta": amount.delta}


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "time": entry.time.isoformat(),
        "what": entry.what,
        "state": entry.state.value,
        "process": entry.process,
        "guarantee": entry.guarantee.to_json(),
        "events": list(entry.events),
    }


def entry_columns(ledger: Ledger, dataset: str | None = None) -> dict[str, list[Any]]:
    """Return a row for each spending, oldest first: time, data, purpose, and guarantee."""
    rows = [
        (
            entry.time.replace(tzinfo=None),
            entry.dataset,
            entry.what,
            entry.guarantee.epsilon,
            entry.guarantee.delta,
            entry.guarantee.unit.value,
            entry.guarantee.trust.value,
            entry.state.value,
        )
        for entry in ledger.entries(dataset)
    ]
    names = ("time", "data", "release", "epsilon", "delta", "unit", "trust", "state")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


# At most this many names are listed in one line.
_FEW = 3


def in_one_line(ledger: Ledger) -> str:
    """Return the spending and the budget of each name, or that the file can't be read."""
    try:
        names = ledger.datasets()
        parts = [_spent_on(ledger, name) for name in names[:_FEW]]
    except DiscreetError:
        return "can't be read"
    parts += [f"and {len(names) - _FEW} more"] if len(names) > _FEW else []
    return ", ".join(parts) or "nothing spent"


def _spent_on(ledger: Ledger, name: str) -> str:
    found, budget = ledger.balance(name), ledger.budget(name)
    amounts = ledger.spent_by_definition(name).values() if found is None else [found.spent]
    spent = " and ".join(_level(one.epsilon) for one in amounts)
    return f"{name!r} {spent}" + (f" of {number_above(budget.guarantee.epsilon)}" if budget else "")


def _level(epsilon: float) -> str:
    return "NOT PRIVATE" if math.isinf(epsilon) else f"epsilon {number_above(epsilon)}"


def entries_table(ledger: Ledger, caption: str) -> str:
    """Return the spending as an HTML table, latest first, with each guarantee in one line."""
    rows = [
        (one.time.date(), one.dataset, one.what, one.guarantee.short(), one.state.value)
        for one in reversed(ledger.entries())
    ]
    return html_table(rows, header=("day", "data", "release", "promise", "state"), caption=caption)
