"""Private scores on the command line: paid, stated with their noise, and refused where they mean nothing."""

import json
from types import SimpleNamespace

from assumption_examples import stated
from command_line import one_sentence, rejected
from discreet.cli.evaluate import _verdict
from discreet.models.storage import load
from discreet.privacy.guarantee import Fact


def test_a_model_and_its_scores_cost_one_promise(discreet, ratings, tmp_path, snapshot):
    ledger = tmp_path / "year.ledger"
    evaluate = ("evaluate", ratings, "--model", "biases", "--epsilon", "2", "--metric", "rmse", "--private")
    code, shown, _ = discreet(*evaluate, "--share", "0.2", "--ledger", ledger, "--json")
    found = json.loads(shown)
    assert code == 0 and found["guarantee"]["epsilon"] == 2.0
    score = found["scores"]["rmse"]["biases"]
    assert score["low"] <= score["value"] <= score["high"] and score["noise"] > 0
    code, shown, _ = discreet("budget", ledger, "--json")
    (entry,) = json.loads(shown)["datasets"][0]["entries"]
    assert entry["guarantee"]["epsilon"] == 2.0 and entry["what"].split()[0] == "biases"
    code, shown, _ = discreet(*evaluate)
    assert code == 0
    snapshot(shown, numbers=False)
    code, shown, _ = discreet(*evaluate, "--dry-run")
    assert code == 0
    snapshot(shown)


def test_the_better_of_two_is_named(discreet, ratings, tmp_path, snapshot):
    compare = ("compare", ratings, "--models", "biases,covariance-svd", "--epsilons", "4", "--private")
    code, shown, _ = discreet(*compare, "--metric", "rmse", "--out", tmp_path / "page.html")
    assert code == 0
    snapshot(shown, numbers=False)


def test_variants_of_a_model_keep_their_scores(discreet, ratings, tmp_path):
    models = "user-factorization,user-factorization:feedback=implicit"
    compare = ("compare", ratings, "--models", models, "--epsilons", "4", "--private", "--metric", "hr@5")
    code, shown, error = discreet(*compare, "--out", tmp_path / "page.html", "--json")
    named = {"user-factorization", "user-factorization feedback=implicit"}
    assert code == 0 and set(json.loads(shown)["scores"]["hr@5"]) == named, error


def test_a_verdict_says_when_noise_hides_it(snapshot):
    def scores(*values, noise):
        return [SimpleNamespace(value=value, noise=noise) for value in values]

    clear, close = scores(0.9, 1.2, noise=0.01), scores(0.9, 0.91, noise=0.01)
    large, small = scores(0.9, noise=0.1), scores(0.9, noise=0.001)
    snapshot("\n".join(_verdict("rmse", some, "a") for some in (clear, close, large, small)))


def test_what_cannot_be_scored_privately_is_one_sentence(discreet, ratings, tmp_path):
    evaluate = ("evaluate", ratings, "--epsilon", "2")
    one_sentence(*discreet(*evaluate, "--model", "biases", "--metric", "mrr", "--private"))
    one_sentence(*discreet(*evaluate, "--model", "one-bit-input", "--metric", "rmse", "--private"))
    one_sentence(*discreet(*evaluate, "--model", "biases", "--ledger", tmp_path / "x.ledger"))
    one_sentence(*discreet(*evaluate, "--model", "biases", "--private", "--share", "2"))


def test_private_scores_of_lists_are_hits_and_refuse_what_they_would_ignore(discreet, ratings):
    asked = ("evaluate", ratings, "--implicit", "--epsilon", "30", "--private")
    code, out, error = discreet(*asked, "--json")
    assert code == 0 and list(json.loads(out)["scores"]) == ["hr@10"], error
    # No scale is public where none is read.
    assert "--scale" not in error and Fact.SCALE not in {
        fact for _, fact in stated(json.loads(out)["guarantee"])
    }
    for option, value in (("--split", "time"), ("--repeat", "3"), ("--seed", "1")):
        code, out, error = discreet(*asked, option, value)
        one_sentence(code, out, error)
        assert option in error
    code, out, error = discreet("compare", ratings, "--private", "--epsilons", "1,2")
    one_sentence(code, out, error)
    assert "one epsilon" in error


def test_a_dry_run_forecasts_the_noise(discreet, ratings):
    asked = ("evaluate", ratings, "--epsilon", "1", "--private", "--dry-run", "--implicit")
    assert "Pass --people" in discreet(*asked)[1]

    def noise(*more):
        said = " ".join(discreet(*asked, *more)[1].split())
        return float(said.partition("± ")[2].split()[0])

    few, many = noise("--people", "1000"), noise("--people", "100000")
    assert 80 < few / many < 120
    assert noise("--people", "1000", "--share", "0.2") < 0.5 * few


def test_the_forecast_is_about_the_noise_that_scores_have(discreet, ratings, tmp_path):
    asked = ("evaluate", ratings, "--epsilon", "4", "--private", "--implicit", "--people", "60")
    said = " ".join(discreet(*asked, "--dry-run")[1].split())
    forecast = float(said.partition("± ")[2].split()[0])
    scores = json.loads(discreet(*asked, "--json")[1])["scores"]["hr@10"]
    (score,) = scores.values()
    people = score["people"] / 60
    assert 0.3 * forecast < 1.96 * score["noise"] * people < 1.7 * forecast


def test_the_model_of_private_scores_is_kept_at_no_further_cost(discreet, ratings, tmp_path):
    """The model and its scores are one entry of the ledger, and the model's own part is smaller."""
    ledger, model = tmp_path / "year.ledger", tmp_path / "m.discreet"
    options = ("--epsilon", "2", "--private", "--share", "0.2", "--ledger", ledger, "--out", model)
    evaluate = ("evaluate", ratings, "--model", "biases", "--metric", "rmse", *options)
    code, shown, told = discreet(*evaluate, "--json")
    assert code == 0 and json.loads(shown)["file"] == str(model), told
    assert 1 < load(model).guarantee.epsilon < 2
    assert {one.name for one in tmp_path.iterdir()} >= {"m.discreet", "year.ledger"}
    rejected(discreet(*evaluate), "file-exists")
    found = json.loads(discreet("budget", ledger, "--json")[1])
    assert len(found["datasets"][0]["entries"]) == 1


def test_the_short_help_offers_private_scores(discreet):
    assert "--private" in discreet("evaluate", "--help")[1]


def test_a_model_that_is_not_kept_is_announced_before_the_budget_is_spent(discreet, ratings, tmp_path):
    book, out = tmp_path / "x.ledger", tmp_path / "m.discreet"
    asked = (
        "evaluate",
        ratings,
        "--implicit",
        "--private",
        "--epsilon",
        "1",
        "--ledger",
        book,
        "--name",
        "us",
    )
    assert "--out" in discreet(*asked, "--dry-run")[2]
    assert "--out" not in discreet(*asked, "--dry-run", "--out", out)[2]
    code, shown, error = discreet(*asked)
    assert code == 0 and "--out" in error and "--out" not in shown
    # A spending that a budget rejects is an error alone.
    assert discreet("budget", "set", book, "--name", "us", "--epsilon", "1.1", "--delta", "1e-5")[0] == 0
    one_sentence(*discreet(*asked, "--share", "0.05"))
