"""Accounts that add weights: valid for adaptive choices, equal to a recount, exact at the edge."""

import contextlib
import dataclasses
import math
import os
import signal
import subprocess
import sys
from calendar import monthrange
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.stats import norm

from discreet.core.checks import BudgetError
from discreet.models.biases import Biases
from discreet.privacy.accounting.accountant import epsilon_at
from discreet.privacy.accounting.events import event_to_json, pure_event
from discreet.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_multiplier
from discreet.privacy.guarantee import Assumption, Basis, Fact, Guarantee, Kind, Neighbors, Trust, Unit
from discreet.privacy.ledger import accounts
from discreet.privacy.ledger.accounts import (
    Account,
    allowed_each,
    capacity,
    epsilon_of,
    gaussian_shift,
    weight,
)
from discreet.privacy.ledger.ledger import Ledger, Period
from discreet.testing import refuses
from toy import toy_interactions

WEIGHING = [Account.GAUSSIAN, Account.CONCENTRATED]


def promise(epsilon, delta=1e-6):
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        basis=Basis.PROVED,
    )


YEAR = promise(5.0)


def gaussian(epsilon, delta=1e-6):
    return [GaussianDpEvent(gaussian_multiplier(epsilon, delta))]


def pay(ledger, epsilon, delta=1e-6, name="shop"):
    with ledger.spend(name, promise(epsilon, delta), what="fit", events=gaussian(epsilon, delta)):
        pass


def book(account=Account.GAUSSIAN, **options):
    ledger = Ledger.in_memory()
    ledger.set_budget("shop", YEAR, account=account, **options)
    return ledger


@pytest.mark.parametrize(("releases", "expected"), [(12, 1.27), (52, 0.575)])
def test_a_year_allows_more_than_adding_does(releases, expected):
    each = allowed_each(Account.GAUSSIAN, YEAR, releases, 1e-6)
    assert each == pytest.approx(expected, abs=0.005)
    assert each > 2.5 * allowed_each(Account.ADDING, YEAR, releases, 1e-6 / releases)
    ledger = book()
    for _ in range(releases):
        pay(ledger, each)
    assert ledger.balance("shop").share == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(BudgetError):
        pay(ledger, 0.001)


@pytest.mark.parametrize("account", WEIGHING)
def test_a_plan_fits_to_the_last_digit_and_a_hair_more_does_not(account):
    for releases in (1, 2, 7, 12):
        each = allowed_each(account, YEAR, releases, 1e-6)
        ledger = book(account)
        for _ in range(releases - 1):
            pay(ledger, each)
        with pytest.raises(BudgetError):
            pay(ledger, each * (1 + 1e-9))
        pay(ledger, each)


@pytest.mark.parametrize("account", WEIGHING)
def test_an_independent_accountant_agrees(account):
    """dp-accounting's own privacy-loss distributions never find more than the account says was spent."""
    ledger, epsilons = book(account), [0.3, 1.0, 2.0, 0.7]
    for epsilon in epsilons:
        pay(ledger, epsilon)
    independent = PLDAccountant(value_discretization_interval=1e-3)
    for epsilon in epsilons:
        independent.compose(GaussianDpEvent(gaussian_multiplier(epsilon, 1e-6)))
    found, spent = independent.get_epsilon(1e-6), ledger.balance("shop").spent.epsilon
    assert found <= spent * 1.001
    if account is Account.GAUSSIAN:
        assert spent == pytest.approx(found, rel=2e-3)
        assert spent == pytest.approx(ledger.recounted("shop", 1e-6), rel=1e-9)


def test_a_wrong_account_would_be_found_out(monkeypatch):
    """The twin: an account that takes half the weight of each release disagrees with the recount."""
    monkeypatch.setattr(accounts, "_leaf_weight", lambda account, leaf: leaf.values[0] ** -2 / 2)
    ledger = book()
    pay(ledger, 2.0)
    assert ledger.balance("shop").spent.epsilon < 0.9 * ledger.recounted("shop", 1e-6)


@pytest.mark.parametrize("account", WEIGHING)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_largest_weight_costs_all_of_the_limit_and_no_more(account, epsilon):
    found = epsilon_of(account, capacity(account, promise(epsilon)), 1e-6)
    assert epsilon * (1 - 1e-6) <= found <= epsilon * (1 + 1e-9)


