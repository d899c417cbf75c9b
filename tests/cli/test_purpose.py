"""`--for` on the command line: what the budget is spent on, and where that is said."""

import io
import json

from assumption_examples import stated
from discreet.privacy.assumptions import Fact, Kind


def test_the_command_line_says_what_the_budget_is_for(discreet, ratings, tmp_path):
    file = tmp_path / "lists.discreet"
    fit = ("fit", ratings, "--epsilon", "4")
    code, _, error = discreet(*fit, "--for", "lists", "--out", str(file))
    assert code == 0, error
    assert "spent on lists: ratings were ignored" in discreet("label", str(file))[1].replace("\n", " ")
    shown = json.loads(discreet("label", str(file), "--json")[1])
    assert shown["parameters"]["purpose"] == "lists"
    out = str(tmp_path / "other.discreet")
    code, _, error = discreet(*fit, "--for", "lists", "--model", "biases", "--out", out)
    assert code != 0 and "a choice of user-factorization" in error
    code, _, error = discreet(*fit, "--for", "lists", "--set", "purpose=both", "--out", out)
    assert code != 0 and "say the same" in error
    code, _, error = discreet("refit", str(file), ratings, "--out", out)
    assert code != 0 and "Only models of ratings" in error


def test_plan_measures_what_the_model_is_for(discreet):
    plan = ("plan", "--people", "6000", "--epsilon", "5", "--json")
    for purpose, metric in (("lists", "hr@10"), ("ratings", "rmse")):
        assert json.loads(discreet(*plan, "--for", purpose)[1])["expected"]["metric"] == metric
    code, _, error = discreet(*plan, "--for", "lists", "--metric", "rmse")
    assert code != 0 and "measured by hr@10" in error


def test_choose_says_it_in_the_command_and_asks_again_after_a_mistake(discreet, monkeypatch):
    answers = ("choose", "--sees", "us", "--hides", "person", "--from", "ratings")
    for wanted, purpose in (("lists", "lists"), ("stars", "ratings")):
        assert f"--for {purpose}" in json.loads(discreet(*answers, "--wants", wanted, "--json")[1])["command"]
    typed = io.StringIO("lits\n7\n1\n")
    typed.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", typed)
    code, shown, error = discreet(*answers)
    assert code == 0 and shown.count("none of the answers") == 2 and "--for lists" in shown, error


def test_titles_may_be_learned_from(discreet, ratings, tmp_path):
    table = tmp_path / "titles.csv"
    rows = "".join(f"{item},The {'red' if item % 2 else 'blue'} film {item}\n" for item in range(40))
    table.write_text("item,title\n" + rows)
    fit = (
        "fit",
        ratings,
        "--epsilon",
        "4",
        "--for",
        "lists",
        "--use-titles",
        "--out",
        tmp_path / "m.discreet",
    )
    code, _, error = discreet(*fit)
    assert code != 0 and "Name one" in error
    code, _, error = discreet(*fit, "--titles", table, "--set", f"item_features={table}")
    assert code != 0 and "say the same" in error
    code, shown, error = discreet(*fit, "--titles", table, "--explain", "--json")
    assert code == 0, error
    assert "weight of similar words" in json.loads(shown)["decisions"]
    assert (Kind.DECLARED, Fact.ITEM_FEATURES) in stated(json.loads(shown)["guarantee"])
    model = ("fit", ratings, "--epsilon", "4", "--model", "biases", "--titles", table, "--use-titles")
    code, _, error = discreet(*model, "--out", tmp_path / "b.discreet")
    assert code != 0 and "does not learn from public features" in error
