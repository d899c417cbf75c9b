"""Show a ledger as tables or as one page: what was spent, on what, and what is left."""

from __future__ import annotations

import math
from datetime import datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from discreet.cli.output.label import page
from discreet.core.files import write_whole
from discreet.privacy.ledger.book import Entry, Ledger

if TYPE_CHECKING:
    from discreet.privacy.ledger.book import Entry, Ledger


def ledger_tables(ledger: Ledger, dataset: str | None = None) -> RenderableType:
    """Return what `discreet budget` prints: the balance of every dataset (or of one), then the spending."""
    names = ledger.datasets() if dataset is None else [dataset]
    if not names:
        return "Nothing was spent and no budget is set."
    return Group(_balances(ledger, names), _spendings(ledger.entries(dataset)))


def _balances(ledger: Ledger, names: list[str]) -> Table:
    table = Table(title="Privacy budgets", title_style="bold")
    for column in ("data", "privacy definition", "account", "spent", "budget", "left"):
        table.add_column(column, overflow="fold")
    for name in names:
        budget, balance = ledger.budget(name), ledger.balance(name)
        totals = ledger.spent_by_definition(name)
        if budget is not None and balance is not None and totals:
            totals[budget.guarantee.definition] = balance.spent
        definitions = list(totals) or ([budget.guarantee.definition] if budget else [])
        for definition in definitions:
            table.add_row(
                Text(name),
                "/".join(definition),
                "none" if budget is None else budget.account.value,
                _words(*totals[definition]) if definition in totals else "nothing",
                "none set" if budget is None else _words(budget.guarantee.epsilon, budget.guarantee.delta),
                "not limited" if balance is None else _words(*balance.left),
            )
    return table


def _spendings(entries: list[Entry]) -> Table:
    table = Table(title="Spending (open and failed releases are paid, too)", title_style="bold")
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


_WIDTH, _HEIGHT, _EDGE = 640, 220, 36


def write_ledger_page(ledger: Ledger, dataset: str | None, path: Path) -> None:
    """Write an HTML page about one dataset or all."""
    names = ledger.datasets() if dataset is None else [dataset]
    body = "<h1>What was spent</h1>" + "".join(_section(ledger, name) for name in names)
    write_whole(path, page("What was spent", body).encode())


def _section(ledger: Ledger, name: str) -> str:
    entries, budget, balance = ledger.entries(name), ledger.budget(name), ledger.balance(name)
    lines = [f"<h2>{escape(name)}</h2>"]
    if budget is None or balance is None:
        lines.append("<p>No budget is set: spending is not limited.</p>")
    else:
        lines.append(
            f"<p>Budget: epsilon {budget.guarantee.epsilon:g}, delta {budget.guarantee.delta:g}, by "
            f"{budget.account.value}; spent so far: epsilon {balance.spent.epsilon:.4g} "
            f"({100 * balance.share:.3g} %); left for one more release: epsilon "
            f"{balance.left.epsilon:.4g}.</p>"
        )
        lines += [f"<p>Assumed: {escape(text)}.</p>" for text in budget.assumptions()]
    lines.append(_drawing(entries))
    rows = "".join(
        f"<tr><td>{entry.time:%Y-%m-%d %H:%M}</td><td>{escape(entry.what)}</td>"
        f"<td>{entry.guarantee.epsilon:g}</td><td>{entry.guarantee.delta:g}</td><td>{entry.state.value}</td></tr>"
        for entry in entries
    )
    head = "<tr><th>when (UTC)</th><th>what</th><th>epsilon</th><th>delta</th><th>state</th></tr>"
    return "".join([*lines, f"<table>{head}{rows}</table>"])


def _drawing(entries: list[Entry]) -> str:
    """Return a bar chart of the epsilon of each entry over time."""
    finite = [entry for entry in entries if entry.guarantee.epsilon < float("inf")]
    if not finite:
        return "<p>Nothing was spent yet.</p>"
    times = [entry.time for entry in finite]
    most = max(entry.guarantee.epsilon for entry in finite)
    bars = "".join(
        f'<rect x="{_place(entry.time, times):.1f}" width="8" fill="currentColor" '
        f'y="{_HEIGHT - _EDGE - _length(entry, most):.1f}" height="{_length(entry, most):.1f}">'
        f"<title>{entry.time:%Y-%m-%d}: {escape(entry.what)}, epsilon {entry.guarantee.epsilon:g}</title>"
        "</rect>"
        for entry in finite
    )
    base = _HEIGHT - _EDGE
    ends = (
        f'<text x="{_EDGE}" y="{base + 20}" font-size="12" fill="currentColor">{min(times):%Y-%m-%d}</text>'
        f'<text x="{_WIDTH - _EDGE}" y="{base + 20}" font-size="12" fill="currentColor" text-anchor="end">'
        f"{max(times):%Y-%m-%d}</text>"
        f'<text x="{_EDGE}" y="14" font-size="12" fill="currentColor">epsilon {most:.3g}</text>'
        f'<line x1="{_EDGE}" x2="{_WIDTH - _EDGE + 8}" y1="{base}" y2="{base}" stroke="currentColor"/>'
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" width="100%" '
        f'aria-label="Epsilon of each of {len(finite)} releases over time">{bars}{ends}</svg>'
    )


def _place(time: datetime, times: list[datetime]) -> float:
    span = (max(times) - min(times)).total_seconds()
    share = (time - min(times)).total_seconds() / span if span else 0.5
    return _EDGE + share * (_WIDTH - 2 * _EDGE)


def _length(entry: Entry, most: float) -> float:
    return (_HEIGHT - _EDGE - 20) * entry.guarantee.epsilon / most
