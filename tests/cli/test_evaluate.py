"""Measuring one model."""

import json

from command_line import one_sentence, rejected
from discreet.cli.options.declared import Measuring


def test_evaluate_prints_one_object_with_the_agreed_names(discreet, ratings):
    arguments = ("evaluate", ratings, "--model", "biases", "--epsilon", "2", "--repeat", "2", "--json")
    code, out, _ = discreet(*arguments, "--metric", "rmse,mae")
    found = json.loads(out)
    assert code == 0 and out.count("\n") == 1
    assert set(found) >= {"model", "parameters", "data", "guarantee", "metrics", "seconds", "peak_mb"}
    assert set(found["metrics"]) == {"rmse", "mae"}
    assert set(found["metrics"]["rmse"]) >= {"mean", "std", "runs"} and found["metrics"]["rmse"]["runs"] == 2
    assert set(found["data"]) == {"users", "items", "ratings"} and set(found["seconds"]) == {"fit", "predict"}
    _, again, _ = discreet(*arguments, "--metric", "rmse,mae")
    assert json.loads(again)["metrics"] == found["metrics"]
    code, out, _ = discreet("evaluate", ratings, "--model", "biases", "--epsilon", "2")
    assert code == 0 and "rmse" in out and "SIMULATED" in out


def test_hidden_ratings_that_are_learned_from_are_counted(discreet, ratings, tmp_path):
    lines = ratings.read_text().splitlines(keepends=True)
    (tmp_path / "test.csv").write_text("".join(lines[:4]))
    arguments = ("--model", "biases", "--epsilon", "1", "--split", "given:ratings.csv,test.csv")
    code, out, error = discreet("evaluate", ratings, *arguments)
    one_sentence(code, out, error)
    assert "3 of 3 hidden ratings" in error and "--duplicates" not in error


def test_metrics_may_be_repeated_and_none_is_lost(discreet, ratings):
    arguments = ("evaluate", ratings, "--model", "biases", "--epsilon", "5", "--json")
    code, out, _ = discreet(*arguments, "--metric", "rmse", "--metric", "hr@5,mrr")
    assert code == 0 and list(json.loads(out)["metrics"]) == ["rmse", "hr@5", "mrr"]
    code, out, _ = discreet(*arguments)
    assert code == 0 and list(json.loads(out)["metrics"]) == ["rmse"]


def test_lists_are_asked_for_hits_and_ratings_for_errors(discreet, ratings):
    asked = ("evaluate", ratings, "--epsilon", "inf")
    for more, metrics in (
        (("--implicit",), ["ndcg@10", "hr@10"]),
        (("--for", "lists"), ["ndcg@10", "hr@10"]),
        (("--model", "biases"), ["rmse"]),
    ):
        code, out, error = discreet(*asked, *more, "--json")
        assert code == 0 and list(json.loads(out)["metrics"]) == metrics, error
        assert all(set(one) <= set(metrics) for one in json.loads(out)["references"].values())
    answer = discreet(*asked, "--for", "lists", "--metric", "rmse")
    rejected(answer, "metric-does-not-fit", metric="rmse", examples=("ndcg@10", "hr@10"))


def test_the_table_says_which_way_is_better_and_what_a_simple_baseline_reaches(
    discreet, ratings, snapshot, monkeypatch
):
    monkeypatch.chdir(ratings.parent)
    asked = (
        "evaluate",
        ratings.name,
        "--model",
        "biases",
        "--epsilon",
        "inf",
        "--metric",
        "rmse,hr@5,diversity@5",
    )
    code, out, _ = discreet(*asked, "--split", "leave-one-out")
    rows = {line.split()[1]: line for line in out.splitlines() if line.startswith("│")}
    assert code == 0
    snapshot(out, numbers=False)
    # Lists of chance would be the same for everybody: no baseline of variety.
    assert "(popularity)" in rows["diversity@5"] and "(chance)" not in rows["diversity@5"]


def test_splits_need_no_number_and_given_files_have_the_same_columns(discreet, ratings, tmp_path):
    odd = ratings.read_text().replace("userId,movieId,rating", "who,what,stars")
    (tmp_path / "odd.csv").write_text(odd)
    lines = odd.splitlines()
    (tmp_path / "train.csv").write_text("\n".join(lines[:-50]) + "\n")
    (tmp_path / "test.csv").write_text("\n".join([lines[0], *lines[-50:]]) + "\n")
    asked = ("evaluate", tmp_path / "odd.csv", "--model", "biases", "--epsilon", "inf")
    named = ("--columns", "user=who,item=what,rating=stars")
    for split in ("random", "kfold", f"given:{tmp_path / 'train.csv'},{tmp_path / 'test.csv'}"):
        code, _, error = discreet(*asked, *named, "--split", split)
        assert code == 0, error
    code, out, error = discreet(*asked, *named, "--split", "time")
    one_sentence(code, out, error)
    assert "no times" in error


def test_a_baseline_that_is_as_good_and_a_shared_budget_are_said(discreet, ratings, snapshot, monkeypatch):
    # A path as long as that of the folder would break the title of the table anywhere.
    monkeypatch.chdir(ratings.parent)

    def said(*options):
        code, shown, error = discreet("evaluate", ratings.name, *options)
        assert code == 0, error
        return shown

    snapshot(said("--epsilon", "0.01"), numbers=False)
    assert "--for ratings" not in said("--epsilon", "0.01", "--for", "ratings")
    # The twin: without noise a model that learns is better, and there is no budget.
    snapshot(said("--epsilon", "inf", "--model", "als"), numbers=False)


def test_lists_of_a_random_part_get_a_hint():
    (said,) = Measuring().hints(["rmse", "hr@10"], timed=True)
    assert "leave-one-out" in said and "--split time" in said
    # Data without times cannot be split by time.
    (said,) = Measuring(split="random").hints(["hr@10"], timed=False)
    assert "leave-one-out" in said and "--split time" not in said
    assert Measuring().hints(["rmse"], timed=True) == Measuring().hints(["hr@10"], timed=True) == []
    fitting = [Measuring(split=split).hints(["hr@10"], timed=True) for split in ("leave-one-out", "time")]
    assert fitting == [[], []]


def test_groups_are_scored_in_a_table_and_on_a_page(discreet, ratings, tmp_path):
    page = tmp_path / "groups.html"
    arguments = ("evaluate", ratings, "--model", "biases", "--epsilon", "2", "--by", "activity")
    code, out, _ = discreet(*arguments, "--out", page, "--json")
    groups = json.loads(out)["groups"]
    assert code == 0 and all(set(one) == {"held_out", "metrics", "without_noise"} for one in groups.values())
    assert all(name in page.read_text() for name in groups)
    assert "By activity" in discreet(*arguments)[1]
    rejected(discreet(*arguments[:-1], "age"), "groups-need-table", column="age")
    rejected(discreet(*arguments, "--private"), "option-does-not-apply", options=("--by",))
