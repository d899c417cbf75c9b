"""Show a ledger as tables or as one page: what was spent, on what, and what is left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from discreet.cli import lib
from discreet.privacy import PAID_AT_ONCE, Ledger
from discreet.privacy.ledger.balance import level_above
from discreet.privacy.ledger.ledger import Account, Entry
from discreet.report import Html, element, meter, number_above, page, table, write_page

#: The kind of its page, by which we know our own.
PAGE = "ledger"
_ONE_MORE = (
    "Left is the largest cost of one more release. Spent and left add up to the budget only in an adding "
    "account: in the others, two releases together cost less than their sum, and the percentage reflects "
    "that."
)


def ledger_tables(ledger: Ledger, dataset: str | None = None) -> RenderableType:
    """Return the output of `discreet budget`: the balance of every dataset (or of one), then the spending."""
    names = ledger.datasets() if dataset is None else [dataset]
    if not names:
        return "Nothing was spent and no budget is set."
    entries = ledger.entries(dataset)
    spent = _spendings(entries) if entries else "Nothing was spent yet."
    return Group(_balances(ledger, names), spent)


def _balances(ledger: Ledger, names: list[str]) -> Table:
    table = Table(title="Privacy budgets", title_style="bold")
    for column in ("data", "protects", "account kind", "spent", "budget", "left"):
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
                _protects(definition, definitions),
                "-" if budget is None else budget.account.value,
                _spent(
                    totals.get(definition),
                    balance if budget and definition == budget.guarantee.definition else None,
                ),
                _allowed(ledger, budget),
                "not limited" if balance is None else balance.left_over(),
            )
    budgets = [budget for budget in map(ledger.budget, names) if budget is not None]
    captions = [_ONE_MORE] * any(budget.account is not Account.ADDING for budget in budgets)
    captions += [_said_of_years()] * any(_followed_anew(ledger, budget) for budget in budgets)
    table.caption = " ".join(captions) or None
    return table


def _followed_anew(ledger: Ledger, budget: lib.Budget) -> bool:
    """Return whether a continual release was spent from a budget that renews."""
    followed = any(entry.what == "follow" for entry in ledger.entries(budget.dataset))
    return budget.renews is not None and followed


def _said_of_years() -> str:
    text = PAID_AT_ONCE.text
    return f"{text[0].upper()}{text[1:]}, including later ones."


def _spent(total: lib.Amount | None, balance: lib.Balance | None) -> str:
    """Return the spending, and which part of the budget it is."""
    if total is None:
        return "nothing"
    return _words(*total) + ("" if balance is None else f"\n({100 * balance.share:.3g}%)")


def _window(ledger: Ledger, budget: lib.Budget) -> str:
    """Return which spending a budget counts, and when less will count."""
    if budget.renews is None:
        return ""
    now = datetime.now(UTC)
    entries = ledger.entries(budget.dataset)
    ends = [budget.renews.end(one.time) for one in entries if one.id > budget.after]
    less = min((end for end in ends if end > now), default=None)
    ends_on = "" if less is None else f"\n(oldest cost counts until {less - timedelta(days=1):%Y-%m-%d})"
    return f"limits any {budget.renews.window}{ends_on}"


def _allowed(ledger: Ledger, budget: lib.Budget | None) -> Text:
    """Return a budget, what it counts, and why it was reset."""
    if budget is None:
        return Text("none set")
    lines = [_words(budget.guarantee.epsilon, budget.guarantee.delta)]
    if counted := _window(ledger, budget):
        lines.append(counted)
    if budget.renewed:
        lines.append(f"started anew: {budget.renewed}")
    if budget.reason.strip():
        lines.append(f"reason: {budget.reason}")
    return Text("\n".join(lines))


def _protects(definition: lib.Frame, others: Sequence[lib.Frame]) -> str:
    """Return unit and trust, and how neighbors differ if only that distinguishes two definitions."""
    unit, neighbors, trust = definition
    twins = [other for other in others if (other[0], other[2]) == (unit, trust)]
    return f"{unit}, {trust}" + (f", {neighbors}" if len(twins) > 1 else "")


def _spendings(entries: list[Entry]) -> Table:
    table = Table(title="Spending (including open and failed releases)", title_style="bold")
    for column in ("#", "time (UTC)", "data", "what", "cost", "state"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        table.add_row(
            str(entry.id),
            f"{entry.time:%Y-%m-%d %H:%M}",
            Text(entry.dataset),
            Text(entry.what + (" (simulated noise)" if entry.guarantee.simulated else "")),
            _words(entry.guarantee.epsilon, entry.guarantee.delta),
            entry.state.value,
        )
    return table


def _words(epsilon: float, delta: float) -> str:
    return level_above(lib.Amount(epsilon, delta))


def write_ledger_page(ledger: Ledger, dataset: str | None, path: Path, *, force: bool) -> None:
    """Write an HTML page about one dataset or all."""
    names = ledger.datasets() if dataset is None else [dataset]
    body = [element("h1", "What was spent")]
    for name in names:
        body += _section(ledger, name)
    write_page(path, page("What was spent", body, kind=PAGE), kind=PAGE, force=force)


def _section(ledger: Ledger, name: str) -> Iterator[Html]:
    entries, budget, balance = ledger.entries(name), ledger.budget(name), ledger.balance(name)
    yield element("h2", name)
    if budget is None or balance is None:
        yield element("p", "No budget is set: spending is not limited.")
    else:
        spent = f"{100 * balance.share:.3g}% of the budget is spent"
        yield meter(balance.share, spent)
        limit = _words(budget.guarantee.epsilon, budget.guarantee.delta)
        yield element(
            "p",
            f"{spent}: {_words(*balance.spent)} of {limit}, by the {budget.account.value} account. Left for "
            f"one more release: {balance.left_over()}."
            + (f" The budget {counted}." if (counted := _window(ledger, budget)) else ""),
        )
        for old in ledger.budgets(name):
            size = _words(old.guarantee.epsilon, old.guarantee.delta)
            why = f" Reason: {old.reason}" if old.reason.strip() else ""
            yield element("p", f"Budget set on {old.time:%Y-%m-%d}: {size}.{why}", "quiet")
        for assumed in budget.assumptions():
            yield element("p", f"Assumed: {assumed.text}.", "quiet")
        if _followed_anew(ledger, budget):
            yield element("p", _said_of_years(), "quiet")
    yield ledger.plot(name)
    if entries:
        yield table(
            ("what", "when (UTC)", "epsilon", "delta", "state"),
            [_row(entry) for entry in entries],
            f"Releases of {name}",
            numbers={2, 3},
        )
        yield element("p", "Open and failed releases are spent, too.", "quiet")


def _row(entry: Entry) -> tuple[str, ...]:
    promise = entry.guarantee
    level = "NOT PRIVATE" if math.isinf(promise.epsilon) else number_above(promise.epsilon)
    what = entry.what + (" (simulated noise)" if promise.simulated else "")
    return what, f"{entry.time:%Y-%m-%d %H:%M}", level, f"{promise.delta:g}", entry.state.value
