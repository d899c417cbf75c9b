"""`--for` on the command line: what the budget is spent on, and where that is said."""

import io
import json

from assumption_examples import stated
from command_line import rejected
from discreet.privacy.guarantee import Fact, Kind


def test_the_command_line_says_what_the_budget_is_for(discreet, ratings, tmp_path):
    file = tmp_path / "lists.discreet"
    fit = ("fit", ratings, "--epsilon", "4")
    code, _, error = discreet(*fit, "--for", "lists", "--out", str(file))
    assert code == 0, error
    assert "Purpose" in discreet("label", str(file))[1]
    shown = json.loads(discreet("label", str(file), "--json")[1])
    assert shown["parameters"]["purpose"] == "lists"
    out = str(tmp_path / "other.discreet")
    answer = discreet(*fit, "--for", "lists", "--model", "biases", "--out", out)
    rejected(answer, "no-purpose", purpose="lists")
    both = discreet(*fit, "--for", "lists", "--set", "purpose=both", "--out", out)
    rejected(both, "options-conflict", options=("--for", "--set purpose"))
    assert discreet("refit", str(file), ratings, "--out", out)[0] == 0


def test_plan_measures_what_the_model_is_for(discreet):
    plan = ("plan", "--people", "6000", "--epsilon", "5", "--json")
    for purpose, metric in (("lists", "hr@10"), ("ratings", "rmse")):
        assert json.loads(discreet(*plan, "--for", purpose)[1])["expected"]["metric"] == metric
    rejected(discreet(*plan, "--for", "lists", "--metric", "rmse"), "options-conflict")


def test_choose_says_it_in_the_command_and_asks_again_after_a_mistake(discreet, monkeypatch, snapshot):
    answers = ("choose", "--sees", "us", "--hides", "person", "--from", "ratings")
    for wanted, purpose in (("lists", "lists"), ("stars", "ratings")):
        assert f"--for {purpose}" in json.loads(discreet(*answers, "--wants", wanted, "--json")[1])["command"]
    typed = io.StringIO("lits\n7\n1\n")
    typed.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", typed)
    code, shown, error = discreet(*answers)
    assert code == 0, error
    snapshot(shown)


def test_titles_may_be_learned_from(discreet, ratings, tmp_path, snapshot):
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
    rejected(discreet(*fit), "option-needs", options=("--use-titles",))
    rejected(discreet(*fit, "--titles", table, "--set", f"item_features={table}"), "options-conflict")
    code, shown, error = discreet(*fit, "--titles", table, "--explain", "--json")
    assert code == 0, error
    snapshot("\n".join(json.loads(shown)["decisions"]))
    assert (Kind.DECLARED, Fact.ITEM_FEATURES) in stated(json.loads(shown)["guarantee"])
    model = ("fit", ratings, "--epsilon", "4", "--model", "biases", "--titles", table, "--use-titles")
    answer = discreet(*model, "--out", tmp_path / "b.discreet")
    rejected(answer, "unsupported-by-model", option="--use-titles")
