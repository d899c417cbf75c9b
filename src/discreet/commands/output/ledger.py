"""A ledger as tables: what was spent, on what, and what is left."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from discreet.privacy.ledger.book import Entry, Ledger


def ledger_tables(ledger: Ledger, dataset: str | None = None) -> RenderableType:
    """Return what `discreet budget` prints: the balance of every data set (or of one), then the spendings."""
    names = ledger.datasets() if dataset is None else [dataset]
    if not names:
        return "Nothing was spent and no budget is set."
    return Group(_balances(ledger, names), _spendings(ledger.entries(dataset)))


def _balances(ledger: Ledger, names: list[str]) -> Table:
    table = Table(title="Privacy budgets", title_style="bold")
    for column in ("data", "frame", "account", "spent", "budget", "left"):
        table.add_column(column, overflow="fold")
    for name in names:
        budget, balance = ledger.budget(name), ledger.balance(name)
        totals = ledger.spent_by_frame(name)
        if budget is not None and balance is not None and totals:
            totals[budget.guarantee.frame] = balance.spent
        frames = list(totals) or ([budget.guarantee.frame] if budget else [])
        for frame in frames:
            table.add_row(
                Text(name),
                "/".join(frame),
                "none" if budget is None else budget.account.value,
                _words(*totals[frame]) if frame in totals else "nothing",
                "none set" if budget is None else _words(budget.guarantee.epsilon, budget.guarantee.delta),
                "not limited" if balance is None else _words(*balance.left),
            )
    return table


def _spendings(entries: list[Entry]) -> Table:
    table = Table(title="Spendings (open and failed ones are paid too)", title_style="bold")
    for column in ("#", "time (UTC)", "data", "what", "cost", "state"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        table.add_row(
            str(entry.id),
            f"{entry.time:%Y-%m-%d %H:%M:%S}",
            Text(entry.dataset),
            Text(entry.what + (" (simulated noise)" if entry.guarantee.simulated else "")),
            _words(entry.guarantee.epsilon, entry.guarantee.delta),
            entry.state.value,
        )
    return table


def _words(epsilon: float, delta: float) -> str:
    if math.isinf(epsilon):
        return "NOT PRIVATE"
    return f"ε = {epsilon:.6g}" + (f", δ = {delta:.4g}" if delta else "")
