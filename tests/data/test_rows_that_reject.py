"""Where one row can reject a source, the facts state the assumption that every row can be read."""

from itertools import product

import polars as pl
import pytest

from discreet.core.checks import DiscreetError
from discreet.data.errors import CatalogNeeded
from discreet.data.facts import READABLE, PublicFacts
from discreet.data.reading.readers import from_frame, read, rejecting_rules
from discreet.data.schema import Schema
from discreet.sources.sharding import PieceReader, make_shards
from discreet.sources.shards import open_shards
from discreet.testing import refuses

NAMES = ("user", "item", "rating")
OTHERS = ["a,x,1", "b,y,3", "c,z,5"]
STRANGERS = {
    "above the scale": ["u,x,9"],
    "below the scale": ["u,x,-7"],
    "off the steps": ["u,x,2"],
    "unknown item": ["u,w,3"],
    "known": ["u,x,3"],
    "a repeated pair": ["u,x,1", "u,x,1"],
    "repeated ratings": ["u,x,3", "u,x,5", "u,x,5"],
    "a large sum": ["u,x,3e38", "u,x,3e38"],
    "without an ID": [",x,1"],
    "not a number": ["u,x,?"],
    "another length": ["u,x"],
}
REPEATED = {"a repeated pair", "repeated ratings", "a large sum"}
KINDS = {
    "ratings": {"rating": "rating"},
    "weights": {"weight": "rating"},
    "weights of values": {"weights": ("rating=1:5", "rating=3:1", "rating=5:3")},
    "interactions": {},
}
SCALES = {
    "none": {},
    "low": {"low": 1.0},
    "whole": {"low": 1.0, "high": 5.0},
    "steps": {"low": 1.0, "high": 5.0, "step": 2.0},
    "facts": {"facts": PublicFacts(n_items=3, low=1, high=5, step=2)},
}
CATALOG = ["x", "y", "z"]
CATALOGS = {
    "none": {},
    "reject": {"catalog": CATALOG},
    "drop": {"catalog": CATALOG, "drop_unknown": True},
    "count": {"n_items": 3},
}


def form(**rules):
    rules = {"duplicates": "last", "off_scale": "clip", "rating": "rating"} | rules
    return Schema(columns=NAMES, user="user", item="item", **rules)


DROPS = form(unknown_items="drop")


def written(folder, lines):
    file = folder / "rows.csv"
    file.write_text("\n".join([",".join(NAMES), *lines]) + "\n")
    return file


def is_stated(opened, rejects):
    """Return whether READABLE is stated of a readable source; if not, no stranger's rows reject it."""
    stated = READABLE in opened([]).facts.reading
    for name, rows in STRANGERS.items():
        try:
            opened(rows)
        except DiscreetError as error:
            rejects.add(name)
            assert stated, (name, error)
    return stated


def by_files(folder, schema, **declared):
    return lambda rows: read(written(folder, [*OTHERS, *rows]), schema=schema, **declared)


def test_no_combination_of_rules_rejects_unstated(tmp_path):
    stated = []
    for kind, scale, catalog in product(KINDS.values(), SCALES.values(), CATALOGS.values()):
        if "facts" in scale and "n_items" in catalog:
            continue
        for duplicates, off_scale in product(("last", "count"), ("reject", "clip", "drop")):
            schema = form(duplicates=duplicates, off_scale=off_scale, **{"rating": "", **kind})
            opened = by_files(tmp_path, schema, **scale, **catalog)
            data = opened([])
            stated.append(READABLE in data.facts.reading)
            # Of a number of items alone, no rule is left in the schema.
            assert bool(rejecting_rules(data)) == stated[-1] or {"facts", "n_items"} & {*scale, *catalog}
            if not stated[-1]:
                for rows in STRANGERS.values():
                    opened(rows)
    assert len(stated) / 8 < stated.count(False) < len(stated) / 2


