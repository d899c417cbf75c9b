"""Report the contents of a ledger: as one JSON object, a table of its spending, one line, or a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from discreet.core.checks import DiscreetError, PrivacyError
from discreet.privacy.errors import DatasetUnclear
from discreet.privacy.ledger.accounts import Account
from discreet.privacy.ledger.balance import balance, level_above
from discreet.privacy.ledger.records import Amount
from discreet.report import (
    COLORS,
    GRAY,
    Axis,
    ChartLine,
    Charts,
    Point,
    element,
    html_table,
    line_chart,
    number_above,
)

if TYPE_CHECKING:
    from discreet.privacy.ledger.ledger import Entry, Ledger
    from discreet.privacy.ledger.records import Budget


def report_json(ledger: Ledger, dataset: str | None = None) -> dict[str, Any]:
    """Return the spending by release, and the rest of the budget. An infinite epsilon is the text "inf"."""
    names = ledger.datasets() if dataset is None else [dataset]
    return {"datasets": [_dataset_json(ledger, name) for name in names]}


def _dataset_json(ledger: Ledger, name: str) -> dict[str, Any]:
    found = ledger.balance(name)
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
        "counted": None if found is None else _amount_json(found.spent),
        "share": None if found is None else found.share,
        "remaining": None if found is None else _amount_json(found.left),
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


def budgets_table(ledger: Ledger, caption: str) -> str:
    """Return an HTML table of the budgets, with the spent part and the rest. Without budgets, it is empty."""
    rows = []
    for name in ledger.budgeted():
        budget, found = ledger.budget(name), ledger.balance(name)
        assert budget is not None and found is not None
        counts = "all releases" if budget.renews is None else f"any {budget.renews.window}"
        limit = level_above(Amount(budget.guarantee.epsilon, budget.guarantee.delta))
        spent = f"{level_above(found.spent)} ({100 * found.share:.3g}%)"
        rows.append((name, budget.account.value, counts, limit, spent, found.left_over(), budget.reason))
    header = ("data", "account kind", "counts", "budget", "spent", "left", "reason")
    return html_table(rows, header=header, caption=caption) if rows else ""


def entries_table(ledger: Ledger, caption: str) -> str:
    """Return the spending as an HTML table, latest first, with each guarantee in one line."""
    rows = [
        (one.time.date(), one.dataset, one.what, one.guarantee.short(), one.state.value)
        for one in reversed(ledger.entries())
    ]
    return html_table(rows, header=("day", "data", "release", "promise", "state"), caption=caption)


def ledger_chart(ledger: Ledger, dataset: str | None) -> Charts:
    """Return a chart of each release's epsilon, their total cost, and the budget's epsilon.

    Under a budget, the total is counted by its account. Other epsilons are added up separately for each
    privacy definition, because they don't add across definitions.
    """
    name = _only(ledger, dataset)
    entries = sorted(ledger.entries(name), key=lambda one: one.time)
    paid = [one for one in entries if math.isfinite(one.guarantee.epsilon)]
    if not paid:
        return Charts(element("p", "Nothing was spent yet."))
    points = tuple(Point(place, one.guarantee.epsilon, said=_said(one)) for place, one in enumerate(paid))
    lines = [ChartLine(name="each release", points=points, dashes="2 4")]
    budget = ledger.budget(name)
    definitions = list(dict.fromkeys(one.guarantee.definition for one in paid))
    for number, definition in enumerate(definitions, start=1):
        mine = [(place, one) for place, one in enumerate(paid) if one.guarantee.definition == definition]
        label, sums = _sums([one for _, one in mine], budget)
        label += f", {'/'.join(definition)}" if len(definitions) > 1 else ""
        totals = tuple(
            Point(place, total, said=f"{label}: epsilon {number_above(total)}")
            for (place, _), total in zip(mine, sums, strict=True)
        )
        lines.append(ChartLine(name=label, points=totals, color=number % COLORS))
    if budget is not None:
        level = budget.guarantee.epsilon
        lines.append(ChartLine(name="budget", level=level, color=GRAY, dashes="7 4"))
    title = _title(ledger, name, len(entries) - len(paid))
    return Charts(line_chart(lines, title=title, x=_moments(paid), y=Axis(label="epsilon")))


def _said(entry: Entry) -> str:
    return f"{entry.time:%Y-%m-%d %H:%M}: {entry.what}, epsilon {number_above(entry.guarantee.epsilon)}"


def _sums(entries: Sequence[Entry], budget: Budget | None) -> tuple[str, list[float]]:
    """Return the total cost of entries of one definition after each of them, and how it is counted."""
    own = budget is not None and entries[0].guarantee.definition == budget.guarantee.definition
    if budget is None or not own or budget.account is Account.ADDING:
        return "added up", list(accumulate(one.guarantee.epsilon for one in entries))
    try:
        counted = [balance(budget, entries[: end + 1]).spent.epsilon for end in range(len(entries))]
    except PrivacyError:
        # Made before the budget, by a release that its account can't count.
        return "added up", list(accumulate(one.guarantee.epsilon for one in entries))
    return f"together ({budget.account.value} account)", counted


def _moments(entries: Sequence[Entry]) -> Axis:
    """Return an axis with a tick at the first release of each day, or at each release of a single day."""
    days: dict[str, float] = {}
    for place, entry in enumerate(entries):
        days.setdefault(f"{entry.time:%Y-%m-%d}", place)
    if len(days) > 1:
        return Axis(
            label="releases in order, by day (UTC)", ticks=tuple((place, day) for day, place in days.items())
        )
    times = tuple((float(place), f"{entry.time:%H:%M}") for place, entry in enumerate(entries))
    return Axis(label=f"releases in order, by time on {min(days)} (UTC)", ticks=times)


def _title(ledger: Ledger, name: str, without_privacy: int) -> str:
    budget, counted = ledger.budget(name), ledger.balance(name)
    title = f"Spent on {name}"
    if budget is not None and counted is not None:
        adds = budget.account is Account.ADDING
        allowed = "the budget" if adds else f"what its {budget.account.value} account allows"
        title += f": {100 * counted.share:.3g}% of {allowed}"
    return title + (f"; {without_privacy} releases are NOT PRIVATE" if without_privacy else "")


def _only(ledger: Ledger, dataset: str | None) -> str:
    """Return the requested dataset, or the only one."""
    names = ledger.datasets()
    if dataset is None and len(names) == 1:
        return names[0]
    if dataset is None or dataset not in names:
        raise DatasetUnclear(dataset=dataset, known=tuple(names))
    return dataset
