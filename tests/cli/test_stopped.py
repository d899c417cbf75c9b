"""After Ctrl-C, a command states what is spent for it; another command is told what is unfinished."""

import json

import pytest

from discreet.privacy.ledger.ledger import Ledger, Spending
from discreet.privacy.ledger.release import PaidRelease

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
    assert "entry 1," in error


def dry(discreet, *command):
    code, shown, error = discreet(*command, *PAID, "--dry-run", "--json")
    assert code == 0
    return json.loads(shown)["continues"], error


# The order matters: the model that `refit` starts from is fitted without a ledger.
COMMANDS = {
    "fit": FIT,
    "evaluate": EVALUATE,
    "evaluate, keeping the model": (*EVALUATE, "--out", "kept"),
    "refit": ("refit", "last", "ratings.csv", "--out", "model"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_dry_run_states_what_the_command_would_continue(command, shop, discreet, monkeypatch):
    assert discreet(*FIT[:-1], "last")[0] == 0
    assert dry(discreet, *command)[0] is None
    with monkeypatch.context() as patched:
        patched.setattr(Spending, "__enter__", stop)
        stopped(discreet, *command, *PAID)
    files = {path: path.read_bytes() for path in shop.iterdir() if path.name != "book"}
    assert dry(discreet, *command)[0] == 1
    # Another command doesn't continue it, and is told so.
    other = (*command, "--max-per-user", "7")
    continued, error = dry(discreet, *other)
    assert continued is None and "entry 1," in error
    # A dry run changed nothing: the real command still continues.
    assert files == {path: path.read_bytes() for path in shop.iterdir() if path.name != "book"}
    assert discreet(*command, *PAID)[0] == 0
    assert spent(shop) == [0.5]


def test_a_dry_run_counts_a_continued_spending_once(shop, discreet, monkeypatch):
    budget = ("budget", "set", "book", "--name", "shop", "--epsilon", "0.6", "--delta", "1e-5")
    assert discreet(*budget)[0] == 0
    with monkeypatch.context() as patched:
        patched.setattr(Spending, "__enter__", stop)
        stopped(discreet, *FIT, *PAID)
    code, shown, _ = discreet(*FIT, *PAID, "--dry-run", "--json")
    assert code == 0
    assert json.loads(shown)["left"]["share_spent"] == pytest.approx(0.5 / 0.6)
    # The twin spends again, which the budget doesn't cover.
    assert discreet(*FIT[:-1], "other", *PAID, "--dry-run")[0] != 0


def test_a_dry_run_sees_a_model_that_is_written_already(shop, discreet, monkeypatch):
    publish = PaidRelease.publish

    def killed(self):
        publish(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(PaidRelease, "publish", killed)
        stopped(discreet, *FIT, *PAID)
    before = (shop / "model").read_bytes()
    assert dry(discreet, *FIT)[0] == 1
    # If the model was moved away, the command draws again, and spends again.
    (shop / "model").rename(shop / "moved")
    assert dry(discreet, *FIT)[0] is None
    (shop / "moved").rename(shop / "model")
    assert discreet(*FIT, *PAID)[0] == 0
    assert (shop / "model").read_bytes() == before and spent(shop) == [0.5]
