"""Several files, spreadsheets and databases are read as one file of text would be, each row by itself."""

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import discreet
from discreet.data.block_sizes import other_block_sizes
from discreet.data.errors import IdsNotWhole, NoFiles, NoTable, UnreadableCells
from discreet.data.inputs import files_of, open_data
from discreet.data.item_tables import PublicTable
from discreet.data.roles import choose
from discreet.data.schema import Schema
from discreet.sources.sharding import PieceReader
from discreet.testing import refuses

HEADER = ("user", "item", "rating", "time")
ANN = [("ann", "tea", 5, "2024-01-02"), ("ann", "jam", 3.5, "2024-01-03"), ("007", "tea", 1, "2024-02-01")]
# Cells of other types, which must not change how the cells of others are read.
ODD = [("zoe", 7, 2.25, 1.5), ("zoe", "tea", 4, "1700000000000000001"), ("zoe", "jam", 2, 5)]


def ratings(data):
    rows = zip(
        data.users.id_at(data.rows()).tolist(),
        data.catalog.id_at(data.items).tolist(),
        data.values.tolist(),
        data.times.tolist(),
        strict=True,
    )
    return sorted(row for row in rows if row[0] != "zoe")


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEADER, *rows])
    return str(path)


def write_excel(path, rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [HEADER, *rows]:
        book.active.append(row)
    book.create_sheet("other").append(("nothing",))
    book.save(path)
    return str(path)


def write_sqlite(path, rows):
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    # Without types, each cell keeps its own.
    connection.execute("CREATE TABLE sold (user, item, rating, time)")
    connection.executemany("INSERT INTO sold VALUES (?, ?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return f"{path}::sold"


def write_duckdb(path, rows):
    duckdb = pytest.importorskip("duckdb")
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE sold (user TEXT, item TEXT, rating DOUBLE, time TEXT)")
        connection.executemany("INSERT INTO sold VALUES (?, ?, ?, ?)", [list(map(str, row)) for row in rows])
    return f"{path}::sold"


KINDS = {"r.csv": write_csv, "r.xlsx": write_excel, "r.db": write_sqlite, "r.duckdb": write_duckdb}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_reads_what_text_reads(name, tmp_path):
    expected = ratings(discreet.read(write_csv(tmp_path / "expected.csv", ANN), duplicates="last"))
    assert ratings(discreet.read(KINDS[name](tmp_path / name, ANN), duplicates="last")) == expected


@pytest.mark.few(1)
@pytest.mark.parametrize("name", KINDS)
def test_cells_of_one_user_change_no_others(name, tmp_path):
    """The same schema, with and without a user whose cells have other types."""
    schema = discreet.read(KINDS[name](tmp_path / name, ANN)).schema.changed(
        bad_rows="drop", duplicates="count"
    )
    alone = ratings(discreet.read(KINDS[name](tmp_path / name, ANN), schema=schema))
    for rows in ([*ANN, *ODD], [*ODD, *ANN], [ANN[0], *ODD, *ANN[1:]]):
        assert ratings(discreet.read(KINDS[name](tmp_path / name, rows), schema=schema)) == alone


def test_a_query_is_read_like_a_table(tmp_path):
    table = write_sqlite(tmp_path / "r.db", ANN)
    query = table.replace("sold", "select user, item, rating, time from sold where item = 'tea'")
    assert [row[:2] for row in ratings(discreet.read(query))] == [("007", "tea"), ("ann", "tea")]


def test_the_only_table_needs_no_name(tmp_path):
    path = write_sqlite(tmp_path / "r.db", ANN).removesuffix("::sold")
    assert discreet.read(path).n_ratings == 3
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE more (a)")
    with pytest.raises(NoTable) as caught:
        discreet.read(path)
    assert caught.value.tables == ("more", "sold")


def test_a_wrong_type_has_a_code(tmp_path):
    table = write_sqlite(tmp_path / "r.db", [(1, 2, 3, 4)])
    schema = discreet.read(table).schema
    assert schema.user_type == "integer"
    write_sqlite(tmp_path / "r.db", [(1, 2, 3, 4), ("x", 2, 3, 4)])
    with pytest.raises(IdsNotWhole) as caught:
        discreet.read(table, schema=schema)
    assert (caught.value.count, caught.value.role) == (1, "user")


def test_a_folder_by_month_a_pattern_and_a_list_are_one_table(tmp_path):
    whole = ratings(discreet.read(write_csv(tmp_path / "whole.csv", ANN)))
    months = tmp_path / "months"
    first = write_csv(months / "month=2024-01" / "part.csv", ANN[:2])
    second = write_csv(months / "month=2024-02" / "part.csv", ANN[2:])
    (months / "_SUCCESS").touch()
    for source in (str(months), f"{months}/", str(months / "*" / "*.csv"), f"{first},{second}"):
        data = open_data(source)
        # Releases of the same files are of one account.
        assert ratings(data) == whole and len(files_of(source)) == 2 and data.name == "months"
    with pytest.raises(NoFiles):
        discreet.read(str(months / "*.tsv"))


def test_a_guess_that_a_later_file_refutes_holds_for_none(tmp_path):
    """Users of the first file are numbers; those of the second are not, so all are text."""
    write_csv(tmp_path / "m" / "a.csv", [("1", "tea", 5, 1), ("10", "tea", 5, 1)])
    write_csv(tmp_path / "m" / "b.csv", [("ann", "tea", 5, 1)])
    data = discreet.read(tmp_path / "m")
    assert data.users.ids.tolist() == ["1", "10", "ann"] and data.schema.user_type == "text"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_titles_are_read_in_usual_encodings(encoding, tmp_path):
    path = tmp_path / "titles.csv"
    path.write_text("item;title\ntea;Thé\n", encoding=encoding)
    assert PublicTable.read(path).texts["title"].to_list() == ["Thé"]


def test_titles_may_be_a_sheet_or_a_table(tmp_path):
    rows = [("tea", "Thé", 1, 2)]
    for name in ("t.xlsx", "t.db"):
        address = KINDS["r" + name[1:]](tmp_path / name, rows)
        assert PublicTable.read(Path(address)).texts["item"].to_list() == ["Thé"]


def test_keys_inside_objects_are_columns(tmp_path):
    path = tmp_path / "clicks.jsonl"
    path.write_text(
        '{"customer": {"id": "ann"}, "product": {"sku": "tea"}, "at": "2024-01-02T10:00:00Z"}\n'
        '{"customer.id": "bob", "product": {"sku": 7}, "at": 5}\n{"customer": "eve", "product": 1, "at": 1}\n'
    )
    columns = {"user": "customer.id", "item": "product.sku", "time": "at"}
    data = discreet.read(path, columns=columns, implicit=True, skip_bad_lines=True)
    assert data.users.ids.tolist() == ["ann", "bob"] and data.catalog.ids.tolist() == ["7", "tea"]


def test_utf_16_needs_no_option(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("user,item,rating\nJoé,tea,5\n", encoding="utf-16")
    assert discreet.read(path).users.ids.tolist() == ["Joé"]


@pytest.mark.systems
def test_a_table_of_postgresql_reads_what_text_reads(tmp_path, postgresql):
    import psycopg

    address = postgresql.fresh()
    with psycopg.connect(address) as connection:
        connection.execute('CREATE TABLE sold ("user" TEXT, item TEXT, rating FLOAT, time DATE)')
        connection.cursor().executemany("INSERT INTO sold VALUES (%s, %s, %s, %s)", ANN[::-1])
    expected = ratings(discreet.read(write_csv(tmp_path / "expected.csv", ANN)))
    data = open_data(f"{address}::sold")
    # All tables of a database are about the same users, so they share an account.
    assert ratings(data) == expected and data.name == address.rpartition("/")[2]
    rated_above_one = f"{address}::select * from sold where rating > 1"
    assert ratings(open_data(rated_above_one)) == expected[1:]
    with refuses("no-table", table="gone", tables=("sold",)):
        open_data(f"{address}::gone")
    with pytest.raises(UnreadableCells) as caught:
        open_data(f"{address}::select gone from sold")
    assert "127.0.0.1" not in str(caught.value)
    with psycopg.connect(address) as connection:
        connection.execute("CREATE VIEW good AS SELECT * FROM sold WHERE rating > 1")
        connection.execute("CREATE MATERIALIZED VIEW kept AS SELECT * FROM sold")
    made = {"sold": False, "good": True, "public.good": True, "kept": True}
    assert {name: bool(open_data(f"{address}::{name}").facts.reading.count("query")) for name in made} == made


@pytest.mark.systems
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_a_date_that_python_does_not_have_is_one_bad_row(postgresql, kind):
    import psycopg

    address, others = postgresql.fresh(), []
    with psycopg.connect(address) as connection:
        columns = f'"user" TEXT, item TEXT, rating FLOAT, time {kind}, took INTERVAL'
        connection.execute(f"CREATE TABLE sold ({columns})")
        insert = "INSERT INTO sold VALUES (%s, %s, %s, %s, %s)"
        connection.cursor().executemany(insert, [(*row, "1 day") for row in ANN])
        for date, took in ((None, "1 day"), ("20000-01-01", "1 day"), ("infinity", "170000000 years")):
            if date is not None:
                connection.execute(insert, ("zoe", "tea", 5, date, took))
            connection.commit()
            schema = Schema(format="cells", user="user", item="item", rating="rating", time="time")
            others.append(ratings(open_data(f"{address}::sold", schema=schema)))
    assert others[0] and others[1:] == [others[0], others[0]]
    with refuses("unreadable-values"):
        open_data(f"{address}::sold", schema=schema.changed(bad_rows="reject"))


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_no_date_or_interval_of_duckdb_rejects_the_rows_of_others(tmp_path, kind):
    import duckdb

    path, insert = tmp_path / "shop.duckdb", "INSERT INTO sold VALUES (?, ?, ?, ?, ?)"
    schema = Schema(format="cells", user="user", item="item", rating="rating", time="time")
    expected = ratings(discreet.read(write_csv(tmp_path / "expected.csv", ANN)))
    with duckdb.connect(path) as connection:
        connection.execute(
            f'CREATE TABLE sold ("user" TEXT, item TEXT, rating FLOAT, time {kind}, took INTERVAL[])'
        )
        connection.executemany(insert, [(*row, ["1 day"]) for row in ANN])
    for date, took in (("20000-01-01", "1 day"), ("infinity", "1 day"), ("2024-01-01", "10000000 years")):
        with duckdb.connect(path) as connection:
            connection.execute(insert, ("zoe", date, 5, date, [took]))
        assert ratings(open_data(f"{path}::sold", schema=schema)) == expected
    rated_below_two = f"{path}::select * from sold where rating < 2;"
    assert ratings(open_data(rated_below_two, schema=schema)) == expected[:1]


@pytest.mark.systems
def test_a_command_fits_a_table_of_postgresql(tmp_path, postgresql, discreet):
    import psycopg

    address = postgresql.fresh()
    with psycopg.connect(address) as connection:
        connection.execute('CREATE TABLE sold ("user" TEXT, item TEXT, rating FLOAT, time DATE)')
        connection.cursor().executemany("INSERT INTO sold VALUES (%s, %s, %s, %s)", ANN[::-1])
    out = tmp_path / "m.discreet"
    run = discreet(
        "fit", f"{address}::sold", "--model", "popularity", "--implicit", "--epsilon", "1", "--out", out
    )
    assert run[0] == 0 and out.exists()


@pytest.mark.parametrize("name", ["r.xlsx", "r.db", "r.duckdb"])
def test_a_wrong_table_lists_those_there_are(tmp_path, name):
    place = KINDS[name](tmp_path / name, ANN).partition("::")[0]
    with refuses("no-table", table="gone", tables=("Sheet", "other") if "xlsx" in name else ("sold",)):
        open_data(f"{place}::gone")


def test_a_book_with_several_sheets_asks_for_one(tmp_path):
    from openpyxl import Workbook

    book, path = Workbook(), tmp_path / "club.xlsx"
    book.active.title = "Read me"
    book.active.append(["note"])
    sheet = book.create_sheet("Ratings")
    for row in (("user", "item", "rating"), ("ann", "tea", 5), ("bob", "jam", 4)):
        sheet.append(row)
    book.save(path)
    with refuses("no-table", tables=("Read me", "Ratings")):
        open_data(str(path))
    assert open_data(f"{path}::Ratings").n_users == 2


def sheet_of(path, *rows):
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.title = "Ratings"
    for row in rows:
        book.active.append(row)
    book.save(path)
    return f"{path}::Ratings"


ROWS = (("ann", "tea", 5, "2024-01-02"), ("bob", "jam", 4, "2024-01-03"))


@pytest.mark.parametrize("columns", [None, {"user": "user", "item": "item"}])
@pytest.mark.parametrize("above", [[("Ratings 2025",)], [(), ("Ratings 2025",), ("By", "us")]])
def test_a_title_above_the_header_is_skipped(above, columns, tmp_path):
    address = sheet_of(tmp_path / "a.xlsx", *above, HEADER, *ROWS)
    found = open_data(address, columns=columns)
    assert found.n_users == 2 and found.schema.skip_rows == len(above) and "skip_rows" in found.schema.guessed
    assert str(len(above)) in found.facts.layout
    assert open_data(address, schema=found.schema).n_users == 2
    assert open_data(address, columns=columns, skip_rows=len(above)).schema.guessed == data_guessed(columns)
    # The twin: a schema without a title.
    data = open_data(sheet_of(tmp_path / "b.xlsx", HEADER, *ROWS), columns=columns)
    assert data.n_users == 2 and not data.schema.skip_rows
    with refuses("header-not-found", source=address, names=1, cells=4, above=len(above)):
        open_data(address, schema=data.schema)


def data_guessed(columns):
    return ("format", "user_type", "item_type", *(() if columns else ("user", "item")), "rating", "time")


def test_unusual_names_below_a_title_are_reported(tmp_path):
    address = sheet_of(
        tmp_path / "a.xlsx", ("Ratings 2025",), ("Wer", "Was", "Wie"), *(row[:3] for row in ROWS)
    )
    with refuses("header-not-found", source=address, names=1, cells=3, above=1):
        open_data(address)
    columns = {"user": "Wer", "item": "Was", "rating": "Wie"}
    assert open_data(address, columns=columns).schema.skip_rows == 1
    assert open_data(address, columns=columns, skip_rows=1).n_users == 2


@pytest.mark.parametrize("above", [[("Notes",), ("2026",)], [("Notes",), (), (), ("May", None)]])
@pytest.mark.parametrize("given", range(2))
def test_the_advice_about_titles_leads_on(above, given, tmp_path):
    names = ("Wer", "Was", "Wie")
    address = sheet_of(tmp_path / "a.xlsx", *above, names, *(row[:3] for row in ROWS))
    with refuses("header-not-found", above=len(above)):
        open_data(address, **({"skip_rows": given} if given else {}))
    with refuses("roles-missing", columns=names):
        open_data(address, skip_rows=len(above))
    assert open_data(address, columns=dict(zip(("user", "item", "rating"), names, strict=True))).n_users == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
@pytest.mark.parametrize("title", ["Käufe 2025\n", "Käufe 2025;;\n\nVon: Büro\n", '"Käufe; 2025"\n'])
@pytest.mark.parametrize("block", [64, 1 << 22])
def test_lines_above_the_header_of_a_text_are_skipped(title, encoding, block, tmp_path):
    path = tmp_path / "a.csv"
    rows = "".join(f"{user};{item};{rating};2024-01-0{rating}\n" for user, item, rating, _ in ROWS * 9)
    path.write_bytes(f"{title}user;item;rating;time\n{rows}".encode(encoding))
    options = {"duplicates": "last", **({"encoding": encoding} if encoding == "cp1252" else {})}
    with other_block_sizes(text=block, piece=block):
        found = open_data(path, **options)
        assert found.n_users == 2 and found.schema.skip_rows == title.count("\n")
        assert "skip_rows" in found.schema.guessed
        again = open_data(path, schema=found.schema)
        assert again.n_ratings == 2
        reader = PieceReader(schema=found.schema)
        assert sum(len(reader.read(piece).items) for piece in reader.pieces(path)) == 18
    assert open_data(path, skip_rows=title.count("\n"), **options).n_users == 2
    # The twin: a row that looks like a header is below rows of the same width.
    path.write_bytes(f"7;8;3;1\nuser;item;rating;time\n{rows}".encode(encoding))
    with refuses("unreadable-values"):
        open_data(path, **options)


@pytest.mark.parametrize("rows", [[], [()]])
def test_an_empty_sheet_is_reported(rows, tmp_path):
    with refuses("header-not-found", names=0, cells=0):
        open_data(sheet_of(tmp_path / "a.xlsx", *rows))


@pytest.mark.parametrize(
    "rows",
    [
        [(None, *HEADER), *((number, *row) for number, row in enumerate(ROWS))],
        [HEADER, *((*row, "a note", None, "more") for row in ROWS)],
        [(*HEADER, None, None), *ROWS],
        [HEADER, *ROWS, ("total",)],
    ],
)
def test_cells_beside_the_named_columns_change_nothing(rows, tmp_path):
    address = sheet_of(tmp_path / "a.xlsx", *rows)
    data = open_data(address, skip_bad_lines=True)
    assert (data.n_users, data.n_items, data.schema.columns) == (2, 2, HEADER)


def test_a_name_of_two_columns_is_reported(tmp_path):
    with refuses("columns-alike", column="rating", count=2):
        open_data(sheet_of(tmp_path / "a.xlsx", (*HEADER, "rating"), *((*row, 1) for row in ROWS)))


@pytest.mark.parametrize("asked", ["RATINGS", "ratings", "Rating"])
def test_the_most_similar_sheet_is_suggested(asked, tmp_path):
    path = tmp_path / "club.xlsx"
    write_excel(path, ANN)
    with refuses("no-table", place=str(path), table="otter") as caught:
        open_data(f"{path}::otter")
    assert f"{path}::other" in str(caught.value) and f"{path}::Sheet" not in str(caught.value)
    # The twin: no sheet is similar to this name, so all are suggested.
    with refuses("no-table") as caught:
        open_data(f"{path}::2")
    assert f"{path}::other" in str(caught.value) and f"{path}::Sheet" in str(caught.value)
    address = sheet_of(path, HEADER, *ROWS)
    with refuses("no-table", table=asked, tables=("Ratings",)) as caught:
        open_data(address.replace("Ratings", asked))
    assert address in str(caught.value)


def test_a_missing_file_of_an_address_is_named_alone(tmp_path):
    path = tmp_path / "absent.xlsx"
    with refuses("no-such-data", name=str(path)):
        open_data(f"{path}::Ratings")
    with refuses("no-files", source=str(path)):
        discreet.read(f"{path}::Ratings")
    # The twin: a file that is there isn't called absent.
    path.write_text("user,item,rating\nann,tea,5\n")
    with refuses("no-files", source=f"{path}::Ratings"):
        discreet.read(f"{path}::Ratings")


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["Member", "Wine", "Stars", "Tasted on"], {"item": "Wine", "time": "Tasted on"}),
        (["order_id", "customer_no", "sku", "rating"], {"user": "customer_no", "item": "sku"}),
        (["user_id", "title_id", "seconds", "rating"], {"item": "title_id"}),
        (["reader_id", "isbn", "stars"], {"user": "reader_id", "item": "isbn"}),
        (["Kundennummer", "Titel", "Bewertung", "Kaufdatum"], {"user": "Kundennummer", "item": "Titel"}),
        (["visitor key", "item_code", "rating"], {"user": "visitor key", "item": "item_code"}),
    ],
)
def test_columns_of_shops_are_found(names, found):
    chosen = choose(names, None, implicit=False)
    assert choose(names, None, implicit=True)["item"] == chosen["item"]
    assert {role: chosen[role] for role in found} == found