@pytest.mark.parametrize(
    ("rules", "declared", "name"),
    [
        ({"duplicates": "refuse"}, {}, "a repeated pair"),
        ({"bad_rows": "reject"}, {}, "not a number"),
        ({}, {"people": ["a", "b", "c"]}, "known"),
        ({"duplicates": "count", "weight": "rating", "rating": ""}, SCALES["steps"], "a repeated pair"),
        ({"duplicates": "count", "rating": ""}, SCALES["steps"], "a repeated pair"),
        ({"duplicates": "count", "off_scale": "drop"}, SCALES["steps"], "a repeated pair"),
        ({}, SCALES["low"], "below the scale"),
        ({}, {"n_items": 3}, "unknown item"),
    ],
)
def test_a_rule_that_rejects_is_stated(tmp_path, rules, declared, name):
    rejects = set()
    assert is_stated(by_files(tmp_path, form(**rules), **declared), rejects) and name in rejects


def test_no_row_rejects_a_file_with_rules_for_all_of_them(tmp_path):
    rules = {**SCALES["steps"], "catalog": CATALOG, "drop_unknown": True}
    rejects = set()
    assert not is_stated(by_files(tmp_path, form(), **rules), rejects) and not rejects


def test_a_step_that_singles_do_not_have_is_stated(tmp_path):
    """Moved to the nearest step and rounded to a single, a rating is off it."""
    scale = {"low": 0.0, "high": 1e6, "step": 0.1}
    others = written(tmp_path, ["a,x,0", "b,y,1"])
    assert READABLE in read(others, schema=form(), **scale).facts.reading
    with refuses("off-declared-scale"):
        read(written(tmp_path, ["a,x,0", "b,y,1", "u,x,654321.7"]), schema=form(), **scale)
    assert READABLE not in read(others, schema=form(), **scale | {"high": 100.0}).facts.reading
    # The last step may be a little beyond the end of the scale.
    assert READABLE in read(others, schema=form(), **scale | {"high": 3.999, "step": 1.0}).facts.reading


def test_frames_state_the_same(tmp_path):
    frame = pl.DataFrame([line.split(",") for line in OTHERS], schema=NAMES, orient="row")
    assert READABLE not in from_frame(frame, schema=form(format="frame")).facts.reading
    named = from_frame(frame, schema=form(format="frame"), people=["a", "b", "c"])
    assert READABLE in named.facts.reading


def by_shards(folder, schema, **declared):
    places = iter(range(len(STRANGERS) + 1))

    def opened(rows):
        out = folder / f"shards-{next(places)}"
        file = written(folder, [*OTHERS, *rows])
        make_shards([file], out, reader=PieceReader(schema=schema), n_shards=1, **declared)
        return open_shards(out)

    return opened


@pytest.mark.parametrize("own", [{}, {"low": 1.0, "high": 5.0, "step": 2.0, "unknown_items": "drop"}])
@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, None),
        ({"duplicates": "refuse"}, "a repeated pair"),
        ({"low": 1.0}, "below the scale"),
    ],
)
def test_shards_state_the_rules_that_are_applied(tmp_path, own, given, name):
    rejects = set()
    whole = "low" in own
    catalog = {"catalog": CATALOG} if whole else {}
    stated = is_stated(by_shards(tmp_path, form(**own), **catalog, **given), rejects)
    # A lowest rating alone doesn't replace a scale.
    rejected = name is not None and not ("low" in given and whole)
    assert stated == rejected and (name in rejects or not rejected)


def test_shards_state_that_repeated_pairs_are_refused_where_nothing_else_is_declared(tmp_path):
    rejects = set()
    assert is_stated(by_shards(tmp_path, form(duplicates="refuse")), rejects) and rejects == REPEATED


def test_shards_reject_items_that_no_rule_drops(tmp_path):
    rejects = set()
    assert is_stated(by_shards(tmp_path, form(), catalog=CATALOG), rejects) and rejects == {"unknown item"}
    with pytest.raises(CatalogNeeded):
        make_shards([tmp_path / "rows.csv"], tmp_path / "none", reader=PieceReader(schema=DROPS))
