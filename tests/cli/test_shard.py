"""Sharding files, and fitting and recommending from the folder."""

import json

import numpy as np
import polars as pl
import pytest

import discreet as library
from assumption_examples import stated
from command_line import rejected
from discreet.privacy.guarantee import Fact, Kind
from discreet.sources.shards import open_shards
from shard_files import files_of
from toy import toy_interactions


@pytest.fixture
def folder(discreet, tmp_path):
    """Return a folder of two shards, made on the command line, beside the same ratings in one file."""
    data = toy_interactions(seed=2)
    files = files_of(data, tmp_path)
    out = tmp_path / "shop"
    code, shown, error = discreet(
        "shard", *files, "--out", out, "--shards", "2", "--scale", "1,5,1", "--json"
    )
    assert code == 0, error
    told = json.loads(shown)
    assert told["shards"] == 2 and told["name"] == "shop" and told["facts"]["from_file"] == ["n_items"]
    return out


def test_fit_and_recommend_from_shards(discreet, folder, tmp_path):
    model, ledger = tmp_path / "m.discreet", tmp_path / "l.ledger"
    fit = ("fit", folder, "--model", "biases", "--epsilon", "1", "--out", model, "--ledger", ledger)
    code, shown, error = discreet(*fit, "--json")
    assert code == 0, error
    assert json.loads(shown)["name"] == "shop"
    assert discreet("budget", ledger, "--json")[0] == 0
    lists = tmp_path / "lists.parquet"
    code, _, error = discreet("recommend", model, folder, "--all", "--out", lists, "-k", "3")
    assert code == 0, error
    read = pl.read_parquet(lists)
    assert read.columns == ["user", "rank", "item", "score", "expected_stars"] and read.height == 3 * 150
    data, fitted = toy_interactions(seed=2), library.load(model)
    expected = fitted.recommend_all(data, 3).sort("user", "rank")
    assert read.sort("user", "rank")["item"].to_list() == expected["item"].to_list()
    rejected(discreet("recommend", model, folder, "--all", "--out", lists), "file-exists")


def test_what_was_settled_is_not_said_again(discreet, folder, tmp_path):
    fit = ("fit", folder, "--model", "biases", "--epsilon", "1", "--out", tmp_path / "m.discreet")
    rejected(discreet(*fit, "--scale", "1,5"), "fixed-by-shards", option="--scale")
    rejected(discreet(*fit, "--implicit", "--model", "popularity"), "fixed-by-shards", option="--implicit")
    code, shown, error = discreet(*fit, "--people", "150", "--max-per-user", "5", "--json")
    assert code == 0, error
    assert stated(json.loads(shown)["guarantee"])[Kind.DECLARED, Fact.CAP] == {"ratings": 5}


def test_what_cannot_be_done_is_a_sentence(discreet, folder, ratings, tmp_path):
    out = ("--epsilon", "1", "--out", tmp_path / "m.discreet")
    rejected(
        discreet("fit", folder, "--model", "projected-gradient", *out),
        "rows-needed",
        model="projected-gradient",
    )
    rejected(
        discreet("fit", ratings, "--model", "biases", *out, "--on", "dask://local"),
        "shards-needed",
    )
    rejected(
        discreet("fit", folder, "--model", "biases", *out, "--on", "spark://x"),
        "unknown-engine",
        address="spark://x",
    )
    rejected(discreet("shard", ratings, "--out", folder), "shards-finished")
    rejected(discreet("shard", ratings, "--out", ratings), "sharding-stopped", reason="Not a directory")
    rejected(discreet("shard", ratings, "--out", "/dev/null/x"), "sharding-stopped")


def test_a_model_is_measured_on_shards(discreet, folder, ratings):
    evaluate = ("evaluate", folder, "--model", "biases", "--epsilon", "4", "--json")
    code, shown, error = discreet(*evaluate, "--split", "leave-one-out", "--metric", "rmse,hr@10")
    assert code == 0, error
    found = json.loads(shown)
    assert set(found["metrics"]) == {"rmse", "hr@10"} and found["data"]["users"] == 150
    code, shown, error = discreet(*evaluate, "--metric", "rmse", "--private", "--share", "0.2")
    assert code == 0, error
    assert json.loads(shown)["guarantee"]["epsilon"] == 4.0
    rejected(discreet(*evaluate, "--split", "time:0.1"), "split-needs-memory")
    rejected(discreet("evaluate", ratings, *evaluate[2:], "--on", "dask://local"), "shards-needed")


def test_people_and_items_are_left_out(discreet, tmp_path):
    data = toy_interactions(seed=2)
    files = files_of(data, tmp_path)
    gone, kept = data.users.ids[:7].tolist(), data.catalog.ids[:9].tolist()
    (tmp_path / "gone.txt").write_text("\n".join(map(str, [*gone, "nobody"])))
    (tmp_path / "kept.txt").write_text("\n".join(map(str, kept)))
    left_out = ("--without", tmp_path / "gone.txt", "--drop-unknown")
    shard = ("shard", *files, "--scale", "1,5,1", "--shards", "2", *left_out)
    rejected(discreet(*shard, "--out", tmp_path / "out"), "option-needs", options=("--drop-unknown",))
    rejected(
        discreet(*shard, "--out", tmp_path / "out", "--zeros", "x"),
        "unknown-choice",
        name="--zeros",
        value="x",
    )
    code, _, error = discreet(*shard, "--items", tmp_path / "kept.txt", "--out", tmp_path / "out")
    assert code == 0, error
    shards = open_shards(tmp_path / "out")
    expected = data.without_people(gone).where(np.isin(data.without_people(gone).items, range(9)))
    assert shards.n_ratings == expected.n_ratings and len(shards.catalog) == 9
    people = [one for number in range(2) for one in shards.shard(number).users.ids.tolist()]
    rated = expected.users.ids[np.diff(expected.indptr) > 0].tolist()
    assert sorted(map(str, people)) == sorted(map(str, rated))


def test_one_shard_is_told_in_the_singular(discreet, tmp_path, snapshot):
    files = files_of(toy_interactions(seed=2), tmp_path)
    code, shown, error = discreet("shard", *files, "--out", tmp_path / "one", "--shards", "1")
    assert code == 0, error
    snapshot(shown)
