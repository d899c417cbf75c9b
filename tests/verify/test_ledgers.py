"""Ledgers before the checker: events prove each entry, and spending is within the budget."""

import json
import sqlite3

import pytest
from discreet_verify import main

from discreet.privacy.ledger.ledger import Account, Ledger, Period
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.mechanisms.selection import NoisyThreshold
from verify.certificates import guarantee


def gaussian_events(epsilon, delta=1e-6):
    return [Gaussian.calibrated(epsilon=epsilon, delta=delta, l2_sensitivity=1.0).event()]


def book(path, account=None, budget=None, spendings=(), **rules):
    ledger = Ledger.open(path)
    if budget is not None:
        ledger.set_budget("films", guarantee(*budget), account=account or Account.ADDING, **rules)
    for epsilon, delta, events in spendings:
        with ledger.spend("films", guarantee(epsilon, delta), what="a fit", events=events):
            pass
    return path


def verdict(path, capsys):
    code = main([str(path)])
    out = capsys.readouterr().out
    assert out.startswith("certified" if code == 0 else "rejected")
    return code, out


GAUSSIAN = (0.5, 1e-7, gaussian_events(0.5, 1e-7))
PURE = (0.25, 0.0, [Laplace.calibrated(epsilon=0.25, l1_sensitivity=1.0).event()])
NAMES = (0.25, 1e-7, NoisyThreshold(epsilon=0.25, delta=1e-7, most=50).events())


@pytest.mark.parametrize(
    ("account", "spendings"),
    [
        (None, [GAUSSIAN, PURE, NAMES]),
        (Account.ADDING, [GAUSSIAN, PURE, NAMES]),
        (Account.GAUSSIAN, [GAUSSIAN, GAUSSIAN, PURE]),
        (Account.CONCENTRATED, [GAUSSIAN, PURE, (0.25, 0.0, ())]),
    ],
    ids=str,
)
def test_ledgers_of_every_account_are_certified(account, spendings, tmp_path, capsys):
    budget = None if account is None else (2.5, 1e-5)
    path = book(tmp_path / "l", account, budget, spendings)
    assert verdict(path, capsys)[0] == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("account", Account)
def test_a_budget_that_is_spent_to_the_end_is_certified_and_a_smaller_one_is_not(account, tmp_path, capsys):
    ledger = Ledger.open(tmp_path / "l")
    ledger.set_budget("films", guarantee(2.0, 1e-5), account=account)
    for _ in range(50):
        left = ledger.balance("films").left
        if left.epsilon < 0.05:
            break
        epsilon = min(0.7, left.epsilon) if account is Account.ADDING else left.epsilon / 2
        with ledger.spend(
            "films", guarantee(epsilon, 1e-7), what="fit", events=gaussian_events(epsilon, 1e-7)
        ):
            pass
    assert verdict(tmp_path / "l", capsys)[0] == 0
    ledger.set_budget("films", guarantee(1.0, 1e-5), account=account, reason="less")
    code, out = verdict(tmp_path / "l", capsys)
    assert code == 1 and "exceeds" in out


def test_an_entry_that_costs_more_than_it_states_is_rejected(tmp_path, capsys):
    path = book(tmp_path / "l", spendings=[(0.5, 1e-7, gaussian_events(1.0, 1e-7))])
    code, out = verdict(path, capsys)
    assert code == 1 and "entry 1" in out


def test_two_releases_in_one_entry_add_up(tmp_path, capsys):
    path = book(tmp_path / "l", spendings=[(0.5, 1e-7, 2 * gaussian_events(0.5, 1e-7))])
    assert verdict(path, capsys)[0] == 1


@pytest.mark.parametrize(
    "nothing", [{"kind": "NoOpDpEvent"}, {"kind": "ComposedDpEvent", "events": []}], ids=str
)
def test_events_that_cost_nothing_prove_nothing(nothing, tmp_path, capsys):
    """An entry whose events are empty counts as stated; an account by weights has no weight for it."""
    for account, code in ((Account.ADDING, 0), (Account.GAUSSIAN, 1)):
        path = book(tmp_path / account.value, account, (2.5, 1e-5), [GAUSSIAN])
        assert verdict(path, capsys)[0] == 0
        change(path, "spendings", events=json.dumps([nothing]))
        assert verdict(path, capsys)[0] == code


def test_an_earlier_period_does_not_count(tmp_path, capsys):
    path = book(tmp_path / "l", None, (0.6, 1e-5), [GAUSSIAN], renews=Period.MONTHLY)
    change(path, "spendings", time="2001-01-05T00:00:00+00:00")
    with Ledger.open(path).spend("films", guarantee(0.5, 1e-7), what="a fit", events=GAUSSIAN[2]):
        pass
    assert verdict(path, capsys)[0] == 0


@pytest.mark.parametrize(("earlier", "code"), [("2026-12-17", 1), ("2026-11-17", 0)])
def test_a_budget_that_renews_is_for_any_twelve_months(tmp_path, capsys, earlier, code):
    path = book(tmp_path / "l", None, (0.6, 1e-5), [GAUSSIAN], renews=Period.YEARLY)
    change(path, "spendings", time="2001-01-05T00:00:00+00:00")
    with Ledger.open(path).spend("films", guarantee(0.5, 1e-7), what="a fit", events=GAUSSIAN[2]):
        pass
    change(path, "spendings", time=f"{earlier}T10:00:00+00:00")
    change(path, "spendings", number=2, time="2027-11-17T09:00:00+00:00")
    assert verdict(path, capsys)[0] == code


def change(path, table, *, number=1, seal=True, **columns):
    """Write other values into a row of a ledger, by default the first, with a checksum that fits."""
    from discreet.privacy.ledger.records import sealed

    with sqlite3.connect(path) as connection:
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        cursor = connection.execute(f"SELECT * FROM {table} WHERE id = {number}")
        row = dict(zip([one[0] for one in cursor.description], cursor.fetchone(), strict=True)) | columns
        if seal:
            record = {key: value for key, value in json.loads(row["guarantee"]).items() if key != "row"}
            record |= {key: value for key, value in columns.items() if key in ("epsilon", "delta")}
            own = {key: value for key, value in row.items() if key not in ("id", "guarantee", "process")}
            row |= sealed(own, record)
        names = ", ".join(f"{name} = :{name}" for name in row)
        connection.execute(f"UPDATE {table} SET {names} WHERE id = {number}", row)
        for _, statement in guards:
            connection.execute(statement)


@pytest.mark.parametrize(
    "columns",
    [
        {"epsilon": 0.4},
        {"delta": 1e-9},
        {"frame": "rating/add-or-remove/joint"},
        {"events": '[{"kind": "GaussianDpEvent", "noise_multiplier": 1.0}]'},
        {"events": '[{"kind": "GaussianDpEvent", "noise_multiplier": 0}]'},
        {"events": '[{"kind": "ExponentialMechanismDpEvent", "epsilon": 0.1}]'},
        {"events": '{"kind": "NoOpDpEvent"}'},
    ],
    ids=str,
)
@pytest.mark.parametrize("seal", [True, False])
def test_a_forged_entry_is_rejected(columns, seal, tmp_path, capsys):
    path = book(tmp_path / "l", spendings=[GAUSSIAN])
    change(path, "spendings", seal=seal, **columns)
    assert verdict(path, capsys)[0] == 1


def test_changes_that_weaken_nothing_break_the_checksum(tmp_path, capsys):
    path = book(tmp_path / "l", spendings=[GAUSSIAN])
    change(path, "spendings", seal=False, what="another fit")
    code, out = verdict(path, capsys)
    assert code == 1 and "changed" in out
