"""Synthetic data from the command line."""

import json

import polars as pl

import discreet as library
from assumption_examples import stated
from command_line import one_sentence
from discreet.models.signatures import new_key, sign_file, signature_path
from discreet.privacy.guarantee import Fact, Kind


def test_data_label_and_page_are_written(discreet, ratings, tmp_path, snapshot):
    model, out, page = tmp_path / "m.discreet", tmp_path / "s.parquet", tmp_path / "s.html"
    fitted = discreet("fit", ratings, "--epsilon", "5", "--for-synthesis", "--out", model)
    assert fitted[0] == 0, fitted[2]
    code, shown, error = discreet(
        "synthesize", model, "--users", "30", "--out", out, "--page", page, "--json"
    )
    said = json.loads(shown)
    assert code == 0 and said["parameters"]["users"] == 30, error
    snapshot(said["sentence"])
    table = pl.read_parquet(out)
    assert table["user"].n_unique() == 30 and table.height == said["interactions"]
    assert "Synthetic data" in page.read_text()
    code, shown, error = discreet("label", out, "--json")
    assert code == 0 and json.loads(shown)["guarantee"]["epsilon"] == 5.0, error
    code, shown, error = discreet("label", out)
    assert code == 0, error
    snapshot(shown)
    code, shown, error = discreet("label", out, "--markdown")
    assert code == 0, error
    snapshot(shown)
    code, shown, error = discreet("synthesize", model, "--out", out, "--force", "--no-order")
    assert code == 0 and "Written to" in shown and "time" not in pl.read_parquet(out).columns, error


def test_synthetic_data_can_be_fitted_again(discreet, ratings, tmp_path, snapshot):
    model, out = tmp_path / "m.discreet", tmp_path / "s.csv"
    assert discreet("fit", ratings, "--implicit", "--epsilon", "5", "--out", model)[0] == 0
    code, shown, error = discreet("synthesize", model, "--users", "40", "--length", "6", "--out", out)
    assert code == 0 and "declared (mean 6)" in " ".join(shown.split()), error
    again = discreet("fit", out, "--implicit", "--epsilon", "inf", "--out", tmp_path / "again.discreet")
    assert again[0] == 0, again[2]
    code, shown, error = discreet(
        "fit", out, "--implicit", "--epsilon", "1", "--out", tmp_path / "b.discreet"
    )
    assert code == 0, error
    promise = stated(library.load(tmp_path / "b.discreet").guarantee)
    snapshot(promise[Kind.SYNTHETIC, Fact.DATA]["origin"])


def test_a_label_says_that_nobody_vouches_for_it(discreet, ratings, tmp_path):
    model, out = tmp_path / "m.discreet", tmp_path / "s.parquet"
    assert discreet("fit", ratings, "--implicit", "--epsilon", "5", "--out", model)[0] == 0
    assert discreet("synthesize", model, "--users", "9", "--out", out)[0] == 0
    unsigned = "the label of these data is not signed: anybody can write one"
    assert unsigned in " ".join(discreet("label", out, "--markdown")[1].split())
    new_key(tmp_path / "key.pem")
    sign_file(out, tmp_path / "key.pem")
    code, shown, error = discreet("label", out, "--markdown")
    assert code == 0 and unsigned not in " ".join(shown.split()), error
    signature_path(out).unlink()
    out.write_bytes(model.read_bytes())
    one_sentence(*discreet("label", out))


def test_what_cannot_be_done_is_one_sentence(discreet, model, ratings, tmp_path):
    out = tmp_path / "s.parquet"
    one_sentence(*discreet("synthesize", model, "--out", out))
    one_sentence(*discreet("synthesize", model, "--users", "5", "--out", tmp_path / "s.txt"))
    one_sentence(*discreet("synthesize", model, "--users", "5", "--out", out, "--compare-with", ratings))
    one_sentence(*discreet("synthesize", tmp_path / "none.discreet", "--users", "5", "--out", out))
    one_sentence(
        *discreet("fit", ratings, "--model", "biases", "--epsilon", "1", "--for-synthesis", "--out", out)
    )
    assert not out.exists()


def test_real_data_are_read_before_anything_is_written(discreet, ratings, tmp_path):
    model, out, page = tmp_path / "m.discreet", tmp_path / "s.csv", tmp_path / "s.html"
    assert discreet("fit", ratings, "--implicit", "--epsilon", "5", "--out", model)[0] == 0
    odd = tmp_path / "odd.csv"
    lines = ratings.read_text().splitlines()[1:]
    # Clicks repeat, and the file has an item that the model does not know.
    odd.write_text("\n".join(["who,what,stars", *lines, lines[0], "1,unknown,3"]) + "\n")
    asked = ("synthesize", model, "--users", "9", "--length", "5", "--out", out, "--page", page)
    one_sentence(*discreet(*asked, "--compare-with", odd))
    assert not out.exists() and not page.exists()
    one_sentence(*discreet(*asked, "--columns", "user=who,item=what"))
    code, _, error = discreet(*asked, "--compare-with", odd, "--columns", "user=who,item=what")
    assert code == 0 and out.exists() and "your data" in page.read_text(), error
