"""A model file is scored as it is served: fitted or followed, in its own catalog."""

import json

import pytest

from command_line import one_sentence
from discreet.data.reading.readers import read
from discreet.data.splits import parse_split
from discreet.evaluation.scoring import measure
from discreet.models.storage import load

DAY = 86_400


@pytest.fixture
def clicks(tmp_path):
    """Return a log in which even users choose even items, and odd users odd ones."""
    path = tmp_path / "clicks.csv"
    rows = (
        f"u{user},i{(user + 2 * step) % 20 if step < 6 else 30},{DAY * (10 * step + user % 7)}"
        for user in range(200)
        for step in range(7)
    )
    path.write_text("user,item,time\n" + "\n".join(rows) + "\n")
    return path


def test_scores_are_those_of_the_lists_that_are_served(discreet, clicks, tmp_path):
    out = tmp_path / "m.discreet"
    assert discreet("fit", clicks, "--implicit", "--epsilon", "8", "--out", out)[0] == 0
    code, shown, error = discreet(
        "score", out, clicks, "--split", "time:1970-02-15", "--metric", "hr@10", "--json"
    )
    found = json.loads(shown)["metrics"]["hr@10"]
    model = load(out)
    data = read(clicks, implicit=True, catalog=model.catalog)
    (parts,) = parse_split("time:1970-02-15").splits(data, 0)
    assert code == 0 and found["mean"] == measure(model, parts.train, parts.test, "hr@10")["hr@10"], error
    # The twin: a model of noise is worse.
    noise = tmp_path / "n.discreet"
    assert discreet("fit", clicks, "--implicit", "--epsilon", "0.01", "--out", noise)[0] == 0
    shown = discreet("score", noise, clicks, "--split", "time:1970-02-15", "--metric", "hr@10", "--json")[1]
    assert json.loads(shown)["metrics"]["hr@10"]["mean"] < found["mean"]


def test_followed_models_are_scored_too(discreet, clicks, tmp_path, snapshot, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state, out, items = tmp_path / "s.follow", tmp_path / "m.discreet", tmp_path / "items.txt"
    items.write_text("".join(f"i{k}\n" for k in [*range(20), 30]))
    assert discreet("follow", "start", state, "--items", items, "--epsilon", "8", "--releases", "4")[0] == 0
    assert discreet("follow", "add", state, clicks, "--out", out)[0] == 0
    code, shown, error = discreet("score", out.name, clicks.name, "--split", "leave-one-out")
    assert code == 0, error
    snapshot(shown, numbers=False)


def test_unknown_items_are_left_out_and_mistakes_are_one_sentence(discreet, clicks, tmp_path):
    out, more = tmp_path / "m.discreet", tmp_path / "more.csv"
    assert discreet("fit", clicks, "--implicit", "--epsilon", "8", "--out", out)[0] == 0
    more.write_text(clicks.read_text() + f"u1,new,{DAY}\n")
    assert discreet("score", out, more, "--split", "leave-one-out")[0] == 0
    one_sentence(*discreet("score", out, clicks, "--items", more))
    one_sentence(*discreet("score", clicks, clicks))
    one_sentence(*discreet("score", out, tmp_path / "none.csv"))
    one_sentence(*discreet("evaluate", out, "--epsilon", "1"))


def test_data_of_another_catalog_are_not_called_empty(discreet, clicks, tmp_path):
    out, other = tmp_path / "m.discreet", tmp_path / "other.csv"
    assert discreet("fit", clicks, "--implicit", "--epsilon", "8", "--out", out)[0] == 0
    other.write_text("user,item\nu1,x1\nu1,x2\nu2,x1\n")
    code, shown, error = discreet("score", out, other)
    one_sentence(code, shown, error)
    assert "[empty-data]" in error and "catalog" in error
    assert "x1" not in error


def test_a_model_of_lists_has_no_errors_and_repeats_are_not_asked_for(discreet, clicks, tmp_path):
    out = tmp_path / "m.discreet"
    assert discreet("fit", clicks, "--implicit", "--epsilon", "8", "--out", out)[0] == 0
    one_sentence(*discreet("score", out, clicks, "--metric", "rmse"))
    again = tmp_path / "again.csv"
    again.write_text(
        clicks.read_text() + "".join(f"u{user},i{user % 20},{90 * DAY}\n" for user in range(200))
    )
    asked = ("--split", "time:1970-02-15", "--metric", "hr@10", "--json")
    plain = json.loads(discreet("score", out, clicks, *asked)[1])["metrics"]
    one_sentence(*discreet("score", out, again, *asked, "--duplicates", "count"))
    for more in ((), ("--duplicates", "last")):
        assert json.loads(discreet("score", out, again, *asked, *more)[1])["metrics"] == plain


def test_a_later_file_is_read_with_the_schema_that_the_model_remembers(discreet, tmp_path):
    shop, later, schema = (tmp_path / name for name in ("shop.csv", "later.csv", "shop.toml"))
    dates = ("13.04.2024", "03.04.2024", "28.02.2024")
    rows = [f"K{user};art {(user + step) % 9};4,5;{dates[step]}" for user in range(60) for step in range(3)]
    shop.write_text("\n".join(["Kunde;Artikel;Bewertung;Datum", *rows]) + "\n")
    assert discreet("describe", shop, "--out", schema)[0] == 0
    out = tmp_path / "m.discreet"
    fitted = discreet("fit", shop, "--schema", schema, "--scale", "1,5", "--epsilon", "8", "--out", out)
    assert fitted[0] == 0
    # No date shows whether the day is first, and the last line is not a row.
    held = [f"K{user};art {step};2,5;0{1 + step}.04.2025" for user in range(40) for step in range(4)]
    later.write_text("\n".join(["Kunde;Artikel;Bewertung;Datum", *held, '"a\\"b;art 1;3;x']) + "\n")
    assert "[unclear-dates]" in discreet("describe", later)[2]
    code, shown, _ = discreet("score", out, later, "--split", "time:2025-04-04", "--metric", "rmse", "--json")
    assert code == 0 and json.loads(shown)["on"] == "40 rows of 40 users"


def test_given_files_with_unknown_items_and_users_are_scored(discreet, tmp_path):
    """The model knows neither all items of the files nor all users; neither is an error."""
    rows = [f"u{user},i{item},{1 + (user + item) % 5}" for user in range(40) for item in range(8)]
    later = [f"v{user},{item},4" for user in range(30) for item in ("i1", "i2", "unknown")]
    for name, lines in (("train.csv", rows), ("test.csv", later), ("fitted.csv", rows[: len(rows) // 2])):
        (tmp_path / name).write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    model, train = tmp_path / "m.discreet", tmp_path / "train.csv"
    assert (
        discreet("fit", tmp_path / "fitted.csv", "--model", "biases", "--epsilon", "1", "--out", model)[0]
        == 0
    )
    code, out, error = discreet("score", model, train, "--split", "given:train.csv,test.csv", "--json")
    assert code == 0, error
    # The unknown item of each new user is skipped.
    assert json.loads(out)["on"].startswith("60 rows of 30 users")