def test_columns_given_the_wrong_way_round_are_reported():
    with refuses("columns-reversed", role="user", column="customer_id"):
        choose(["customer_id", "item", "rating"], {"customer_id": "user"}, implicit=False)
    # The twin: a role that is neither is unknown.
    with refuses("unknown-choice", name="columns", value="who"):
        choose(["customer_id", "item", "rating"], {"who": "customer_id"}, implicit=False)


@pytest.mark.parametrize("table", ["sales", "SELECT * FROM sales"])
def test_rows_of_a_database_have_no_number_and_its_table_is_named(table, tmp_path, caplog):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as base:
        base.execute("CREATE TABLE sales (user TEXT, item TEXT, rating REAL)")
        base.executemany("INSERT INTO sales VALUES (?, ?, ?)", [("a", "x", 1), ("b", "y", None)])
        base.commit()
    address = f"{tmp_path / 'shop.db'}::{table}"
    named = "table sales" if table == "sales" else "the query"
    with refuses("bad-values", line=0, path=named, count=1, optional=True):
        open_data(address)
    open_data(address, skip_bad_lines=True)
    assert named in caplog.text and "implicit=True" in caplog.text
    # The twin: rows of a sheet have the numbers that its owner sees.
    with refuses("bad-values", line=3, path="a"):
        open_data(sheet_of(tmp_path / "a.xlsx", ("user", "item", "rating"), ("a", "x", 1), ("b", "y", None)))