def test_choosing_each_release_from_the_last_output_stays_within_the_budget():
    """Play an adaptive analyst on N(0, 1) against N(mu, 1) releases; the loss obeys the Gaussian budget.

    The analyst asks for more when the last answer looked like a member's, for less otherwise, until the
    filter refuses. The loss may then exceed epsilon no more than one Gaussian of the whole weight allows; the
    twin, whose filter forgets half of the releases, breaks that.
    """
    rng, limit = np.random.default_rng(5), promise(1.0, 1e-2)
    games, epsilon = 60_000, 1.0

    def excess(forgets):
        room = np.full(games, capacity(Account.GAUSSIAN, limit))
        loss, squared, last = np.zeros(games), np.full(games, 0.02), np.zeros(games)
        for turn in range(24):
            squared = np.where(last > 0, 0.05, 0.01)
            fits = squared <= room
            mu = np.sqrt(squared) * fits
            last = rng.standard_normal(games) + mu
            loss += mu * last - mu**2 / 2
            room -= np.where(fits, squared, 0) * (0.0 if forgets and turn % 2 else 1.0)
        return float(np.mean(np.maximum(1 - np.exp(epsilon - loss), 0)))

    slack = 5 * math.sqrt(1e-2 / games)
    assert excess(False) <= 1e-2 + slack
    assert excess(True) > 1e-2 + slack


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0])
def test_a_pure_release_converts_to_the_gaussian_that_covers_it(epsilon):
    """Pure releases are post-processed two-point responses; their curve lies above the Gaussian's."""
    mu = gaussian_shift(epsilon)
    alpha = np.linspace(0, 1, 2001)
    pure = np.maximum.reduce([0 * alpha, 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha)])
    assert np.all(norm.cdf(norm.ppf(1 - alpha) - mu) <= pure + 1e-9)
    smaller = norm.cdf(norm.ppf(1 - alpha) - 0.98 * mu)
    assert np.any(smaller > pure + 1e-9)
    for account in WEIGHING:
        heavy = weight(account, promise(epsilon, 0.0), [event_to_json(pure_event(epsilon))])
        assert epsilon_of(account, heavy, 1e-9) > 0
        assert heavy <= weight(account, promise(epsilon, 0.0), []) * (1 + 1e-9)


def test_laplace_and_gaussian_share_an_account():
    ledger = book()
    with ledger.spend("shop", promise(0.5, 0.0), what="lists", events=[LaplaceDpEvent(2.0)]):
        pass
    pay(ledger, 1.0)
    spent = ledger.balance("shop").spent
    assert 1.0 < ledger.recounted("shop", 1e-6) <= spent.epsilon


def test_what_cannot_be_weighed_is_refused_and_nothing_is_spent():
    ledger = book()
    sampled = [PoissonSampledDpEvent(0.1, GaussianDpEvent(2.0))]
    for events in (sampled, []):
        with refuses("not-counted", account="gaussian"):
            ledger.spend("shop", promise(0.1), what="fit", events=events)
    assert ledger.entries() == []
    other = Ledger.in_memory()
    with other.spend("shop", promise(0.1), what="fit"):
        pass
    with refuses("not-counted", account="gaussian"):
        other.set_budget("shop", YEAR, account=Account.GAUSSIAN)
    with refuses("budget-needs-delta", account="gaussian"):
        Ledger.in_memory().set_budget("shop", promise(1.0, 0.0), account=Account.GAUSSIAN)


def test_a_used_up_delta_is_what_binds():
    ledger = Ledger.in_memory()
    ledger.set_budget("shop", promise(3.0))
    assert ledger.balance("shop").fits_usual
    pay(ledger, 1.0)
    found = ledger.balance("shop")
    assert not found.fits_usual and found.share == 1.0 and found.left == (2.0, 0.0)
    for epsilon, enough in ((0.001, (3.0, 2e-6)), (2.5, (3.5, 2e-6))):
        with refuses("budget-exceeded", binds="delta", enough=enough) as caught:
            pay(ledger, epsilon)
        assert "arg:epsilon" not in caught.value.template()
    ledger.set_budget("shop", promise(3.0, 2e-6), reason="approved")
    assert ledger.balance("shop").fits_usual and ledger.balance("shop").share == 0.5
    pay(ledger, 1.0)


def test_an_account_with_nothing_left_rejects_every_epsilon():
    for account in Account:
        ledger = Ledger.in_memory()
        ledger.set_budget("shop", promise(1.0, 1e-5), account=account)
        ledger.spend("shop", promise(1.0, 0.0), what="fit", events=[]) if account is Account.ADDING else pay(
            ledger, allowed_each(account, ledger.budget("shop").guarantee, 1, 1e-6), 1e-6
        )
        ledger.set_budget("shop", promise(0.5, 1e-5))
        assert not ledger.balance("shop").fits_usual and ledger.balance("shop").left.epsilon == 0
        with refuses("budget-exceeded", binds="all"):
            pay(ledger, 0.001)


