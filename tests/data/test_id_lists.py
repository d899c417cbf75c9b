"""Files of ids: lists, tables, and what cannot be told apart."""

import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.core.checks import DataError
from discreet.data.id_lists import read_declared, read_id_list
from discreet.data.reading.readers import from_frame, read
from discreet.data.vocabulary import Vocabulary
from discreet.testing import refuses


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        ("items.txt", "dune\nemma\n", ["dune", "emma"]),
        ("items.txt", "\ufeffitem\n7\n\n12\n", [7, 12]),
        ("items.txt", "7\n007\n", ["7", "007"]),
        ("items.csv", 'sku,title,genre\nS-1,"Books, deluxe",Books\nS-2,Emma,Books\n', ["S-1", "S-2"]),
        ("items.csv", "title;sku\nDune;1\nEmma;2\n", [1, 2]),
        ("items.csv", "sku,product\nS-1,Dune\n", ["S-1"]),
        ("items.csv", "code,name\nx,Dune\ny,Emma\n", ["x", "y"]),
        ("items.csv", "thing,made\nx,1965\ny,1815\n", ["x", "y"]),
        ("items.csv", "7,Dune\n12,Emma\n", [7, 12]),
        ("items.csv", '"item","title"\n"a","two\nlines"\n', ["a"]),
        ("items.tsv", "item_id\ttitle\na\tGodfather, The\n", ["a"]),
        ("items.txt", "item|title\na|Dune\n", ["a"]),
        ("items.jsonl", '{"title": "Dune", "item": 7}\n{"item": 8, "title": "x"}\n', [7, 8]),
        # One id per line, with commas in it.
        ("items.txt", "Godfather, The\nDune\n", ["Godfather, The", "Dune"]),
        ("items.txt", "Dune\nGodfather, The\n", ["Dune", "Godfather, The"]),
        ("items.txt", "item\nGodfather, The\nMatrix, The\n", ["Godfather, The", "Matrix, The"]),
        ("items.txt", "I, Robot\nYou, Me, Us\n", ["I, Robot", "You, Me, Us"]),
        ("items.csv", '"Godfather, The"\n"Matrix, The"\n', ["Godfather, The", "Matrix, The"]),
        ("items.csv", 'item\n"Godfather, The"\nDune\n', ["Godfather, The", "Dune"]),
        ("items.txt", '"Heroes"\n{3F25}\n[REC]\n', ['"Heroes"', "{3F25}", "[REC]"]),
    ],
)
def test_ids_of_lists_and_tables(tmp_path, name, text, ids):
    path = tmp_path / name
    path.write_bytes(text.encode())
    assert read_id_list(path) == ids


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("items.txt", "Godfather, The\nMatrix, The\n", "table"),
        ("items.csv", "a,Dune\nb,Emma\n", "table"),
        ("items.csv", "Dune\nGodfather, The\n", "table"),
        ("items.csv", "sku,title\na,Godfather, The\n", "fields"),
        ("items.csv", "user,item,rating\nu,a,5\n", "users"),
        ("items.csv", "sku,title\n,Dune\n", "missing"),
        ("items.jsonl", '{"item": "a"}\n{"item": 1.5}\n', "object"),
    ],
)
def test_what_is_no_list_of_ids_is_refused(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_text(text)
    with refuses("unclear-ids", why=sentence) as caught:
        read_id_list(path)
    assert "Godfather" not in str(caught.value)


def test_parquet_tables_and_users(tmp_path):
    path = tmp_path / "items.parquet"
    pl.DataFrame({"title": ["Dune", "Emma"], "item_id": [3, 4]}).write_parquet(path)
    assert read_id_list(path) == [3, 4]
    pl.DataFrame({"item": [0.5]}).write_parquet(path)
    with refuses("unclear-ids", why="type"):
        read_id_list(path)
    gone = tmp_path / "gone.csv"
    gone.write_text("why,user\nasked,ann\nleft,bob\n")
    assert read_id_list(gone, "user") == ["ann", "bob"]
    with refuses("no-files"):
        read_id_list(tmp_path / "absent.txt")


def test_a_declared_id_is_shown_where_no_item_is_declared():
    frame = pl.DataFrame({"user": ["ann", "bob"], "item": ["S-1", "S-2"], "rating": [1, 2]})
    with refuses("not-declared", count=2, of=2, what="item ids", declared=1, example="S-1,Dune") as caught:
        from_frame(frame, catalog=Vocabulary.of(["S-1,Dune"]))
    assert "S-2" not in str(caught.value)
    with refuses("not-declared", count=1, of=2, what="item ids", declared=1):
        from_frame(frame, catalog=Vocabulary.of(["S-1"]))
    # Ids of people are never shown.
    with pytest.raises(DataError) as caught:
        from_frame(frame, people=Vocabulary.of(["eve"]))
    assert "eve" not in str(caught.value)


IDS = ["a", "b", "c", "d"]
RATED = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "c", "b"], "rating": [5, 1, 3]})
CATALOGS = {
    "list": IDS,
    "tuple": tuple(IDS),
    "series": pl.Series(IDS),
    "series of pandas": pd.Series(IDS),
    "categories": pd.Series(IDS, dtype="category"),
    "index of pandas": pd.Index(IDS),
    "array": np.array(IDS),
    "array of objects": np.array(IDS, dtype=object),
    "array of arrow": pa.array(IDS),
    "one column": pl.DataFrame({"what": IDS}),
    "an item column": pd.DataFrame({"title": IDS[::-1], "sku": IDS}),
    "lazy": pl.LazyFrame({"title": IDS[::-1], "item": IDS}),
    "table of arrow": pa.table({"item_id": IDS, "title": IDS[::-1]}),
    "vocabulary": Vocabulary.of(IDS),
}


