"""From a file to recommendations with `describe` and `fit` alone, for files as people have them."""

import json
from pathlib import Path

import polars as pl
import pytest

from discreet import Popularity, from_frame
from discreet.data.schema import Schema
from discreet.models.storage import load

FILES = {
    "german.csv": "Kunde;Artikel;Bewertung;Datum\n"
    + "".join(
        f"k{k};Tee {k % 4}, gr\u00fcn;{k % 5 + 1},5;{k % 28 + 1:02d}.03.2024 12:30\n" for k in range(40)
    ),
    "clicks.jsonl": "".join(
        json.dumps(
            {
                "user": f"u{k}",
                "item": f"i{k % 4}",
                "rating": k % 5 + 1,
                "time": f"2024-03-{k % 28 + 1:02d}T10:00:00Z",
            }
        )
        + "\n"
        for k in range(40)
    ),
    # What spreadsheets on Windows write.
    "export.csv": "Kunde;Artikel;Bewertung;Datum\r\n"
    + "".join(
        f"k{k};Tee {k % 4}, gr\u00fcn;{k % 5 + 1},5;{k % 28 + 1:02d}.03.2024 12:30\r\n" for k in range(40)
    ),
    "views.jsonl": "".join(
        json.dumps({"user": {"id": f"u{k}"}, "product": {"sku": f"i{k % 4}"}, "ts": 1700000000 + k}) + "\n"
        for k in range(40)
    ),
    "ratings.dat": "".join(f"{k}::{k % 4 + 10}::{k % 5 + 1}::{978300000 + k}\n" for k in range(1, 41)),
}


ENCODINGS = {"export.csv": "cp1252"}
ITEMS = {"german.csv": '"Tee 1, gr\u00fcn"', "export.csv": '"Tee 1, gr\u00fcn"', "ratings.dat": "11"}


def written(folder, name, text):
    (folder / name).write_bytes(text.encode(ENCODINGS.get(name, "utf-8")))
    return folder / name


def without_ratings(name):
    return ("--implicit",) if name == "views.jsonl" else ()


@pytest.mark.parametrize("name", FILES)
def test_describe_then_fit_then_recommend(discreet, tmp_path, name):
    file, schema, model = (
        written(tmp_path, name, FILES[name]),
        tmp_path / "shop.toml",
        tmp_path / "m.discreet",
    )
    code, shown, _ = discreet("describe", file, "--out", schema, *without_ratings(name))
    assert code == 0 and "guessed" in shown and schema.is_file()
    assert Schema.read(schema).encoding == ENCODINGS.get(name, "utf-8")
    options = ("--epsilon", "1", "--model", "popularity", "--out", model)
    code, _, told = discreet("fit", file, "--schema", schema, *options)
    assert code == 0, told
    own = tmp_path / "me.csv"
    own.write_text("item,rating\n" + ITEMS.get(name, "i1") + ",4\n", encoding="utf-8")
    code, shown, told = discreet("recommend", model, "--history", own, "--json")
    assert code == 0 and json.loads(shown), told


def test_a_frame_goes_to_recommendations():
    frame = pl.DataFrame(
        {
            "user": [f"u{k}" for k in range(40)],
            "item": [f"i{k % 4}" for k in range(40)],
            "rating": [3, 4] * 20,
        }
    )
    model = Popularity(epsilon=1).fit(from_frame(frame, low=1, high=5))
    assert len(model.recommend(["i1"])) == 3
    assert "frame" in {one.fact.value for one in model.guarantee.assumes}


