"""Budgets are set, kept, and raised with a reason only."""

import json
import subprocess
import sys

from command_line import one_sentence, other_remarks


def test_a_budget_is_set_kept_and_raised_with_a_reason_only(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "shop.ledger", tmp_path / "m.discreet"
    set_budget = ("budget", ledger, "--name", "shop", "--epsilon", "1.5", "--delta", "1e-5")
    assert discreet(*set_budget)[0] == 0
    arguments = ("fit", ratings, "--model", "biases", "--out", out, "--ledger", ledger, "--name", "shop")
    code, shown, _ = discreet(*arguments, "--epsilon", "1")
    assert code == 0 and "Paid as 'shop'" in " ".join(shown.split())
    one_sentence(*discreet(*arguments, "--epsilon", "1", "--force"))
    one_sentence(*discreet("budget", ledger, "--name", "shop", "--epsilon", "3"))
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3", "--reason", "approved")[0] == 0
    assert discreet(*arguments, "--epsilon", "1", "--force")[0] == 0
    one_sentence(*discreet("budget", ledger, "--epsilon", "3"))


def test_a_budget_counts_what_a_model_promises(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "shop.ledger", tmp_path / "m.discreet"
    local = ("fit", ratings, "--model", "local-channel", "--epsilon", "1", "--out", out, "--ledger", ledger)
    assert discreet("budget", ledger, "--name", "people", "--epsilon", "2")[0] == 0
    code, shown, error = discreet(*local, "--name", "people")
    one_sentence(code, shown, error)
    assert "--for" in error
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "2", "--for", "local-channel")[0] == 0
    assert discreet(*local, "--name", "shop")[0] == 0
    again = ("budget", ledger, "--name", "shop", "--epsilon", "3", "--reason", "approved", "--json")
    code, shown, _ = discreet(*again)
    assert code == 0 and json.loads(shown)["datasets"][0]["budgets"][-1]["guarantee"]["trust"] == "local"
    one_sentence(*discreet("budget", ledger, "--name", "x", "--epsilon", "2", "--for", "als"))
    one_sentence(*discreet("budget", ledger, "--name", "x", "--epsilon", "2", "--for", "oracle"))


def test_a_budget_is_shown_for_one_name_and_set_with_epsilon_only(discreet, tmp_path):
    ledger = tmp_path / "shop.ledger"
    for name in ("shop", "library"):
        assert discreet("budget", ledger, "--name", name, "--epsilon", "2")[0] == 0
    code, shown, _ = discreet("budget", ledger, "--name", "shop", "--json")
    assert code == 0 and [row["dataset"] for row in json.loads(shown)["datasets"]] == ["shop"]
    code, shown, _ = discreet("budget", ledger, "--name", "shop")
    assert code == 0 and "library" not in shown
    code, shown, error = discreet("budget", ledger, "--name", "shpo")
    one_sentence(code, shown, error)
    assert "'library', 'shop'" in error
    for ignored in (("--delta", "1e-6"), ("--reason", "why"), ("--for", "biases")):
        one_sentence(*discreet("budget", ledger, "--name", "shop", *ignored))
    code, shown, error = discreet("budget", ledger, "--name", "shop", "--epsilon", "3")
    one_sentence(code, shown, error)
    assert "--reason" in error


def test_paying_beside_the_budget_is_remarked_on(discreet, ratings, tmp_path):
    ledger = tmp_path / "shop.ledger"
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3")[0] == 0
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--ledger", ledger, "--json", "--out")
    code, shown, error = discreet(*arguments, tmp_path / "a.discreet")
    assert code == 0 and json.loads(shown)["name"] == tmp_path.name
    assert repr(tmp_path.name) in error and "'shop'" in error and len(other_remarks(error)) == 1
    assert not other_remarks(discreet(*arguments, tmp_path / "b.discreet", "--name", "shop")[2])


def test_an_empty_name_pays_nothing(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "l.ledger", tmp_path / "m.discreet"
    arguments = ("--epsilon", "1", "--name", "")
    one_sentence(*discreet("fit", ratings, "--model", "biases", *arguments, "--out", out, "--ledger", ledger))
    one_sentence(*discreet("budget", ledger, *arguments))
    assert not ledger.exists() and not out.exists()


def test_a_ledger_that_does_not_fit_on_the_disk_is_one_sentence(ratings, tmp_path):
    import resource

    ledger = tmp_path / "l.ledger"
    ended = subprocess.run(
        [sys.executable, "-m", "discreet", "budget", ledger, "--name", "shop", "--epsilon", "1"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
    )
    one_sentence(ended.returncode, ended.stdout, ended.stderr)
    assert list(tmp_path.iterdir()) == [ratings]