@pytest.mark.parametrize("catalog", CATALOGS.values(), ids=CATALOGS)
def test_a_catalog_is_declared_in_any_usual_form(catalog, tmp_path):
    RATED.write_csv(tmp_path / "rated.csv")
    for data in (
        from_frame(RATED, catalog=catalog, low=1, high=5),
        read(tmp_path / "rated.csv", catalog=catalog, low=1, high=5),
        from_frame(RATED, catalog=catalog, low=1, high=5, drop_unknown=True),
    ):
        assert data.catalog == Vocabulary.of(IDS) and data.facts.from_file == ()


def test_a_catalog_may_be_a_file_and_people_may_be_a_list(tmp_path):
    (tmp_path / "items.txt").write_text("\n".join(IDS))
    data = from_frame(RATED, catalog=tmp_path / "items.txt", people=[2, 1, 3])
    assert data.catalog == Vocabulary.of(IDS) and data.users.ids.tolist() == [2, 1, 3]


@pytest.mark.parametrize(
    ("catalog", "sentence"),
    [
        ({"a", "b"}, "not-ids"),
        ({"a": 1}, "not-ids"),
        (5, "not-ids"),
        (np.eye(2), "not-ids"),
        (pl.DataFrame({"x": IDS, "y": IDS}), "unclear-ids"),
        (RATED, "unclear-ids"),
        (["a", "a"], "repeated-ids"),
        ("no such file", "no-files"),
    ],
)
def test_what_is_no_catalog_is_one_sentence(catalog, sentence):
    with refuses(sentence):
        from_frame(RATED, catalog=catalog)


def test_a_column_that_was_guessed_is_named_if_its_ids_come_again(tmp_path):
    rows = [("v1", "t1"), ("v1", "t2"), ("v2", "t1")]
    lines = "".join(f'{{"watcher": "{watcher}", "clip": "{title}"}}\n' for watcher, title in rows)
    (tmp_path / "plays.jsonl").write_text(lines)
    (tmp_path / "plays.csv").write_text("watcher,label\n" + "".join(f"{a},{b}\n" for a, b in rows))
    frame = pl.DataFrame(rows, schema=["watcher", "clip"], orient="row")
    frame.write_parquet(tmp_path / "plays.parquet")
    for name in ("plays.jsonl", "plays.csv", "plays.parquet"):
        with refuses("repeated-ids", column="watcher", count=1, of=3):
            from_frame(RATED, catalog=tmp_path / name)
    # Where the column has a usual name, or is the only one, there is nothing to guess.
    for text in ("item,title\na,x\na,y\n", "a\na\n"):
        (tmp_path / "items.csv").write_text(text)
        with refuses("repeated-ids", column="", count=1, of=2):
            from_frame(RATED, catalog=tmp_path / "items.csv")


def test_a_pipe_with_an_id_that_comes_again_is_not_read_twice(tmp_path):
    pipe = tmp_path / "items"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a\na\n",))
    writer.start()
    with refuses("repeated-ids"):
        read_declared(pipe)
    writer.join()


@pytest.mark.parametrize("form", ["cp1252", "utf-16", "utf-8-sig", "xlsx", "db"])
def test_a_catalog_is_read_in_the_forms_of_ratings(form, tmp_path):
    rows = [("sku", "titel"), ("A-1", "Küche"), ("A-2", "Büro")]
    path = tmp_path / "items.csv"
    if form == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        book.active.append(["Notes"])
        for row in rows:
            book.create_sheet("Items").append(row) if row == rows[0] else book["Items"].append(row)
        book.save(tmp_path / "items.xlsx")
        path = f"{tmp_path / 'items.xlsx'}::Items"
    elif form == "db":
        with closing(sqlite3.connect(tmp_path / "items.db")) as base, base:
            base.execute("CREATE TABLE items (sku, titel)")
            base.executemany("INSERT INTO items VALUES (?, ?)", rows[1:])
        path = f"{tmp_path / 'items.db'}::items"
    else:
        path.write_bytes("".join(f"{sku};{title}\n" for sku, title in rows).encode(form))
    assert list(read_declared(Path(path)).ids) == ["A-1", "A-2"]
    data = from_frame(
        pl.DataFrame({"user": [1], "item": ["A-2"]}), implicit=True, catalog=path, duplicates="last"
    )
    assert data.n_items == 2
