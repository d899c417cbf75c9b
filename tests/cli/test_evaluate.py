"""Measuring one model."""

import json

from command_line import one_sentence


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