def test_what_was_described_is_read_the_same_way(discreet, tmp_path):
    file, schema = tmp_path / "shop.csv", tmp_path / "shop.toml"
    file.write_text("user,item,rating\n" + "".join(f"u{k},i{k % 3},{k % 5 + 1}\n" for k in range(20)))
    code, shown, _ = discreet("describe", file, "--out", schema, "--json")
    found = json.loads(shown)
    assert code == 0 and found["rows"] == 20 and "delimiter" in found["schema"]["guessed"]
    code, _, told = discreet("describe", file, "--out", schema)
    assert code == 1 and "--force" in told
    # The next month has another line that is no row: the schema drops it.
    with file.open("a") as month:
        month.write('zoe,"x\n')
    assert discreet("fit", file, "--epsilon", "1", "--model", "popularity", "--out", tmp_path / "a")[0] == 1
    options = ("--epsilon", "1", "--model", "popularity", "--schema", schema, "--out", tmp_path / "b")
    assert discreet("fit", file, *options)[0] == 0
    code, shown, told = discreet("shard", file, "--schema", schema, "--out", tmp_path / "shards", "--json")
    assert code == 0 and Path(json.loads(shown)["folder"]).is_dir(), told


def conditions(file):
    return {one.fact.value: dict(one.detail) for one in load(file).guarantee.conditions}


def test_a_guessed_layout_is_a_condition_until_it_is_declared(discreet, tmp_path):
    file, schema, model = tmp_path / "shop.csv", tmp_path / "shop.toml", tmp_path / "m"
    file.write_text("user,item,rating\n" + "".join(f"u{k},i{k % 3},{k % 5 + 1}\n" for k in range(20)))
    fit = ("fit", file, "--epsilon", "1", "--model", "popularity", "--out", model, "--force")
    assert discreet(*fit)[0] == 0
    guessed = conditions(model)["layout"]["layout"].split(", ")
    assert guessed == ["UTF-8", "comma", "header", "3 columns", "text IDs"]
    discreet("describe", file, "--out", schema)
    assert discreet(*fit, "--schema", schema)[0] == 0
    assert "layout" in conditions(model)
    Schema.read(schema).changed(guessed=("delimiter",)).write(schema)
    assert discreet(*fit, "--schema", schema)[0] == 0 and conditions(model)["layout"] == {"layout": "comma"}
    Schema.read(schema).changed(guessed=()).write(schema)
    assert discreet(*fit, "--schema", schema)[0] == 0 and "layout" not in conditions(model)


@pytest.mark.parametrize("name", [name for name in FILES if name != "views.jsonl"])
def test_a_model_reads_the_next_file_as_it_read_the_first(discreet, tmp_path, name):
    file, schema, model = (
        written(tmp_path, name, FILES[name]),
        tmp_path / "shop.toml",
        tmp_path / "m.discreet",
    )
    discreet("describe", file, "--out", schema)
    # The order of day and month of one later date shows nothing, and a schema that is read needs no guess.
    fit = ("--epsilon", "1", "--model", "biases", "--out", model)
    code, _, told = discreet("fit", file, "--schema", schema, *fit)
    assert code == 0 and load(model).schema.roles == Schema.read(schema).roles, told
    head = FILES[name].splitlines()[0] + "\n" if name.endswith(".csv") else ""
    row = FILES[name].splitlines()[1] + "\n"
    written(tmp_path, name, head + row)
    lists = tmp_path / "lists.csv"
    code, _, told = discreet("recommend", model, "--histories", file, "--out", lists)
    assert code == 0 and len(lists.read_text().splitlines()) > 1, told


def test_a_followed_year_states_the_layouts_it_guessed(discreet, tmp_path):
    items, state, model = tmp_path / "items.txt", tmp_path / "year", tmp_path / "m"
    items.write_text("i0\ni1\ni2\n")
    week = tmp_path / "week.csv"
    week.write_text("user,item,rating\n" + "".join(f"u{k},i{k % 3},{k % 5 + 1}\n" for k in range(20)))
    start = ("follow", "start", state, "--items", items, "--scale", "1,5,1", "--epsilon", "1")
    code, _, told = discreet(*start, "--releases", "4")
    assert code == 0, told
    code, _, told = discreet("follow", "add", state, week, "--out", model)
    assert code == 0 and "comma" in conditions(model)["layout"]["layout"], told


