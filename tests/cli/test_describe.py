"""From a file to recommendations with `describe` and `fit` alone, for files as people have them."""

import json
from pathlib import Path

import pytest

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
    "ratings.dat": "".join(f"{k}::{k % 4 + 10}::{k % 5 + 1}::{978300000 + k}\n" for k in range(1, 41)),
}


@pytest.mark.parametrize("name", FILES)
def test_describe_then_fit_then_recommend(discreet, tmp_path, name):
    file, schema, model = tmp_path / name, tmp_path / "shop.toml", tmp_path / "m.discreet"
    file.write_text(FILES[name], encoding="utf-8")
    code, shown, _ = discreet("describe", file, "--out", schema)
    assert code == 0 and "guessed" in shown and schema.is_file()
    options = ("--epsilon", "1", "--model", "popularity", "--out", model)
    code, _, told = discreet("fit", file, "--schema", schema, *options)
    assert code == 0, told
    own = tmp_path / "me.csv"
    own.write_text(
        "item,rating\n" + {"german.csv": '"Tee 1, gr\u00fcn"', "clicks.jsonl": "i1"}.get(name, "11") + ",4\n"
    )
    code, shown, told = discreet("recommend", model, "--history", own, "--json")
    assert code == 0 and json.loads(shown), told


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


@pytest.mark.parametrize("name", FILES)
def test_a_model_reads_the_next_file_as_it_read_the_first(discreet, tmp_path, name):
    file, schema, model = tmp_path / name, tmp_path / "shop.toml", tmp_path / "m.discreet"
    file.write_text(FILES[name], encoding="utf-8")
    discreet("describe", file, "--out", schema)
    # The order of day and month of one later date shows nothing, and a schema that is read needs no guess.
    fit = ("--epsilon", "1", "--model", "biases", "--out", model)
    code, _, told = discreet("fit", file, "--schema", schema, *fit)
    assert code == 0 and load(model).schema.roles == Schema.read(schema).roles, told
    head = FILES[name].splitlines()[0] + "\n" if name.endswith(".csv") else ""
    row = {
        "german.csv": "k1;Tee 1, gr\u00fcn;2,5;05.03.2024 12:30\n",
        "clicks.jsonl": FILES["clicks.jsonl"].splitlines()[1] + "\n",
        "ratings.dat": "1::11::3::978300001\n",
    }[name]
    file.write_text(head + row, encoding="utf-8")
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
