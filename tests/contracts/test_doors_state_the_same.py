"""Every door that reads a file states what the reference door assumes of the reading: `read` and `fit`."""

import json
from itertools import product

import numpy as np
import polars as pl
import pytest

import discreet as package
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import FRAME, QUERY, READABLE
from discreet.data.reading.readers import from_frame, from_scipy, read
from discreet.data.schema import Schema
from discreet.federated.conditions import named_facts
from discreet.models.popularity import Popularity
from discreet.privacy import Fact, Guarantee, reading_of
from discreet.testing import refuses

NAMES = ("user", "item", "rating", "kind")
ROWS = [(f"u{user}", f"i{item}", 1 + (user + item) % 5, "buy") for user in range(12) for item in range(4)]
# How rows are read: each rule has a value with an assumption and one without.
RULES = {
    "duplicates": ("refuse", "last"),
    "bad_rows": ("reject", "drop"),
    "off_scale": ("reject", "clip"),
    "multiline": (True, False),
    "only": (("kind=buy",), ()),
    "guessed": (("delimiter",), ()),
}
MADE = [dict(zip(RULES, values, strict=True)) for values in product(*RULES.values())]
OF_READING = {Fact.FRAME, Fact.READABLE, Fact.QUOTES, Fact.QUERY, Fact.ROWS, Fact.LAYOUT}


def of_reading(assumes):
    """Return what a guarantee assumes of the reading, without numbers that no rule above decides."""
    return {(one.kind, one.fact, one.detail) for one in assumes if one.fact in OF_READING}


def label(guarantee):
    return of_reading(Guarantee.from_json(guarantee).assumes)


FIT = ("--model", "popularity", "--epsilon", "1")


def fitted(discreet, folder):
    return read_json(
        discreet, "fit", "ratings.csv", *FIT, "--schema", "form.toml", "--out", "fitted", "--force"
    )


def refitted(discreet, folder):
    fitted(discreet, folder)
    return read_json(
        discreet, "refit", "fitted", "ratings.csv", "--schema", "form.toml", "--out", "next", "--force"
    )


def scored(discreet, folder):
    return read_json(discreet, "evaluate", "ratings.csv", *FIT, "--private", "--schema", "form.toml")


def sharded(discreet, folder):
    rules = ("--schema", "form.toml", "--out", "shards")
    assert discreet("data", "shard", "ratings.csv", *rules)[0] == 0
    return read_json(discreet, "fit", "shards", *FIT, "--out", "fitted", "--force")


def simulated(discreet, folder):
    parties = ("--parties", "3", "--schema", "form.toml", "--out", "fitted", "--force")
    return read_json(discreet, "federation", "simulate", "ratings.csv", *FIT, *parties)


def followed(discreet, folder):
    (folder / "items.txt").write_text("\n".join(f"i{item}" for item in range(4)) + "\n")
    year = ("follow", "start", "year", "--items", "items.txt", "--scale", "1,5,1", "--releases", "4")
    assert discreet(*year, "--epsilon", "2")[0] == 0
    added = discreet("follow", "add", "year", "ratings.csv", "--schema", "form.toml", "--out", "week")
    assert added[0] == 0, added
    return package.load(folder / "week").guarantee.to_json()


def read_json(discreet, *command):
    code, shown, error = discreet(*command, "--json")
    assert code == 0, error
    return json.loads(shown)["guarantee"]


DOORS = [fitted, refitted, scored, sharded, simulated, followed]


@pytest.mark.few(4)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("rules", [MADE[0], MADE[-1], *MADE[5:-1:11], *MADE[1:-1:17]], ids=repr)
def test_a_label_states_what_the_reference_assumes(door, rules, tmp_path, discreet, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ratings.csv").write_text(
        "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in ROWS)]) + "\n"
    )
    form = Schema(columns=NAMES, user="user", item="item", rating="rating", low=1, high=5, step=1, **rules)
    form.write(tmp_path / "form.toml")
    expected = of_reading(reading_of(read(tmp_path / "ratings.csv", schema=form).facts))
    found = label(door(discreet, tmp_path))
    # A door may assume more: one that rejects what a file skips.
    assert expected <= found
    assert {fact for _, fact, _ in found - expected} <= {Fact.READABLE}


def columns():
    users, items, ratings, _ = zip(*ROWS, strict=True)
    return list(users), list(items), np.array(ratings, dtype=np.float32)


def matrix():
    users, items, ratings = columns()
    rows, places = (np.unique(names, return_inverse=True)[1] for names in (users, items))
    return pl.DataFrame({"user": rows, "item": places, "rating": ratings})


HANDED_OVER = {
    "arrays": lambda: package.Interactions.from_arrays(*columns()),
    "arrays with declared facts": lambda: package.Interactions.from_arrays(
        *columns(), low=1, high=5, catalog=[f"i{item}" for item in range(4)], duplicates="last"
    ),
    "frame": lambda: from_frame(pl.DataFrame(ROWS, schema=NAMES, orient="row"), low=1, high=5),
    "pandas": lambda: from_frame(pl.DataFrame(ROWS, schema=NAMES, orient="row").to_pandas()),
    "matrix": lambda: from_scipy(package.Interactions.from_arrays(*columns()).to_scipy(), low=1, high=5),
    "matrix to fit": lambda: package.Interactions.from_arrays(*columns()).to_scipy(),
}


@pytest.mark.parametrize("given", HANDED_OVER.values(), ids=HANDED_OVER)
def test_what_a_library_hands_over_is_assumed_to_be_unchanged_and_readable(given):
    """A library may have changed values, such as one missing number or one text in an array."""
    data = given()
    model = Popularity(epsilon=1.0).fit(data, random=PrivacyRandom.simulate(0))
    stated = {one.fact for one in model.guarantee.assumes}
    assert {Fact.FRAME, Fact.READABLE} <= stated
    # A party that hands them over names them, too.
    assert {"frame", "readable"} <= set(named_facts(model.facts).split(","))


@pytest.mark.parametrize("bad", [None, float("nan"), "again"])
def test_one_row_rejects_arrays(bad):
    """Why the label of arrays states that every row can be read."""
    users, items, ratings = columns()
    user, rating = (users[0], 3) if bad == "again" else ("stranger", bad)
    with pytest.raises(package.core.checks.DiscreetError):
        package.Interactions.from_arrays([*users, user], [*items, items[0]], [*ratings, rating])


def test_arrays_keep_what_their_facts_state():
    facts = package.PublicFacts(n_items=4, low=1, high=5, reading=(QUERY,))
    data = package.Interactions.from_arrays(*columns(), facts=facts)
    assert set(data.facts.reading) == {FRAME, READABLE, QUERY}
    with refuses("declared-twice"):
        package.Interactions.from_arrays(*columns(), facts=facts, low=1)