def test_an_account_stays_what_it_was():
    ledger = book()
    pay(ledger, 0.1)
    with refuses("budget-is-fixed", dataset="shop", kept="gaussian weights"):
        ledger.set_budget("shop", YEAR, account=Account.ADDING, reason="adding is simpler")
    ledger.set_budget("shop", promise(4.0))
    assert ledger.budget("shop").account is Account.GAUSSIAN
    plain = Ledger.in_memory()
    plain.set_budget("shop", YEAR)
    pay(plain, 0.1)
    with refuses("budget-is-fixed", dataset="shop", kept="adding weights"):
        plain.set_budget("shop", YEAR, account=Account.GAUSSIAN, reason="more")
    plain.set_budget("shop", YEAR, renewed="other users", reason="a new panel")
    with refuses("budget-is-fixed", dataset="shop", kept="adding weights"):
        plain.set_budget("shop", YEAR, account=Account.GAUSSIAN, reason="more")


def test_an_account_may_change_while_nothing_is_spent():
    ledger = Ledger.in_memory()
    ledger.set_budget("shop", promise(3.0))
    ledger.set_budget("shop", promise(3.0), account=Account.GAUSSIAN)
    pay(ledger, 1.0)
    pay(ledger, 1.0)
    assert ledger.balance("shop").spent.epsilon < 2


def clocked(monkeypatch, now):
    """Return the clock of the ledger, which a test may set."""
    clock = {"now": now}

    class Clock(datetime):
        @classmethod
        def now(cls, zone=None):
            return clock["now"]

    monkeypatch.setattr("discreet.privacy.ledger.ledger.datetime", Clock)
    return clock


def test_a_period_begins_with_nothing_spent_even_if_the_clock_is_set_back(monkeypatch):
    clock = clocked(monkeypatch, datetime(2026, 12, 30, tzinfo=UTC))
    ledger = book(renews=Period.YEARLY)
    pay(ledger, 4.9)
    with pytest.raises(BudgetError):
        pay(ledger, 4.9)
    clock["now"] = datetime(2027, 1, 2, tzinfo=UTC)
    with pytest.raises(BudgetError):
        pay(ledger, 4.9)
    clock["now"] = datetime(2027, 12, 30, tzinfo=UTC)
    pay(ledger, 4.9)
    clock["now"] = datetime(2027, 12, 29, tzinfo=UTC)
    with pytest.raises(BudgetError):
        pay(ledger, 4.9)
    clock["now"] = datetime(2028, 6, 1, tzinfo=UTC)
    with pytest.raises(BudgetError):
        pay(ledger, 4.9)
    assert ledger.assumptions("shop") == (Assumption.of(Kind.LEDGER, Fact.RENEWAL, period="12 months"),)


def test_starting_anew_needs_a_reason_and_says_so_on_labels():
    ledger = book()
    pay(ledger, 4.9)
    with refuses("reason-needed"):
        ledger.set_budget("shop", YEAR, renewed="nobody of last year's people is in the data")
    ledger.set_budget("shop", YEAR, renewed="nobody of last year's people is in the data", reason="new town")
    pay(ledger, 4.9)
    with pytest.raises(BudgetError):
        pay(ledger, 4.9)
    ledger.set_budget("shop", promise(4.0))
    reason = "nobody of last year's people is in the data"
    assert ledger.assumptions("shop") == (Assumption.of(Kind.LEDGER, Fact.NEW_START, reason=reason),)


def test_a_price_is_told_without_paying():
    ledger = book()
    after = ledger.price("shop", promise(1.0), gaussian(1.0))
    assert ledger.entries() == [] and 0 < after.share < 1
    pay(ledger, 1.0)
    assert ledger.balance("shop") == after
    with pytest.raises(BudgetError):
        ledger.price("shop", promise(5.0), gaussian(5.0))


def test_four_writers_never_overspend(tmp_path):
    path = tmp_path / "year.ledger"
    each = allowed_each(Account.GAUSSIAN, YEAR, 12, 1e-6)
    with Ledger.open(path) as ledger:
        ledger.set_budget("shop", YEAR, account=Account.GAUSSIAN)
    code = (
        "import sys\n"
        "from discreet.core.checks import BudgetError\n"
        "from discreet.privacy.accounting.gaussian import gaussian_multiplier\n"
        "from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit\n"
        "from discreet.privacy.ledger import Ledger\n"
        "from discreet.privacy.accounting.events import event_types\n"
        "each = float(sys.argv[2])\n"
        "ledger, done = Ledger.open(sys.argv[1]), 0\n"
        "cost = Guarantee(epsilon=each, delta=1e-6, unit=Unit.USER, neighbors=Neighbors.ADD_OR_REMOVE,\n"
        "                 trust=Trust.JOINT, basis=Basis.PROVED)\n"
        "events = [event_types().GaussianDpEvent(gaussian_multiplier(each, 1e-6))]\n"
        "for _ in range(4):\n"
        "    try:\n"
        "        with ledger.spend('shop', cost, what='fit', events=events):\n"
        "            done += 1\n"
        "    except BudgetError:\n"
        "        pass\n"
        "    print(done, flush=True)\n"
        "    if len(sys.argv) > 3: input()\n"
    )
    victim = subprocess.Popen(
        [sys.executable, "-c", code, str(path), repr(each), "wait"],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )
    assert victim.stdout.readline() == "1\n"
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    victim.stdout.close()
    victim.stdin.close()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), repr(each)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    counts = [int(writer.communicate()[0].split()[-1]) for writer in writers]
    assert sum(counts) == 11
    with Ledger.open(path, read_only=True) as ledger:
        assert len(ledger.entries("shop")) == 12
        assert epsilon_at([GaussianDpEvent(gaussian_multiplier(each, 1e-6))] * 12, 1e-6) <= 5.0 + 1e-9


