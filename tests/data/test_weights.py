"""`--weights event=view:1,buy:5` reads what each row weighs off one column, in every kind of source."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import discreet as library
from command_line import rejected
from discreet.data.facts import READABLE
from discreet.data.histories import read_history
from discreet.data.reading.readers import from_frame, read
from discreet.data.schema import Schema
from discreet.privacy.guarantee import Fact, Kind
from discreet.sources.sharding import PieceReader, make_shards
from discreet.sources.shards import open_shards
from discreet.statistics import CoOccurrence, ItemContext, ItemVotes
from discreet.testing import refuses
from neighboring_rows import read_case, search

ROWS = [
    ("ann", "tea", "buy"),
    ("ann", "tea", "view"),
    ("ann", "jam", " view "),
    # Rows that weigh nothing need not be readable.
    ("", "jam", "scroll"),
    ("bob", "tea", "view"),
    ("bob", "jam", "cart"),
    ("cat", "tea", "hover"),
]
NAMES = ("user", "item", "event")
RULE = {"event": {"view": 1, "cart": 2.5, "buy": 5, "hover": 0}}
TEXT = "event=view:1,cart:2.5,buy:5,hover:0"
SUMS = {("ann", "tea"): 6, ("ann", "jam"): 1, ("bob", "tea"): 1, ("bob", "jam"): 2.5}
KEPT = {"implicit": True, "duplicates": "count"}


def frame():
    return pl.DataFrame(ROWS, schema=NAMES, orient="row")


def csv(folder):
    frame().write_csv(folder / "log.csv")
    return folder / "log.csv"


def json_lines(folder):
    lines = [json.dumps({"user": u or None, "item": i, "event": e}) for u, i, e in ROWS]
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "log.jsonl"


def parquet(folder):
    frame().with_columns(pl.col("event").cast(pl.Categorical)).write_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def database(folder):
    with closing(sqlite3.connect(folder / "log.db")) as base, base:
        base.execute("CREATE TABLE log (user, item, event)")
        base.executemany("INSERT INTO log VALUES (?, ?, ?)", ROWS)
    return f"{folder / 'log.db'}::log"


def book(folder):
    found = pytest.importorskip("openpyxl").Workbook()
    for row in (NAMES, *ROWS):
        found.active.append(row)
    found.save(folder / "log.xlsx")
    return folder / "log.xlsx"


def partitions(folder):
    for event in ("buy", "view", "cart", "scroll"):
        (folder / "log" / f"event={event}").mkdir(parents=True)
        rows = [f"{u},{i}" for u, i, e in ROWS if e.strip() == event and u]
        (folder / "log" / f"event={event}" / "0.csv").write_text("\n".join(["user,item", *rows]) + "\n")
    return folder / "log"


STATED = {
    "rows": "event=view or cart or buy",
    "weights": "1 for view, 2.5 for cart, 5 for buy in column event",
}


def stated(facts):
    return {name: detail[name] for _, name, detail in facts.statements() if name in STATED}


SOURCES = [csv, json_lines, parquet, database, book, partitions]


def sums(data):
    pairs = zip(data.users.id_at(data.rows()), data.catalog.id_at(data.items), strict=True)
    return dict(zip(((str(user), str(item)) for user, item in pairs), data.values.tolist(), strict=True))


@pytest.mark.parametrize("make", SOURCES)
def test_rows_weigh_what_the_rule_states(make, tmp_path):
    source = make(tmp_path)
    data = read(source, weights=RULE, **KEPT)
    assert sums(data) == SUMS
    assert stated(data.facts) == STATED
    assert data.facts.low == data.facts.high and "scale" not in data.facts.from_file
    # With a scale, the sums are ratings.
    rated = read(source, weights=TEXT, duplicates="count", low=0, high=5)
    assert sums(rated) == SUMS | {("ann", "tea"): 5} and not rated.facts.weights
    # The schema alone reads the same rows, piece by piece as well.
    Schema.write(data.schema, tmp_path / "log.toml")
    again = Schema.read(tmp_path / "log.toml")
    assert again.weight_of == {"view": 1, "cart": 2.5, "buy": 5}
    assert sums(read(source, schema=again, implicit=True)) == SUMS
    reader = PieceReader(schema=again)
    assert sum(float(reader.read(piece).values.sum()) for piece in reader.pieces(source)) == sum(
        SUMS.values()
    )
    # A condition and weights of one column apply both.
    bought = read(source, weights=RULE, only={"event": ["buy", "scroll"]}, **KEPT)
    assert sums(bought) == {("ann", "tea"): 5}
    with refuses("no-column", column="kind"):
        read(source, weights={"kind": {"buy": 1}}, **KEPT)


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "numbers"])
def test_frames_have_weights(kind):
    table, rule = frame().filter(pl.col("user") != ""), RULE
    if kind == "numbers":
        codes = {"view": 1.0, "cart": 2.0, "buy": 3.0, "hover": 4.0}
        table = table.with_columns(pl.col("event").str.strip_chars().replace_strict(codes))
        rule = {"event": {1: 1, 2: 2.5, 3: 5}}
    if kind == "pandas":
        pytest.importorskip("pandas")
        table = table.to_pandas()
    data = from_frame(table.lazy() if kind == "lazy" else table, weights=rule, **KEPT)
    assert sums(data) == SUMS
    assert sums(from_frame(table, schema=data.schema, **KEPT)) == SUMS


@pytest.mark.parametrize(
    "rule",
    ["event", "event=buy", "=buy:1", "event=:1", "event=buy:x", "event=buy:-1", "event=buy:nan",
     "event=buy:1e4", "event=buy:0", "event=buy:1,buy:2", ["event=buy:1", "kind=view:1"]],
)  # fmt: skip
def test_a_weight_has_a_column_a_value_and_a_number(rule, tmp_path):
    with refuses("broken-rule", name="weights"):
        read(csv(tmp_path), weights=rule, **KEPT)


@pytest.mark.parametrize("rule", ["view:1", "view:1,buy:5", "event=buy"])
def test_a_weight_without_a_column_or_a_number_is_shown_as_it_was_written(rule, tmp_path):
    with refuses("broken-rule", name="weights", value=rule):
        read(csv(tmp_path), weights=rule, **KEPT)


def test_weights_take_the_place_of_another_column_and_of_ratings(tmp_path):
    with refuses("broken-rule", name="weights"):
        read(csv(tmp_path), weights=RULE, columns={"weight": "item"}, **KEPT)
    with refuses("rating-and-weight"):
        Schema(rating="stars", weights=("event=buy:5",))
    with refuses("broken-rule", name="weights"):
        Schema(format="netflix", weights=("event=buy:5",))


def test_labels_state_the_weights_of_models_that_use_them(tmp_path, discreet, caplog):
    source, model = csv(tmp_path), tmp_path / "m.discreet"
    ledger = ("--ledger", tmp_path / "l.ledger")
    options = ("--epsilon", "1", "--weights", TEXT, *ledger)
    code, _, error = discreet("fit", source, "--model", "popularity", *options, "--out", model)
    assert code == 0, error
    fitted, facts = library.load(model), read(source, weights=RULE, **KEPT).facts
    assumed = {(one.kind, one.fact): dict(one.detail) for one in fitted.guarantee.assumes}
    assert assumed[Kind.DECLARED, Fact.WEIGHTS] == {"weights": facts.weights}
    assert assumed[Kind.DECLARED, Fact.ROWS] == {"rows": facts.rows}
    (entry,) = library.Ledger.open(tmp_path / "l.ledger").entries("log")
    assert Fact.WEIGHTS in {one.fact for one in entry.guarantee.assumes}
    # The next file is read alike.
    second = tmp_path / "n.discreet"
    code, _, error = discreet("refit", model, source, *ledger, "--name", "log", "--out", second)
    assert code == 0, error
    assert library.load(second).facts.weights == facts.weights
    rejected(
        discreet("fit", source, *options, "--out", second, "--force", "--model", "biases"),
        "option-needs",
    )
    # A model that ignores weights says so, and its label has none.
    ease = library.Ease(epsilon=float("inf")).fit(read(source, weights=RULE, **KEPT))
    assert "ease" in caplog.text and not ease.facts.weights and ease.facts.rows
    assert Fact.WEIGHTS not in {one.fact for one in ease.guarantee.assumes}


def test_weights_alone_reject_no_source(tmp_path):
    rules = {"skip_bad_lines": True, "catalog": ["tea", "jam"], "drop_unknown": True}
    assert READABLE not in read(csv(tmp_path), weights=RULE, **KEPT, **rules).facts.reading


def test_a_history_has_the_rows_that_weigh_something(tmp_path):
    data = read(csv(tmp_path), weights=RULE, **KEPT)
    own = tmp_path / "own.csv"
    own.write_text("item,event\ntea,hover\njam,view\njam,buy\n")
    assert read_history(own, implicit=True, schema=data.schema).items == ["jam"]
    own.write_text("item\ntea\njam\n")
    assert sorted(read_history(own, implicit=True, schema=data.schema).items) == ["jam", "tea"]


def weighing(values):
    """Return one user with four items of these weights, and the same user without weights."""
    table = {"user": ["ann"] * 4, "item": list("abcd"), "w": values, "time": [1, 2, 3, 4]}
    data = from_frame(pl.DataFrame(table), columns={"weight": "w"}, implicit=True, catalog=list("abcd"))
    return data, data.without_ratings()


STATISTICS = {
    "l1": ItemVotes(n_items=4, norm="l1"),
    "l2": ItemVotes(n_items=4, norm="l2"),
    "pairs": CoOccurrence(n_items=4, top=np.arange(4), weight=np.ones(4), near=0.8, apart=0.1, back=4),
    "context": ItemContext(
        vectors=np.arange(8.0).reshape(4, 2),
        squares=np.ones(4),
        longest=2.0,
        item_weights=np.ones(4),
        count_part=0.5,
        near=0.8,
    ),
}


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("values", [[1, 1, 1, 1], [1, 1, 1, 5], [1e-3, 1e3, 1, 1], [0, -5, 1e30, 1]])
def test_weights_move_a_user_by_no_more_than_one(name, values):
    statistic = STATISTICS[name]
    data, plain = weighing([float(value) for value in values])
    found, equal = (part.total(statistic).floats().ravel() for part in (data, plain))
    assert np.linalg.norm(found, 1 if name == "l1" else 2) <= 1
    assert np.allclose(found, equal, rtol=1e-5) == (len(set(values)) == 1)


def test_votes_are_in_proportion_to_weights():
    data, _ = weighing([1.0, 1.0, 2.0, 4.0])
    assert np.allclose(data.total(STATISTICS["l1"]).floats(), [0.125, 0.125, 0.25, 0.5], atol=1e-5)


def test_shards_add_weights_up(tmp_path):
    schema = read(csv(tmp_path), weights=RULE, **KEPT).schema
    rules = {"duplicates": "count", "catalog": ["tea", "jam"]}
    make_shards(
        [csv(tmp_path)], tmp_path / "out", reader=PieceReader(wishes=implicit(), schema=schema), **rules
    )
    shards = open_shards(tmp_path / "out")
    assert stated(shards.facts) == STATED
    asked = ItemVotes(n_items=2, norm="l2")
    data = read(csv(tmp_path), weights=RULE, catalog=["tea", "jam"], **KEPT)
    assert np.array_equal(data.total(asked).floats(), shards.total(asked).floats())
    with refuses("count-not-sharded"):
        make_shards(
            [csv(tmp_path)], tmp_path / "rated", reader=PieceReader(schema=schema), low=0, high=5, **rules
        )


def implicit():
    from discreet.data.guessing import Wishes

    return Wishes(declared={}, implicit=True)


def kept_by_many(case, folder, present):
    """Weigh rows by how many users have their value: other users decide about each row."""
    if not case.schema.weights:
        return read_case(case, folder, present)
    values = [row.rating for row in case.rows(present) if not isinstance(row, str)]
    most = max(sorted(set(values)), key=values.count)
    weights = (f"rating={most}:{5 if len(values) % 2 else 1}",)
    return read_case(replace(case, schema=case.schema.changed(weights=weights)), folder, present)


def test_a_weight_that_looks_at_other_rows_is_found():
    assert search(20_000, seed=3, reader=kept_by_many, forms=["text"], stop=True).differences
