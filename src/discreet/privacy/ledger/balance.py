"""Compare spending with a budget: the spent part in its account, the rest, and releases that don't fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from discreet.privacy.accounting.rounding import left_over, sum_up
from discreet.privacy.errors import BudgetExceeded, DefinitionsUnlike, NeedsEpsilon
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger.accounts import Account, Events, capacity, epsilon_of, weight
from discreet.privacy.ledger.records import FIT_DELTA, Amount, Budget, Entry
from discreet.report import TableView, number_above, number_below

# Ten spendings of 0.1 fit a budget of 1, although the floats add up to slightly more.
_TOLERANCE = 1e-12


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Balance(TableView):
    """The spent part of a budget and the rest, each as one (epsilon, delta) in the budget's account.

    If weights are added, `left` is the largest single release that still fits, at the budget's delta, and
    `share` is the part of the weight that is spent. If epsilons and deltas are added, `share` is the larger
    of their parts. `fits_usual` states whether a release with some epsilon and the delta of a usual fit (or
    0, if the budget has none) still fits.
    """

    spent: Amount
    left: Amount
    share: float
    fits_usual: bool = True

    def left_over(self) -> str:
        """Return the largest cost of one more release in words, or that none is possible."""
        if self.left.epsilon == 0:
            return "no release is possible"
        epsilon, delta = map(number_below, self.left)
        level = f"ε={epsilon}" + (f", δ={delta}" if self.left.delta else "")
        return level if self.fits_usual else f"no fit with δ={FIT_DELTA:g}; at most {level}"

    def _table(self) -> tuple[Sequence[str], Sequence[Sequence[object]], str]:
        spent = ("Spent", f"{level_above(self.spent)} ({100 * self.share:.3g}%)")
        return (), [spent, ("Left for one more release", self.left_over())], "Balance"


def level_above(amount: Amount) -> str:
    """Return a cost in words, rounded up."""
    if math.isinf(amount.epsilon):
        return "NOT PRIVATE"
    # Without spaces, so that a line breaks between the two.
    return f"ε={number_above(amount.epsilon)}" + (f", δ={number_above(amount.delta)}" if amount.delta else "")


def balance(budget: Budget, counted: Sequence[Entry]) -> Balance:
    """Return the balance of a budget after the counted spendings."""
    limit = budget.guarantee
    spent = together(budget, counted)
    if budget.account is Account.ADDING:
        left = Amount(left_over(limit.epsilon, spent.epsilon), left_over(limit.delta, spent.delta))
        parts = [spent.epsilon / limit.epsilon, spent.delta / limit.delta if limit.delta else 0.0]
        after = sum_up([spent.delta, FIT_DELTA if limit.delta else 0.0])
        fits = left.epsilon > 0 and after <= limit.delta * (1 + _TOLERANCE)
        return Balance(spent=spent, left=left, share=max(parts), fits_usual=fits)
    total, most = _weights(budget, counted), capacity(budget.account, limit)
    left = _largest_release(budget, left_over(most, total), limit.delta)
    return Balance(spent=spent, left=left, share=total / most, fits_usual=left.epsilon > 0)


def together(budget: Budget | None, entries: Sequence[Entry]) -> Amount:
    """Return the cost of these entries of one privacy definition together, as the budget's account adds up.

    Entries without a budget, or with another definition than the budget, are added, which is always valid.

    Raises:
        PrivacyError: The account can't count one of the entries.
    """
    own = budget is not None and all(
        entry.guarantee.definition == budget.guarantee.definition for entry in entries
    )
    if budget is None or not own or budget.account is Account.ADDING:
        return _added(entries)
    total, delta = _weights(budget, entries), budget.guarantee.delta
    return Amount(epsilon_of(budget.account, total, delta), delta if total else 0.0)


def require_covered(
    budget: Budget, counted: Sequence[Entry], cost: Guarantee, events: Events, ledger: str
) -> None:
    """Raise for a release that the budget doesn't cover or can't count. Messages name the `ledger`."""
    limit = budget.guarantee
    if math.isinf(cost.epsilon):
        raise NeedsEpsilon(dataset=budget.dataset)
    if cost.definition != limit.definition:
        raise DefinitionsUnlike(
            one="/".join(limit.definition), other="/".join(cost.definition), dataset=budget.dataset
        )
    if budget.account is not Account.ADDING:
        _require_weight(budget, counted, cost, events, ledger)
    elif not _fits_by_adding(limit, _added(counted), cost):
        left = balance(budget, counted).left
        raise BudgetExceeded(
            dataset=budget.dataset,
            epsilon=cost.epsilon,
            delta=cost.delta,
            left=f"epsilon={left.epsilon:g}, delta={left.delta:g}",
            ledger=ledger,
            **_advice(limit, _added(counted), cost),
        )


def _require_weight(
    budget: Budget, counted: Sequence[Entry], cost: Guarantee, events: Events, ledger: str
) -> None:
    spent, new = _weights(budget, counted), weight(budget.account, cost, events)
    most = capacity(budget.account, budget.guarantee)
    if sum_up([spent, new]) > most:
        left = left_over(most, spent)
        fits = left > 0 and cost.delta > 0
        raise BudgetExceeded(
            dataset=budget.dataset,
            epsilon=cost.epsilon,
            delta=cost.delta,
            left=f"{100 * left / most:.3g}% of its {budget.account.value} account",
            binds="epsilon" if spent < most else "all",
            account=budget.account.value,
            largest=number_below(_largest_release(budget, left, cost.delta).epsilon) if fits else "",
            ledger=ledger,
        )


def _advice(limit: Guarantee, spent: Amount, cost: Guarantee) -> dict[str, Any]:
    """Return what keeps a release from fitting into an adding account, and the budget that it would fit."""
    after = Amount(sum_up([spent.epsilon, cost.epsilon]), sum_up([spent.delta, cost.delta]))
    if after.delta > limit.delta * (1 + _TOLERANCE):
        enough = tuple(
            float(number_above(max(size), 6)) for size in ((limit.epsilon, after.epsilon), (0, after.delta))
        )
        return {"binds": "delta", "enough": enough}
    return {"binds": "epsilon" if spent.epsilon < limit.epsilon else "all"}


def _fits_by_adding(limit: Guarantee, spent: Amount, cost: Guarantee) -> bool:
    after = Amount(sum_up([spent.epsilon, cost.epsilon]), sum_up([spent.delta, cost.delta]))
    slack = 1 + _TOLERANCE
    return after.epsilon <= limit.epsilon * slack and after.delta <= limit.delta * slack


def _added(counted: Sequence[Entry]) -> Amount:
    return Amount(
        sum_up(entry.guarantee.epsilon for entry in counted),
        sum_up(entry.guarantee.delta for entry in counted),
    )


def _weights(budget: Budget, counted: Sequence[Entry]) -> float:
    return sum_up(weight(budget.account, entry.guarantee, entry.events) for entry in counted)


def _largest_release(budget: Budget, left: float, delta: float) -> Amount:
    """Return the largest Gaussian release of this weight, at this delta."""
    if left <= 0:
        return Amount(0.0, 0.0)
    squared = left if budget.account is Account.GAUSSIAN else 2 * left
    return Amount(epsilon_of(Account.GAUSSIAN, squared, delta), delta)
