"""`--only event=buy` keeps the rows in which a column has a value, in every kind of source."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import discreet as library
from command_line import rejected
from discreet.audit.neighboring_rows import read_case, search
from discreet.data.histories import read_history
from discreet.data.reading.readers import from_frame, read
from discreet.data.schema import Schema
from discreet.privacy.guarantee import Fact, Kind
from discreet.sources.sharding import PieceReader
from discreet.testing import refuses

ROWS = [
    ("ann", "tea", "buy", "2025-01-01"),
    ("ann", "jam", "view", "2025-01-02"),
    # Rows that a condition skips need not be readable.
    ("", "jam", "view", "never"),
    ("bob", "tea", "view", "2025-01-03"),
    ("bob", "jam", " buy ", "2025-01-04"),
    ("cat", "tea", "rent", "2025-01-05"),
]
NAMES = ("user", "item", "event", "time")
BUYS = {("ann", "tea"), ("bob", "jam")}
KEPT = {"implicit": True, "duplicates": "last"}


def frame():
    return pl.DataFrame(ROWS, schema=NAMES, orient="row")


def csv(folder):
    frame().write_csv(folder / "log.csv")
    return folder / "log.csv"


def packed(folder):
    text = "\n".join(['user;item;"event";time', *(f'{u};"{i}";"{e}";{t}' for u, i, e, t in ROWS)])
    (folder / "log.txt").write_bytes(text.encode("utf-16"))
    return folder / "log.txt"


def json_lines(folder):
    lines = [
        {"customer": {"id": u or None}, "item": i, "what": {"event": e}, "time": t} for u, i, e, t in ROWS
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "log.jsonl"


def parquet(folder):
    frame().with_columns(pl.col("event").cast(pl.Categorical)).write_parquet(folder / "log.parquet")
    return folder / "log.parquet"


def database(folder):
    with closing(sqlite3.connect(folder / "log.db")) as base, base:
        base.execute("CREATE TABLE log (user, item, event, time)")
        base.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", ROWS)
    return f"{folder / 'log.db'}::log"


def duck(folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "log.duckdb")) as base:
        base.execute('CREATE TABLE log ("user" VARCHAR, item VARCHAR, event VARCHAR, time VARCHAR)')
        base.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", ROWS)
    return f"{folder / 'log.duckdb'}::log"


def book(folder):
    found = pytest.importorskip("openpyxl").Workbook()
    for row in (NAMES, *ROWS):
        found.active.append(row)
    found.save(folder / "log.xlsx")
    return folder / "log.xlsx"


def partitions(folder):
    for event in ("buy", "view", "rent"):
        (folder / "log" / f"event={event}").mkdir(parents=True)
        rows = [f"{u},{i},{t}" for u, i, e, t in ROWS if e.strip() == event and u]
        (folder / "log" / f"event={event}" / "0.csv").write_text("\n".join(["user,item,time", *rows]) + "\n")
    return folder / "log"


SOURCES = [csv, packed, json_lines, parquet, database, duck, book, partitions]


def pairs(data):
    return {
        (str(user), str(item))
        for user, item in zip(data.users.id_at(data.rows()), data.catalog.id_at(data.items), strict=True)
    }


@pytest.mark.parametrize("make", SOURCES)
def test_only_rows_with_the_value_are_read(make, tmp_path):
    source = make(tmp_path)
    column = "what.event" if make is json_lines else "event"
    data = read(source, only={column: "buy"}, **KEPT)
    assert pairs(data) == BUYS and data.facts.rows == f"{column}=buy"
    assert pairs(read(source, only=[f"{column}=buy", f"{column}=rent"], **KEPT)) == BUYS | {("cat", "tea")}
    assert pairs(read(source, only={column: ["buy", "rent"], "item": "tea"}, **KEPT)) == {
        ("ann", "tea"),
        ("cat", "tea"),
    }
    # The schema alone reads the same rows, piece by piece as well.
    Schema.write(data.schema, tmp_path / "log.toml")
    again = Schema.read(tmp_path / "log.toml")
    assert again.only == (f"{column}=buy",) and pairs(read(source, schema=again)) == BUYS
    reader = PieceReader(schema=again)
    assert sum(len(reader.read(piece).items) for piece in reader.pieces(source)) == len(BUYS)
    with refuses("no-column", role="condition", column="kind"):
        read(source, only={"kind": "buy"}, **KEPT)
    with refuses("empty-data", what=f"readable rows with {column}=lend"):
        read(source, only={column: "lend"}, **KEPT)


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "objects", "truths", "numbers"])
def test_frames_have_conditions(kind):
    table, value = frame().filter(pl.col("user") != ""), "buy"
    if kind in ("truths", "numbers"):
        table = table.with_columns(event=pl.col("event").str.strip_chars() == "buy")
        value = "true"
    if kind == "numbers":
        table, value = table.with_columns(pl.col("event").cast(pl.Float64)), "1"
    if kind in ("pandas", "objects"):
        pytest.importorskip("pandas")
        table = table.to_pandas()
        table["event"] = table["event"].astype("category" if kind == "pandas" else object)
    data = from_frame(table.lazy() if kind == "lazy" else table, only={"event": value}, **KEPT)
    assert pairs(data) == BUYS
    again = from_frame(table, schema=data.schema, duplicates="last")
    assert pairs(again) == BUYS


@pytest.mark.parametrize("rule", ["buy", "=buy", "event="])
def test_a_condition_has_a_column_and_a_value(rule, tmp_path):
    with refuses("broken-rule", name="only"):
        read(csv(tmp_path), only=rule, **KEPT)
    with refuses("broken-rule", name="only"):
        Schema(format="netflix", only=("event=buy",))


def test_labels_state_the_rows(tmp_path, discreet):
    source, model = csv(tmp_path), tmp_path / "m.discreet"
    ledger = ("--ledger", tmp_path / "l.ledger")
    options = ("--model", "popularity", "--implicit", "--epsilon", "1", *ledger)
    code, _, error = discreet(
        "fit", source, *options, "--only", "event=buy", "--only", "event=rent", "--out", model
    )
    assert code == 0, error
    fitted, data_rows = library.load(model), read(source, only=["event=buy", "event=rent"], **KEPT).facts.rows
    stated = {(one.kind, one.fact): dict(one.detail) for one in fitted.guarantee.assumes}
    assert stated[Kind.DECLARED, Fact.ROWS] == {"rows": data_rows}
    (entry,) = library.Ledger.open(tmp_path / "l.ledger").entries("log")
    assert Fact.ROWS in {one.fact for one in entry.guarantee.assumes}
    # The next file is read alike.
    second = tmp_path / "n.discreet"
    code, _, error = discreet("refit", model, source, *ledger, "--name", "log", "--out", second)
    assert code == 0, error
    assert library.load(second).facts.rows == data_rows
    rejected(discreet("fit", source, *options, "--only", "kind=buy", "--out", second, "--force"), "no-column")


@pytest.mark.parametrize("make", [csv, packed, json_lines, parquet, database, book])
def test_a_history_has_the_rows_that_the_model_learned_from(make, tmp_path):
    column = "what.event" if make is json_lines else "event"
    source = make(tmp_path)
    data = read(source, only={column: "buy"}, **KEPT)
    found = read_history(Path(source), user="ann", implicit=True, schema=data.schema)
    assert found.items == ["tea"]
    # One user's own file has no user, and may have no events either.
    own = tmp_path / "own.jsonl"
    if make is json_lines:
        own.write_text(
            '{"item": "tea", "what": {"event": "view"}}\n{"item": "jam", "what": {"event": "buy"}}\n'
        )
    else:
        own = tmp_path / "own.csv"
        own.write_text("item,event\ntea,view\njam,buy\n")
    assert read_history(own, implicit=True, schema=data.schema).items == ["jam"]
    own.write_text(own.read_text().replace("event", "page"))
    assert sorted(read_history(own, implicit=True, schema=data.schema).items) == ["jam", "tea"]


def kept_by_many(case, folder, present):
    """Keep the rows of the value that most rows have: other users decide about each row."""
    if not case.schema.only:
        return read_case(case, folder, present)
    items = [row.item for row in case.rows(present) if not isinstance(row, str)]
    most = max(sorted(set(items)), key=items.count)
    return read_case(replace(case, schema=case.schema.changed(only=(f"item={most}",))), folder, present)


def test_a_condition_that_looks_at_other_rows_is_found():
    assert search(2_000, seed=3, reader=kept_by_many, forms=["text"], stop=True).differences


def test_unused_weights_are_reported(tmp_path, caplog):
    (tmp_path / "a.csv").write_text("user,item,times\nann,tea,2\nbob,jam,3\n")
    for reader, source in ((read, tmp_path / "a.csv"), (from_frame, pl.read_csv(tmp_path / "a.csv"))):
        caplog.clear()
        reader(source, columns={"weight": "times"}, duplicates="count", low=1, high=5)
        assert not caplog.records
        reader(source, columns={"weight": "times"}, **KEPT)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