def test_the_weight_of_a_promise_is_what_its_delta_needs():
    """A release's own delta does not matter to a Gaussian account, only its noise."""
    ledger = book()
    pay(ledger, 1.0, 1e-9)
    heavy = ledger.balance("shop").share * capacity(Account.GAUSSIAN, YEAR)
    assert gaussian_delta(heavy**-0.5, 1.0) == pytest.approx(1e-9, rel=1e-6)
    assert dataclasses.asdict(ledger.balance("shop"))["left"]


def test_a_label_says_what_its_budget_takes_for_granted():
    ledger, data = Ledger.in_memory(), toy_interactions()
    ledger.set_budget(data.name, YEAR, account=Account.GAUSSIAN, renews=Period.YEARLY)
    model = Biases(epsilon=1.0).fit(data, ledger=ledger)
    assert set(ledger.assumptions(data.name)) <= set(model.guarantee.assumes)
    assert ledger.balance(data.name).spent.epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("period", list(Period))
def test_no_period_of_any_dates_costs_more_than_the_budget(period, monkeypatch):
    """An attacker sees the releases of both sides of New Year's Eve, or of any other date."""
    clock = clocked(monkeypatch, datetime(2026, 1, 31, 23, 59, tzinfo=UTC))
    ledger = Ledger.in_memory()
    ledger.set_budget("shop", promise(1.0), renews=period)
    days, months = [], {Period.YEARLY: 12, Period.QUARTERLY: 3, Period.MONTHLY: 1}[period]
    for step in range(800):
        clock["now"] += timedelta(days=1 if step % 3 else 0, hours=5)
        with contextlib.suppress(BudgetError):
            pay(ledger, 0.45, 1e-8)
            days.append(clock["now"].date())
    assert len(days) > 800 / 31 / months
    assert all(third >= later(first, months) for first, third in zip(days, days[2:], strict=False))


def test_a_spending_of_the_first_moment_of_a_period_counts(monkeypatch):
    clock = clocked(monkeypatch, datetime(2026, 3, 2, tzinfo=UTC))
    ledger = Ledger.in_memory()
    ledger.set_budget("shop", promise(1.0), renews=Period.YEARLY)
    pay(ledger, 1.0, 1e-8)
    clock["now"] = datetime(2027, 3, 1, 23, 59, tzinfo=UTC)
    with pytest.raises(BudgetError):
        pay(ledger, 0.1, 1e-8)
    clock["now"] += timedelta(minutes=1)
    pay(ledger, 1.0, 1e-8)


def later(day, months):
    """Return the same day so many months later, or the last day of a shorter month."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, monthrange(year, month + 1)[1]))


@pytest.mark.parametrize(
    ("period", "spent", "ends"),
    [
        (Period.YEARLY, (2026, 11, 17, 23), (2027, 11, 17)),
        (Period.YEARLY, (2024, 2, 29), (2025, 3, 1)),
        (Period.QUARTERLY, (2026, 11, 30), (2027, 3, 1)),
        (Period.MONTHLY, (2026, 12, 31), (2027, 1, 31)),
        (Period.MONTHLY, (2027, 1, 31), (2027, 3, 1)),
        (Period.MONTHLY, (2026, 1, 28), (2026, 2, 28)),
    ],
)
def test_a_spending_counts_up_to_the_day_before_the_same_day_of_a_later_month(period, spent, ends):
    spent, ends = datetime(*spent, tzinfo=UTC), datetime(*ends, tzinfo=UTC)
    assert period.end(spent) == ends
    assert period.start(ends) > spent >= period.start(ends - timedelta(seconds=1))


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (0.5, 1e-9), (20.0, 1e-3)])
def test_a_concentrated_total_costs_between_its_gaussian_and_the_simple_formula(rho, delta):
    """A Gaussian with this rho costs as much at least, and Bun and Steinke's formula never less."""
    found = epsilon_of(Account.CONCENTRATED, rho, delta)
    assert gaussian_epsilon((2 * rho) ** -0.5, delta) <= found
    assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta))
