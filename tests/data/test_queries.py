"""A query assumes that it decides about each row alone, and no page or log shows a database's password."""

import json
import logging
import sqlite3

import pytest

import discreet as library
from discreet.core.errors import without_password
from discreet.data.errors import NoSuchData, UnreadableCells
from discreet.data.inputs import open_data
from discreet.data.reading import cells
from discreet.data.reading.cells import Address, address_of
from discreet.privacy.guarantee import Fact, Kind
from discreet.privacy.ledger.ledger import Ledger

SECRET = "geheim"
SERVER = f"postgresql://postgres:{SECRET}@shop:5432/library"
MODEL = ("--model", "popularity", "--implicit", "--epsilon", "1")


@pytest.fixture
def shop(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE loans (user TEXT, item TEXT, rating INTEGER, time INTEGER)")
        rows = [(f"u{u}", f"i{i}", 1 + (u * i) % 5, u + 97 * i) for u in range(120) for i in range(12)]
        connection.executemany("INSERT INTO loans VALUES (?, ?, ?, ?)", rows)
    connection.close()
    return path


@pytest.fixture
def server(shop, monkeypatch):
    """Answer from SQLite whatever the server is asked; return the server's address."""

    def answered(address):
        return cells._sqlite(Address("SQLite", str(shop), address.table))

    monkeypatch.setattr(cells, "_postgresql", answered)
    monkeypatch.setitem(cells._VIEWS, "PostgreSQL", cells._VIEWS["SQLite"])
    return SERVER


def facts(model):
    return {(one.kind, one.fact) for one in model.guarantee.assumes}


@pytest.mark.parametrize("table", ["loans", "SELECT user, item, rating, time FROM loans"])
def test_no_door_shows_a_password(server, table, discreet, tmp_path, caplog):
    source, page = f"{server}::{table}", tmp_path / "page.html"
    model, ledger = tmp_path / "m.discreet", tmp_path / "l.ledger"
    doors = [
        ("evaluate", source, *MODEL, "--out", page),
        ("evaluate", source, *MODEL, "--json"),
        ("try", source, "--out", page, "--scale", "1,5"),
        ("compare", source, "--models", "popularity", "--implicit", "--epsilons", "1", "--out", page),
        ("fit", source, *MODEL, "--ledger", ledger, "--out", model, "--explain"),
        ("fit", source, *MODEL, "--ledger", ledger, "--out", model, "--force", "--json"),
        ("model", "label", model),
        ("model", "score", model, source, "--implicit"),
        ("describe", source, "--implicit"),
        ("budget", ledger, "--json"),
    ]
    for words in doors:
        page.unlink(missing_ok=True)
        code, out, error = discreet(*words)
        assert code == 0, (words[0], error)
        shown = out + error + (page.read_text("utf-8") if page.exists() else "") + caplog.text
        assert SECRET not in shown, words
        # The twin: the rest of the address is shown where a title has it.
        assert "postgres:PASSWORD@shop" in shown or "--out" not in words or words[0] == "fit"
    written = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".db"]
    assert len(written) >= 2 and not [file for file in written if SECRET.encode() in file.read_bytes()]
    assert Ledger.open(ledger).datasets() == ["library"]


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:geheim@shop/db::t",
        "postgres:/ann:geheim@shop/db",
        "postgresql://ann:my geheim@shop/db::t",
        "postgresql://ann:p@geheim@shop/db",
        "postgresql://ann:a::geheim@shop/db",
        "postgresql://:geheim@shop/db",
        "postgresql://shop/db?sslpassword=geheim&a=1::t",
        "POSTGRESQL://shop/db?PASSWORD=my geheim",
        "mysql+x://root:geheim/@shop/db::t",
        "host=shop password=geheim dbname=db::t",
        "host=shop password = 'my geheim'",
    ],
)
def test_a_password_is_hidden_in_every_form(address):
    assert SECRET in address and SECRET not in without_password(address)
    with pytest.raises(NoSuchData) as caught:
        open_data(f"x{address}")
    assert SECRET not in json.dumps(caught.value.to_json()) + str(caught.value)


@pytest.mark.parametrize("scheme", ["mysql", "postgresql", "s3"])
def test_an_address_that_cannot_be_opened_shows_no_password(discreet, scheme, tmp_path):
    source = f"{scheme}://ann:{SECRET}@127.0.0.1:1/library::loans"
    for verb in ("evaluate", "try", "describe"):
        code, out, error = discreet(verb, source)
        assert code and SECRET not in out + error
    code, out, error = discreet("fit", source, *MODEL, "--out", tmp_path / "m.discreet")
    assert code and SECRET not in out + error


def test_an_address_where_a_path_belongs_shows_no_password(discreet):
    address = f"{SERVER}::loans"
    for words in (("fit", "discreet-demo", *MODEL, "--dry-run", "--ledger", address), ("serve", address)):
        code, out, error = discreet(*words)
        assert code and SECRET not in out + error and "shop:5432" in out + error, words


@pytest.mark.parametrize("plain", ["C:/a:b@c.csv", "shop.db::select * from t where m = 'a:/b@c'", "a@b.csv"])
def test_an_address_without_a_password_stays(plain):
    assert without_password(plain) == plain


