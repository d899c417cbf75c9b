"""`--only event=buy` keeps the rows in which a column has a value, in every kind of source."""

import json
import sqlite3
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet as library
from command_line import rejected
from discreet.data.block_sizes import other_block_sizes
from discreet.data.histories import read_history
from discreet.data.reading.readers import from_frame, read
from discreet.data.schema import Schema
from discreet.privacy.guarantee import Fact, Kind
from discreet.sources.sharding import PieceReader
from discreet.testing import refuses
from neighboring_rows import read_case, search

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


FAR = {pl.Date: 10**8, pl.Datetime("ms"): 2**62, pl.Datetime("us"): -(2**62)}
ALONE = Schema(
    user="user",
    item="item",
    rating="rating",
    bad_rows="drop",
    duplicates="last",
    off_scale="clip",
    low=1,
    high=5,
)


def typed_rows(values, kind):
    own = {"user": ["ann", "bob", "zoe"], "item": ["tea", "jam", "tea"], "rating": [5.0, 3.0, 1.0]}
    return pl.DataFrame({**own, "kind": pl.Series(values).to_physical().cast(kind)})


@pytest.mark.parametrize("kind", FAR, ids=str)
def test_a_date_beyond_all_calendars_rejects_no_other_row(kind, tmp_path):
    physical = pl.Int32 if kind == pl.Date else pl.Int64
    table = typed_rows(pl.Series([0, 0, FAR[kind]], dtype=physical), kind)
    text = str(table["kind"].head(1).cast(pl.String)[0])
    schema = ALONE.changed(only=(f"kind={text}",))
    for rows in (table, table.head(2)):
        assert pairs(from_frame(rows, schema=schema)) == {("ann", "tea"), ("bob", "jam")}
        rows.write_parquet(tmp_path / "a.parquet")
        again = read(tmp_path / "a.parquet", schema=schema.changed(format="parquet"))
        assert pairs(again) == {("ann", "tea"), ("bob", "jam")}


def test_dates_of_pandas_beyond_all_calendars_reject_no_other_row():
    pd = pytest.importorskip("pandas")
    own = typed_rows([1, 2, 3], pl.Int64).to_pandas()
    for far in (0, 2**62):
        own["kind"] = pd.Series(np.array([0, 0, far]).view("datetime64[ms]"))
        data = from_frame(own, schema=ALONE.changed(only=("kind=1970-01-01 00:00:00.000",)))
        assert {("ann", "tea"), ("bob", "jam")} <= pairs(data)


@pytest.mark.parametrize("odd", [b"tea", b"\xff", ["tea"], {"a": 1}, timedelta(1)], ids=repr)
def test_a_type_that_no_condition_compares_is_rejected_whatever_rows_have_it(odd, tmp_path):
    kind = pl.Series([odd]).dtype
    for values in ([odd] * 3, [None] * 3):
        table = typed_rows([1, 2, 3], pl.Int64).with_columns(kind=pl.Series(values, dtype=kind))
        for rows in (table, table.head(0)):
            rows.write_parquet(tmp_path / "a.parquet")
            with refuses("not-comparable", column="kind", found=str(kind)):
                read(tmp_path / "a.parquet", schema=ALONE.changed(format="parquet", only=("kind=tea",)))
            with refuses("not-comparable", column="kind", found=str(kind)):
                from_frame(rows, schema=ALONE.changed(only=("kind=tea",)))


@pytest.mark.parametrize("piece", [None, 20])
def test_a_skipped_row_that_looks_like_another_format_decides_nothing(piece, tmp_path):
    columns = ("user", "item", "rating", "event")
    schema = ALONE.changed(header=False, columns=columns, only=("event=buy",))
    (tmp_path / "1.csv").write_text("a,x,5,buy\nb,y,3,buy\n")
    for own in ("u,y,3,buy\n", "u,y,3,view\n", ""):
        for first in ("PAR1,x,5,view\n", "PAR1\n", ""):
            (tmp_path / "2.csv").write_text(first + own)
            assert {("a", "x"), ("b", "y")} <= pairs(read(tmp_path, schema=schema))
            reader = PieceReader(schema=schema)
            with nullcontext() if piece is None else other_block_sizes(piece=piece):
                parts = [reader.read(one) for one in reader.pieces(tmp_path)]
            assert sum(len(part.items) for part in parts) == 2 + own.endswith("buy\n")


def test_a_whole_source_of_another_format_is_named(tmp_path):
    frame().write_parquet(tmp_path / "1.csv")
    (tmp_path / "2.csv").write_text("")
    schema = ALONE.changed(header=False, columns=("user", "item", "rating"))
    for source, rule in product((tmp_path, tmp_path / "1.csv"), ("drop", "reject")):
        with refuses("other-format", path="1.csv", found="Parquet"):
            read(source, schema=schema.changed(bad_rows=rule))


def test_whole_numbers_of_several_widths_are_joined_as_numbers(tmp_path):
    for name, kind in (("1", pl.Int32), ("2", pl.Int64), ("3", pl.UInt8)):
        ids = {"user": [2, 10], "item": [2, 10], "rating": [5.0, 3.0]}
        kinds = {"user": kind, "item": kind, "rating": pl.Float32}
        pl.DataFrame(ids, schema=kinds).write_parquet(tmp_path / f"{name}.parquet")
    schema = ALONE.changed(format="parquet", user_type="integer", item_type="integer")
    data = read(tmp_path, schema=schema)
    assert data.users.ids.tolist() == data.catalog.ids.tolist() == [2, 10]


def kept_by_many(case, folder, present):
    """Keep the rows of the value that most rows have: other users decide about each row."""
    if not case.schema.only:
        return read_case(case, folder, present)
    items = [row.item for row in case.rows(present) if not isinstance(row, str)]
    most = max(sorted(set(items)), key=items.count)
    return read_case(replace(case, schema=case.schema.changed(only=(f"item={most}",))), folder, present)


def test_a_condition_that_looks_at_other_rows_is_found():
    assert search(2_000, seed=3, reader=kept_by_many, forms=["text"], stop=True).differences
