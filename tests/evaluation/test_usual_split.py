"""Without a split, lists are scored on what users chose next, and ratings on a random tenth."""

import json

import numpy as np
import polars as pl
import pytest

import discreet as package
from discreet.evaluation.metrics import parse_metrics
from discreet.evaluation.scoring import usual_split
from toy import toy_interactions


def rows(users, times=None):
    """Return interactions of these users, each with an item of its own kind."""
    frame = {"user": users, "item": list(range(len(users)))}
    return package.from_frame(pl.DataFrame(frame | ({} if times is None else {"time": times})), implicit=True)


@pytest.mark.parametrize(
    ("users", "times", "metrics", "split"),
    [
        ([1, 1, 2, 2], None, "hr@10", "leave-one-out"),
        ([1, 1, 2, 2], [1, 2, 3, 4], "hr@10,ndcg@10", "leave-one-out"),
        ([1, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6], "hr@10", "time:0.1"),
        ([1, 1, 2, 3, 4, 5], None, "hr@10", "leave-one-out"),
        ([1, 2, 3, 4], None, "hr@10", "random:0.1"),
        ([1, 2, 3, 4], [5, 5, 5, 5], "hr@10", "random:0.1"),
        ([1, 1, 2, 2], [1, 2, 3, 4], "rmse", "random:0.1"),
        ([1, 1, 2, 2], [1, 2, 3, 4], "rmse,hr@10", "random:0.1"),
    ],
)
def test_the_split_fits_the_metrics_and_the_data(users, times, metrics, split):
    assert usual_split(parse_metrics(metrics), rows(users, times)) == split


def test_python_and_the_command_line_use_the_same_split(discreet, tmp_path):
    data = toy_interactions(seed=2)
    path = tmp_path / "r.csv"
    lines = [f"{u},{i}" for u, i in zip(data.rows(), data.items, strict=True)]
    path.write_text("\n".join(["user,item", *lines]) + "\n")
    read = package.read(path, implicit=True)
    model = package.Popularity(epsilon=1.0)
    usual = package.evaluate(model, read).metrics["hr@10"].mean
    assert usual == package.evaluate(model, read, split="leave-one-out").metrics["hr@10"].mean
    # The twin: a random part gives another score.
    assert usual != package.evaluate(model, read, split="random:0.1").metrics["hr@10"].mean
    code, shown, error = discreet(
        "evaluate", path, "--model", "popularity", "--implicit", "--epsilon", "1", "--json"
    )
    assert code == 0 and json.loads(shown)["metrics"]["hr@10"]["mean"] == usual, error
    (compared,) = package.compare([model], read)
    assert compared.metrics["hr@10"].mean == usual


def test_a_model_file_is_scored_on_users_that_a_split_names_first(discreet, tmp_path):
    """Users that only one file of a given split has are new users, not an error."""
    ratings, train, test = (tmp_path / name for name in ("r.csv", "train.csv", "test.csv"))
    head = "user,item,rating"
    body = [f"{u},{i},{1 + (u + i) % 5}" for u in range(40) for i in range(6)]
    ratings.write_text("\n".join([head, *body]) + "\n")
    model = tmp_path / "m.discreet"
    assert discreet("fit", ratings, "--model", "biases", "--epsilon", "1", "--out", model)[0] == 0
    train.write_text("\n".join([head, *body[:200]]) + "\n")
    test.write_text("\n".join([head, *body[200:], "900,1,4", "901,2,5"]) + "\n")
    code, shown, error = discreet("score", model, ratings, "--split", f"given:{train},{test}", "--json")
    assert code == 0, error
    assert json.loads(shown)["on"].startswith("42 rows")
    assert np.isfinite(json.loads(shown)["metrics"]["rmse"]["mean"])