def test_a_query_is_a_condition_of_every_label(shop, tmp_path):
    query = f"{shop}::SELECT user, item, rating, time FROM loans WHERE rating > 1"
    model = library.Popularity(epsilon=1.0).fit(query, duplicates="last")
    model.save(tmp_path / "m.discreet")
    again = library.load(tmp_path / "m.discreet")
    assert (Kind.TAKEN, Fact.QUERY) in facts(model) & facts(again)
    assert [one.fact for one in again.guarantee.conditions][-1] is Fact.QUERY
    ledger = Ledger.open(tmp_path / "l.ledger")
    paid = library.Popularity(epsilon=1.0).fit(query, duplicates="last", ledger=ledger)
    (entry,) = ledger.entries("shop")
    assert (Kind.TAKEN, Fact.QUERY) in facts(paid)
    assert Fact.QUERY in {one.fact for one in entry.guarantee.assumes}
    # The twin: rows of a table.
    table = library.Popularity(epsilon=1.0).fit(f"{shop}::loans", duplicates="last")
    assert (Kind.TAKEN, Fact.QUERY) not in facts(table)


def test_a_refit_and_an_engine_assume_it_of_their_query(shop, discreet, tmp_path):
    query = "SELECT user, item, rating, time FROM loans WHERE rating > 1"
    first, second = tmp_path / "m.discreet", tmp_path / "n.discreet"
    paid = ("--ledger", tmp_path / "l.ledger")
    assert discreet("fit", f"{shop}::loans", *MODEL, *paid, "--name", "shop", "--out", first)[0] == 0
    code, _, error = discreet("refit", first, f"{shop}::{query}", *paid, "--out", second)
    assert code == 0, error
    assert (Kind.TAKEN, Fact.QUERY) in facts(library.load(second)) - facts(library.load(first))
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.execute(
            "CREATE TABLE loans AS SELECT 'u' || u AS user, 'i' || i AS item, 3 AS rating, 5 * i + u AS time "
            "FROM range(40) AS a(u), range(9) AS b(i)"
        )
    for table, expected in ((query, True), ("loans", False)):
        words = ("fit", table, "--on", f"duckdb:{tmp_path / 'd.duckdb'}", *MODEL, "--out", second, "--force")
        code, _, error = discreet(*words)
        assert code == 0, error
        assert ((Kind.TAKEN, Fact.QUERY) in facts(library.load(second))) == expected


@pytest.mark.parametrize(
    ("query", "warned"),
    [
        ("SELECT * FROM loans LIMIT 100", 1),
        ("select * from loans order by time limit 100 offset 3", 1),
        ("SELECT user, item, max(rating) AS rating FROM loans GROUP  BY user, item HAVING count(*) > 0", 1),
        ("SELECT DISTINCT user, item, rating FROM loans", 1),
        ("SELECT user, item, rating, count(*) OVER (PARTITION BY item) AS n FROM loans", 1),
        ("SELECT * FROM loans WHERE item IN (SELECT item FROM loans)", 1),
        ("SELECT * FROM loans WHERE rating > 1", 0),
        ("SELECT * FROM loans WHERE item <> 'no limit'", 0),
        ("loans", 0),
    ],
)
def test_a_query_that_may_look_at_other_rows_is_warned_of_once(shop, caplog, query, warned):
    with caplog.at_level(logging.WARNING):
        open_data(f"{shop}::{query}", duplicates="last")
    assert len([one for one in caplog.records if one.module == "cells"]) == warned


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (f"{SERVER}::loans", "library"),
        (f"{SERVER}::select * from loans", "library"),
        (f"{SERVER}?sslmode=require::select * from loans", "library"),
        ("postgresql://shop/my%20shop::select 1", "my shop"),
        ("postgresql://shop?dbname=library::select 1", "library"),
        ("postgresql://ann:geheim@shop::select 1", "ann"),
        ("postgresql://ann@shop/::select 1", "ann"),
    ],
)
def test_the_account_of_a_query_is_the_database(address, name):
    assert address_of(address).name == name


@pytest.mark.systems
def test_why_a_server_gives_no_rows_is_named(postgresql):
    import psycopg

    address = postgresql.fresh()
    with psycopg.connect(address) as connection:
        connection.execute('CREATE TABLE sold ("user" TEXT, item TEXT, rating FLOAT)')
    causes = {
        "unreachable": "postgresql://discreet:geheim@127.0.0.1:1/db::sold",
        "rejected": f"{address}_gone::sold",
        "address": f"{address}?geheim=1::sold",
        "name": f"{address}::select gone from sold",
        "syntax": f"{address}::select from from sold",
        "query": f"{address}::select 1/0 as item, 'geheim' as user",
    }
    for why, source in causes.items():
        with pytest.raises(UnreadableCells) as caught:
            open_data(source)
        assert caught.value.why == why
        assert "127.0.0.1" not in str(caught.value) and caught.value.__cause__ is None
    assert len({str(UnreadableCells(kind="PostgreSQL", source="", why=why)) for why in causes}) == len(causes)