def test_the_schema_of_a_click_log_allows_repeated_rows_as_a_fit_does(discreet, tmp_path):
    log, schema, out = tmp_path / "clicks.jsonl", tmp_path / "shop.toml", tmp_path / "m.discreet"
    rows = [{"user": f"u{k % 9}", "item": f"i{k % 4}", "time": 1_700_000_000 + k} for k in range(60)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert discreet("describe", log, "--implicit", "--out", schema)[0] == 0
    assert Schema.read(schema).duplicates == "last"
    fit = ("fit", log, "--implicit", "--model", "popularity", "--epsilon", "1", "--schema", schema)
    assert discreet(*fit, "--out", out)[0] == 0


def test_a_click_log_needs_no_option_to_be_described_and_fitted(discreet, tmp_path):
    """Without ratings, rows are interactions; the preview has dates, and no field of a CSV file."""
    file, schema = written(tmp_path, "views.jsonl", FILES["views.jsonl"]), tmp_path / "shop.toml"
    code, shown, told = discreet("describe", file)
    assert code == 0 and "2023-11-14 22:13:20" in shown and "delimiter" not in shown, told
    assert f"discreet try {file} --implicit" in shown
    code, shown, _ = discreet("describe", file, "--out", schema, "--json")
    assert set(json.loads(shown)["schema"]["guessed"]) == {
        *("format", "encoding", "user", "item", "time", "user_type", "item_type")
    }
    out = tmp_path / "m.discreet"
    code, _, told = discreet("fit", file, "--schema", schema, "--epsilon", "1", "--out", out)
    assert code == 0 and load(out).parameters["feedback"] == "implicit", told


def test_a_schema_with_guesses_is_advised_to_be_checked_not_to_be_given(discreet, tmp_path):
    file, schema = written(tmp_path, "german.csv", FILES["german.csv"]), tmp_path / "shop.toml"
    discreet("describe", file, "--out", schema)
    options = ("--epsilon", "1", "--model", "popularity", "--out", tmp_path / "m.discreet")
    told = discreet("fit", file, "--schema", schema, *options)[2]
    assert f"guessed` of {schema}" in told.replace("\n", "") and "--schema" not in told


@pytest.mark.parametrize(
    ("column", "found"), [("product_name", "product_name"), ("movieTitle", "movieTitle"), ("user_name", None)]
)
def test_a_column_of_titles_is_named(discreet, tmp_path, column, found):
    path = tmp_path / "shop.csv"
    rows = (f"u{k},{k % 4},Tea {k % 4},{k % 5 + 1}" for k in range(40))
    path.write_text("\n".join([f"user,item,{column},rating", *rows]) + "\n")
    code, shown, _ = discreet("describe", path, "--json")
    assert code == 0 and json.loads(shown)["titles"] == found
    assert ("--titles" in discreet("describe", path)[1]) == (found is not None)


def test_kinds_of_events_are_offered_as_weights(discreet, tmp_path):
    rows = [f"u{k},i{k % 7},{'buy' if k % 5 == 0 else 'view'},n{k}" for k in range(50)]
    (tmp_path / "clicks.csv").write_text("\n".join(["user,item,event,action", *rows]) + "\n")
    code, out, error = discreet("describe", tmp_path / "clicks.csv")
    assert code == 0, error
    assert "event=view:1,buy:2" in "".join(out.split("\n")).replace(" ", "").replace("--weights", "")
    # The twin: a column whose rows are asked for, or one with many values, is not offered.
    code, out, error = discreet("describe", tmp_path / "clicks.csv", "--weights", "event=view:1,bay:2")
    assert "--weights event=view:1,buy:2" not in out and "event=bay" in error and "10 of 50" in error
    (tmp_path / "clicks.csv").write_text("\n".join(["user,item,kind,event", *rows]) + "\n")
    assert "--only" not in discreet("describe", tmp_path / "clicks.csv")[1]
