"""Budgets are set, kept, and raised with a reason only."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

import discreet as package
from command_line import one_sentence, other_remarks, rejected
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.privacy.ledger.ledger import Ledger, Period
from discreet.report import number_above, number_below
from toy import toy_interactions


def test_a_budget_is_set_kept_and_raised_with_a_reason_only(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "shop.ledger", tmp_path / "m.discreet"
    set_budget = ("budget", ledger, "--name", "shop", "--epsilon", "1.5", "--delta", "1e-5")
    assert discreet(*set_budget)[0] == 0
    arguments = ("fit", ratings, "--model", "biases", "--out", out, "--ledger", ledger, "--name", "shop")
    code, shown, _ = discreet(*arguments, "--epsilon", "1")
    assert code == 0 and "'shop'" in shown
    one_sentence(*discreet(*arguments, "--epsilon", "1", "--force"))
    one_sentence(*discreet("budget", ledger, "--name", "shop", "--epsilon", "3"))
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3", "--reason", "approved")[0] == 0
    assert discreet(*arguments, "--epsilon", "1", "--force")[0] == 0
    one_sentence(*discreet("budget", ledger, "--epsilon", "3"))


def test_a_budget_counts_what_a_model_promises(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "shop.ledger", tmp_path / "m.discreet"
    local = ("fit", ratings, "--model", "local-channel", "--epsilon", "1", "--out", out, "--ledger", ledger)
    assert discreet("budget", ledger, "--name", "people", "--epsilon", "2")[0] == 0
    rejected(discreet(*local, "--name", "people"), "definitions-unlike", dataset="people")
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
    answer = discreet("budget", ledger, "--name", "shpo")
    rejected(answer, "dataset-not-in-ledger", name="shpo", known=("library", "shop"))
    for ignored in (("--delta", "1e-6"), ("--reason", "why"), ("--for", "biases")):
        one_sentence(*discreet("budget", ledger, "--name", "shop", *ignored))
    code, shown, error = discreet("budget", ledger, "--name", "shop", "--epsilon", "3")
    one_sentence(code, shown, error)
    assert "--reason" in error


def test_paying_beside_the_budget_is_refused_and_remarked_on(discreet, ratings, tmp_path):
    ledger = tmp_path / "shop.ledger"
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3")[0] == 0
    arguments = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--ledger", ledger, "--json", "--out")
    one_sentence(*discreet(*arguments, tmp_path / "a.discreet"))
    code, shown, error = discreet(*arguments, tmp_path / "a.discreet", "--allow-unbudgeted")
    assert code == 0 and json.loads(shown)["name"] == tmp_path.name
    assert repr(tmp_path.name) in error and "'shop'" in error and len(other_remarks(error)) == 1
    assert not other_remarks(discreet(*arguments, tmp_path / "b.discreet", "--name", "shop")[2])


@pytest.mark.few(1)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_no_verb_that_spends_goes_around_a_budget(discreet, ratings, tmp_path, dry):
    """The file is called otherwise than the budget: nothing is paid, and --name leads to the budget."""
    ledger, model = tmp_path / "year.ledger", tmp_path / "one.discreet"
    assert discreet("fit", ratings, "--epsilon", "1", "--out", model)[0] == 0
    assert discreet("budget", ledger, "--name", "songs", "--epsilon", "5")[0] == 0
    learn, score = ("--model", "biases", "--epsilon", "20"), ("--metric", "rmse", "--private")
    verbs = [
        ("fit", ratings, *learn, "--out", tmp_path / "m.discreet", *dry),
        ("refit", model, ratings, "--epsilon", "20", "--out", tmp_path / "m.discreet", *dry),
        ("evaluate", ratings, *learn, *score, *dry),
        (
            "compare",
            ratings,
            "--models",
            "biases",
            "--epsilons",
            "20",
            "--out",
            tmp_path / "p.html",
            *score,
            *dry,
        ),
    ]
    if not dry:
        verbs.append(("federation", "simulate", ratings, *learn, "--parties", "3", "--out", tmp_path / "f"))
    for verb in verbs:
        for name in ((), ("--name", "songs")):
            one_sentence(*discreet(*verb, "--ledger", ledger, *name))
    with package.Ledger.open(ledger, read_only=True) as book:
        assert book.entries() == []


@pytest.mark.parametrize("verb", [("evaluate", "--model", "biases", "--epsilon", "1"), ("federation",)])
def test_every_verb_that_spends_says_where_it_paid(discreet, ratings, tmp_path, verb):
    ledger = tmp_path / "year.ledger"
    if verb == ("federation",):
        verb = ("federation", "simulate", ratings, "--model", "biases", "--epsilon", "1", "--parties", "3")
        verb += ("--out", tmp_path / "m.discreet")
    else:
        verb = (verb[0], ratings, *verb[1:], "--metric", "rmse", "--private")
    code, shown, _ = discreet(*verb, "--ledger", ledger, "--name", "songs")
    assert code == 0 and "'songs'" in shown and ledger.name in "".join(shown.split())
    with package.Ledger.open(ledger, read_only=True) as book:
        assert [entry.dataset for entry in book.entries()] == ["songs"]


def test_an_empty_name_pays_nothing(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "l.ledger", tmp_path / "m.discreet"
    arguments = ("--epsilon", "1", "--name", "")
    one_sentence(*discreet("fit", ratings, "--model", "biases", *arguments, "--out", out, "--ledger", ledger))
    one_sentence(*discreet("budget", ledger, *arguments))
    assert not ledger.exists() and not out.exists()


@pytest.mark.thorough
def test_a_ledger_that_does_not_fit_on_the_disk_is_one_sentence(ratings, tmp_path):
    import resource

    ledger = tmp_path / "l.ledger"
    ended = subprocess.run(
        # Without bytecode: Python would leave a truncated file behind, which later imports read.
        [sys.executable, "-B", "-m", "discreet", "budget", ledger, "--name", "shop", "--epsilon", "1"],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)),
    )
    one_sentence(ended.returncode, ended.stdout, ended.stderr)
    assert list(tmp_path.iterdir()) == [ratings]


def test_releases_of_one_minute_stand_beside_each_other(discreet, tmp_path, snapshot):
    ledger, page = tmp_path / "year.ledger", tmp_path / "year.html"
    promise = Guarantee(
        epsilon=1.0,
        unit=Unit.USER,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.JOINT,
        basis=Basis.PROVED,
    )
    with Ledger.open(ledger) as book:
        for _ in range(3):
            book.spend("shop", promise, what="biases").__exit__(None, None, None)
    assert discreet("budget", ledger, "--html", page)[0] == 0
    text = page.read_text()
    marks = [float(x) for x in re.findall(r'translate\((\d+\.\d) [\d.]+\)" fill', text)]
    gaps = [right - left for left, right in pairwise(marks[:3])]
    # As far from each other, wherever in a minute they were, without lying on each other.
    assert len(marks) == 6 and gaps == pytest.approx([gaps[0]] * 2, abs=0.2) and gaps[0] > 12
    snapshot(text)


def test_the_table_says_what_a_budget_counts_and_how_much_is_spent(discreet, ratings, tmp_path):
    ledger, page = tmp_path / "year.ledger", tmp_path / "year.html"
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "5", "--renews", "yearly")[0] == 0
    fit = ("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", tmp_path / "m.discreet")
    assert discreet(*fit, "--ledger", ledger, "--name", "shop")[0] == 0
    code, shown, _ = discreet("budget", ledger, "--html", page)
    (entry,) = Ledger.open(ledger).entries()
    last = f"{Period.YEARLY.end(entry.time) - timedelta(days=1):%Y-%m-%d}"
    assert code == 0 and "12 months" in shown and last in shown and "(20%)" in shown
    assert last in page.read_text()


def test_a_delta_for_one_release_is_named_before_and_after_it_is_spent(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "shop.ledger", tmp_path / "m.discreet"
    budget = ("budget", "set", ledger, "--name", "shop", "--epsilon", "3", "--delta", "1e-6")
    code, _, remarks = discreet(*budget)
    assert code == 0 and "--account gaussian" in remarks and "--delta 1e-05" in remarks
    fit = ("fit", ratings, "--epsilon", "1", "--out", out, "--ledger", ledger, "--name", "shop", "--force")
    assert discreet(*fit)[0] == 0
    shown = discreet("budget", "show", ledger)[1]
    assert "no fit" in shown and "33.3%" not in shown and "100%" in shown
    code, _, refused = discreet(*fit)
    assert code == 1 and "--delta 2e-06" in refused and "--epsilon" in refused and "Lower" not in refused
    assert discreet(*budget[:-1], "2e-6", "--reason", "approved")[0] == 0
    assert discreet(*fit)[0] == 0
    code, _, remarks = discreet("budget", "set", tmp_path / "b.ledger", *budget[3:], "--account", "gaussian")
    assert code == 0 and "--account" not in remarks


def test_the_reason_of_a_budget_is_shown(discreet, tmp_path):
    ledger, page = tmp_path / "g.ledger", tmp_path / "g.html"
    budget = ("budget", "set", ledger, "--name", "g", "--epsilon", "3", "--account", "gaussian")
    assert discreet(*budget, "--reason", "DPO Meyer & Co approved")[0] == 0
    assert discreet("budget", "show", ledger, "--html", page)[0] == 0
    assert "DPO Meyer &amp; Co approved" in page.read_text(encoding="utf8")
    assert "Meyer" in discreet("budget", "show", ledger)[1]


def test_costs_are_rounded_up_alike_and_what_is_left_is_rounded_down(discreet, tmp_path):
    """The table, the page, the view in a notebook, and the statement about an erased user say one number."""
    ledger, page = tmp_path / "g.ledger", tmp_path / "g.html"
    budget = ("budget", "set", ledger, "--name", "g", "--epsilon", "3", "--delta", "1e-6")
    assert discreet(*budget, "--account", "gaussian")[0] == 0
    data = replace(toy_interactions(), name="g")
    with Ledger.open(ledger) as book:
        for _ in range(2):
            package.Biases(epsilon=1.266).fit(data, ledger=book)
        found = book.balance("g")
        spent, left = number_above(found.spent.epsilon), number_below(found.left.epsilon)
        assert float(spent) > found.spent.epsilon and float(left) < found.left.epsilon
        view = book._repr_html_()
    assert discreet("budget", "show", ledger, "--html", page)[0] == 0
    shown = discreet("budget", "show", ledger)[1]
    for text in (shown, page.read_text(encoding="utf8"), view):
        assert f"ε={spent}," in text and f"ε={left}," in text
    erased = discreet("model", "erase", ledger, "--name", "g")[1]
    assert f"epsilon {spent}," in erased
    # A plan counts Gaussian noise exactly, so its chance is smaller than this one.
    assert "plan`" in erased.split()


def test_a_full_gaussian_account_names_the_largest_epsilon_and_the_command(discreet, ratings, tmp_path):
    ledger, out = tmp_path / "the year.ledger", tmp_path / "m.discreet"
    name = ("--name", "g")
    budget = ("budget", "set", ledger, *name, "--epsilon", "2", "--delta", "1e-5", "--account", "gaussian")
    assert discreet(*budget)[0] == 0
    fit = (
        "fit",
        ratings,
        "--model",
        "biases",
        "--out",
        out,
        "--ledger",
        ledger,
        *name,
        "--force",
        "--epsilon",
    )
    assert discreet(*fit, "1.2")[0] == 0
    answer = discreet(*fit, "9")
    rejected(answer, "budget-exceeded", account="gaussian", ledger=str(ledger))
    command = shlex.split(answer.error.command)
    assert command[3] == str(ledger) and command[-4:-2] == ["--account", "gaussian"]
    largest = answer.error.largest
    rejected(discreet(*fit, f"{float(largest) * 1.01}"), "budget-exceeded")
    assert discreet(*fit, largest)[0] == 0
