"""Shards of every kind of address hold what is read from it; a view is assumed about like a query."""

import sqlite3
from functools import partial

import numpy as np
import pytest

import discreet as library
from discreet.core.errors import DiscreetError
from discreet.data.facts import QUERY
from discreet.data.inputs import open_data
from discreet.data.reading import cells
from discreet.data.reading.cells import Address
from discreet.sources import sharding
from discreet.sources.shards import open_shards

SERVER = "postgresql://ann:geheim@shop:5432/library"
ROWS = [(f"u{u}", f"i{(u * i) % 7}", 1 + (u + i) % 5, 100 * i + u) for u in range(30) for i in (1, 2, 3)]
CREATED = (
    "CREATE TABLE loans ({user} TEXT, item TEXT, rating INTEGER, time INTEGER)",
    "CREATE VIEW recent AS SELECT * FROM loans WHERE time > 150",
    "CREATE VIEW latest AS SELECT * FROM loans ORDER BY time LIMIT 40",
)
READ = {"low": 1, "high": 5, "step": 1, "duplicates": "last"}


def in_sqlite(folder):
    file = folder / "shop.db"
    with sqlite3.connect(file) as connection:
        for statement in CREATED:
            connection.execute(statement.format(user="user"))
        connection.executemany("INSERT INTO loans VALUES (?, ?, ?, ?)", ROWS)
    connection.close()
    return file


def in_duckdb(folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(folder / "shop.duckdb") as connection:
        for statement in CREATED:
            connection.execute(statement.format(user='"user"'))
        connection.executemany("INSERT INTO loans VALUES (?, ?, ?, ?)", ROWS)
    return folder / "shop.duckdb"


def in_excel(folder):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "notes"
    sheet = book.create_sheet("loans")
    for row in [("user", "item", "rating", "time"), *ROWS]:
        sheet.append(row)
    book.save(folder / "shop.xlsx")
    return folder / "shop.xlsx"


@pytest.fixture
def address(tmp_path, monkeypatch):
    """Return a function from a kind of address and what it names to the address."""

    def made(kind, table):
        if kind != "PostgreSQL":
            return (
                f"{ {'SQLite': in_sqlite, 'DuckDB': in_duckdb, 'Excel': in_excel}[kind](tmp_path) }::{table}"
            )
        file = in_sqlite(tmp_path)
        monkeypatch.setitem(cells._VIEWS, "PostgreSQL", cells._VIEWS["SQLite"])
        monkeypatch.setattr(
            cells, "_postgresql", lambda one: cells._sqlite(Address("SQLite", str(file), one.table))
        )
        return f"{SERVER}::{table}"

    return made


KINDS = ("SQLite", "DuckDB", "PostgreSQL")
QUERIES = {"loans": False, "recent": True, "SELECT * FROM loans WHERE item <> 'a//b' AND time > 150": True}
CASES = [(kind, table, query) for kind in KINDS for table, query in QUERIES.items()]


@pytest.mark.parametrize(("kind", "table", "query"), [*CASES, ("Excel", "loans", False)])
def test_shards_hold_the_rows_of_an_address(address, discreet, tmp_path, kind, table, query):
    source, out = address(kind, table), tmp_path / "shards"
    code, _, error = discreet(
        "data", "shard", source, "--out", out, "--scale", "1,5,1", "--duplicates", "last"
    )
    assert code == 0, error
    shards, expected = open_shards(out), open_data(source, **READ)
    (people,) = shards.people(0)
    assert people.users.series.to_list() == expected.users.series.to_list()
    for name in ("indptr", "items", "values", "times"):
        np.testing.assert_array_equal(getattr(people, name), getattr(expected, name))
    assert shards.facts.reading == expected.facts.reading
    assert (QUERY in shards.facts.reading) == query
    assert not [file for file in out.rglob("*") if file.is_file() and b"geheim" in file.read_bytes()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("table", "warned"), [("latest", 1), ("recent", 0), ("loans", 0)])
def test_the_query_of_a_view_is_searched_for_what_looks_at_other_rows(address, caplog, kind, table, warned):
    open_data(address(kind, table), **READ)
    assert len([one for one in caplog.records if one.module == "cells"]) == warned


@pytest.mark.parametrize("kind", ["SQLite", "PostgreSQL", "Excel"])
def test_a_stopped_run_goes_on_with_its_own_address_alone(address, tmp_path, monkeypatch, kind):
    source, out = address(kind, "loans"), tmp_path / "shards"
    make = partial(sharding.make_shards, out=out, **READ)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped, pytest.raises(KeyboardInterrupt):
        stopped.setattr(sharding._Sharder, "build", stop)
        make([source])
    assert not [file for file in out.rglob("*") if file.is_file() and b"geheim" in file.read_bytes()]
    if kind != "Excel":
        with pytest.raises(DiscreetError) as caught:
            make([source.replace("::loans", "::recent")])
        assert caught.value.code == "folder-occupied"
    assert make([source]).ratings == len({(user, item) for user, item, *_ in ROWS})


def test_a_view_of_an_engine_is_a_query(address, discreet, tmp_path):
    pytest.importorskip("duckdb")
    place = address("DuckDB", "").removesuffix("::")
    for table, query in (("recent", True), ("loans", False)):
        out = tmp_path / f"{table}.discreet"
        words = ("fit", table, "--on", f"duckdb:{place}", "--model", "popularity", "--implicit")
        code, _, error = discreet(*words, "--epsilon", "1", "--duplicates", "last", "--out", out)
        assert code == 0, error
        facts = {one.fact for one in library.load(out).guarantee.assumes}
        assert ("query" in facts) == query
