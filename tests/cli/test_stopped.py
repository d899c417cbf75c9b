"""After Ctrl-C, a command states what is spent for it; another command is told what is unfinished."""

import pytest

from discreet.privacy.ledger.ledger import Ledger, Spending

FIT = ("fit", "ratings.csv", "--model", "popularity", "--epsilon", "0.5", "--scale", "1,5", "--out", "model")
EVALUATE = (
    "evaluate", "ratings.csv", "--private", "--model", "biases", "--epsilon", "0.5", "--scale", "1,5"
)  # fmt: skip
PAID = ("--ledger", "book", "--name", "shop", "--allow-unbudgeted")
AMOUNT = "epsilon=0.5"


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"u{user},{item},{1 + (user + item) % 5}" for user in range(20) for item in range(user % 4, 8)]
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    return tmp_path


def stop(*given, **named):
    raise KeyboardInterrupt


def stopped(discreet, *command):
    code, out, error = discreet(*command)
    assert (code, out) == (130, "")
    return error


def spent(shop):
    return [entry.guarantee.epsilon for entry in Ledger.open(shop / "book").entries()]


@pytest.mark.parametrize("command", [FIT, EVALUATE])
def test_each_stopped_start_states_what_is_spent(command, shop, discreet, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Spending, "__enter__", stop)
        first = stopped(discreet, *command, *PAID)
        second = stopped(discreet, *command, *PAID)
    assert first != second
    assert AMOUNT in first and AMOUNT in second
    assert spent(shop) == [0.5]
    code, _, error = discreet(*command, *PAID)
    assert (code, spent(shop)) == (0, [0.5])
    assert "open since" not in error


@pytest.mark.parametrize("command", [FIT, EVALUATE])
def test_a_start_that_is_stopped_before_it_spends_states_no_amount(command, shop, discreet, monkeypatch):
    monkeypatch.setattr(Ledger, "spend", stop)
    assert AMOUNT not in stopped(discreet, *command, *PAID)


def test_a_command_that_differs_spends_and_is_told_what_is_unfinished(shop, discreet, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Spending, "__enter__", stop)
        stopped(discreet, *FIT, *PAID)
    code, _, error = discreet(*FIT[:-1], "other", *PAID)
    assert (code, spent(shop)) == (0, [0.5, 0.5])
    assert "spending 1 " in error and "open since" in error
