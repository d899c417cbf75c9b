"""Readers bring every usual layout to the same interactions."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from discreet.data import Vocabulary
from discreet.data.reading.readers import from_frame, from_scipy, read
from discreet.testing import refuses

needs_data = pytest.mark.skipif("DISCREET_DATA" not in os.environ, reason="DISCREET_DATA names no folder")

ROWS = [("7", "30", "3.5", "100"), ("7", "10", "4", "50"), ("3", "30", "0.5", "70")]
DENSE = [[0, 0.5], [4, 3.5]]


def write(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def table(separator, header="", rows=ROWS):
    lines = [separator.join(row) for row in rows]
    return "\n".join(([header] if header else []) + lines) + "\n"


def same(data):
    assert data.users.ids.tolist() == [3, 7] and data.catalog.ids.tolist() == [10, 30]
    assert data.to_scipy().toarray().tolist() == DENSE
    return True


@pytest.mark.parametrize(
    ("name", "separator", "header"),
    [
        ("plain.csv", ",", "userId,movieId,rating,timestamp"),
        ("plain.csv.gz", ",", "user_id,item_id,Rating,time"),
        ("plain.tsv", "\t", "user\titem\tscore\tts"),
        ("semi.csv", ";", '"User-ID";"ISBN";"Book-Rating";"date"'),
        ("recbole.inter", "\t", "user_id:token\titem_id:token\trating:float\ttimestamp:float"),
        ("u.data", "\t", ""),
        ("ratings.dat", "::", ""),
        ("ratings.dat.gz", "::", ""),
        ("nohead.txt", " ", ""),
        ("nohead.csv", ",", ""),
    ],
)
def test_text_layouts_are_recognized(tmp_path, name, separator, header):
    data = read(write(tmp_path / name, table(separator, header)), low=0, high=5, step=0.5)
    assert same(data) and data.times.tolist() == [70, 50, 100]
    assert data.facts.from_file == ("n_items",)


def test_windows_line_ends_a_byte_order_mark_and_extra_columns_do_no_harm(tmp_path):
    text = "\ufeffnote,userId,title,movieId,rating\r\n" + "".join(
        f'x,{user},"a, ""b""",{item},{rating}\r\n' for user, item, rating, _ in ROWS
    )
    path = tmp_path / "odd.csv"
    path.write_bytes(text.encode())
    assert same(read(path)) and read(path).times is None
    path.write_bytes(("\ufeff" + table(",")).encode())
    assert same(read(path))


def test_columns_can_be_named_and_times_left_out(tmp_path):
    path = write(tmp_path / "named.csv", table(",", "who,what,liked,moment"))
    roles = {"user": "who", "item": "what", "rating": "liked"}
    assert same(read(path, columns=roles)) and read(path, columns=roles).times is None
    assert read(path, columns={**roles, "time": "moment"}).times is not None
    usual = write(tmp_path / "usual.csv", table(",", "userId,movieId,rating,timestamp"))
    assert read(usual, columns={"time": None}).times is None
    bare = write(tmp_path / "bare.csv", table(",", rows=[(*row, "x", "y") for row in ROWS]))
    numbered = {"user": "column_1", "item": "column_2", "rating": "column_3"}
    assert same(read(bare, columns=numbered))


def test_spaces_and_quotes_around_fields_do_no_harm(tmp_path):
    spaced = "user, item, rating\n" + "".join(f"{user}, {item}, {rating}\n" for user, item, rating, _ in ROWS)
    quoted = '"user","item","rating"\n' + "".join(f'"{u}","{i}","{r}"\n' for u, i, r, _ in ROWS)
    assert same(read(write(tmp_path / "spaced.csv", spaced))) and same(
        read(write(tmp_path / "quoted.csv", quoted))
    )
    words = read(write(tmp_path / "words.csv", "user,item,rating\nann, brazil ,3\nbob,brazil,4\n"))
    assert words.catalog.ids.tolist() == ["brazil"]


def test_a_history_of_one_person_needs_no_user_column(tmp_path):
    named = write(tmp_path / "named.csv", "title,item,rating\nx,50,5\ny,172,4\n")
    bare = write(tmp_path / "bare.csv", "50,5\n172,4\n")
    for path in (named, bare):
        data = read(path, columns={"user": None})
        assert data.n_users == 1 and data.catalog.ids.tolist() == [50, 172] and data.values.tolist() == [5, 4]


def test_text_ids_stay_text_and_leading_zeros_too(tmp_path):
    path = write(tmp_path / "ids.csv", "user,item,rating\nann,007,3\nbob,12,4\n")
    data = read(path)
    assert data.users.ids.tolist() == ["ann", "bob"] and data.catalog.ids.tolist() == ["007", "12"]


def test_an_id_that_turns_to_text_late_makes_all_of_them_text(tmp_path):
    lines = [f"{k},{k},3" for k in range(9000)] + ["X1,5,4"]
    data = read(write(tmp_path / "late.csv", "user,item,rating\n" + "\n".join(lines)))
    assert data.users.is_text and not data.catalog.is_text and data.n_ratings == 9001
    assert "X1" in data.users and 8999 in data.users


@pytest.mark.parametrize(
    ("stamps", "seconds"),
    [
        (["1970-01-02 00:00:01", "1970-01-01 00:00:07"], [86401, 7]),
        (["1970-01-03", "1970-01-02"], [172800, 86400]),
        (["12.0", "5.0"], [12, 5]),
    ],
)
def test_dates_become_seconds(tmp_path, stamps, seconds):
    text = "user,item,rating,timestamp\n" + "".join(f"1,{k},3,{stamp}\n" for k, stamp in enumerate(stamps))
    assert read(write(tmp_path / "dates.csv", text)).times.tolist() == seconds


def test_parquet_reads_like_text(tmp_path):
    frame = pl.DataFrame({"item": [30, 10, 30], "x": ["a"] * 3, "user": [7, 7, 3], "rating": [3.5, 4.0, 0.5]})
    frame.write_parquet(tmp_path / "r.parquet")
    assert same(read(tmp_path / "r.parquet"))
    dates = frame.with_columns(
        timestamp=pl.Series([9, 8, 7]).cast(pl.Datetime("ms")) + pl.duration(seconds=5)
    )
    dates.write_parquet(tmp_path / "d.parquet")
    assert read(tmp_path / "d.parquet").times.tolist() == [5, 5, 5]


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, lambda table: pl.DataFrame(table).lazy()])
def test_frames_read_like_files(make):
    numbers = make({"userId": [7, 7, 3], "movieId": [30, 10, 30], "rating": [3.5, 4, 0.5]})
    assert same(from_frame(numbers))
    words = from_frame(make({"userId": ["g", "g", "c"], "movieId": ["z", "x", "z"], "rating": [3.5, 4, 0.5]}))
    assert words.users.ids.tolist() == ["c", "g"] and words.to_scipy().toarray().tolist() == DENSE


def test_categorical_columns_are_text():
    frame = pd.DataFrame({"user": pd.Categorical(["b", "a"]), "item": [1, 2], "rating": [1, 2]})
    assert from_frame(frame).users.ids.tolist() == ["a", "b"]
    assert from_frame(
        pl.DataFrame({"user": pl.Series(["b", "a"], dtype=pl.Categorical), "item": [1, 2]}), implicit=True
    )


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_matrices_keep_empty_rows_and_columns(kind):
    dense = np.array([[0, 2, 0], [0, 0, 0], [1, 5, 0]])
    data = from_scipy(kind(dense), low=1, high=5)
    assert (data.n_users, data.n_items) == (3, 3) and data.to_scipy().toarray().tolist() == dense.tolist()
    assert data.facts.from_file == ()


def test_implicit_reading_needs_no_rating_and_ignores_one(tmp_path):
    two = write(tmp_path / "two.csv", "user,item\n1,2\n1,3\n")
    three = write(tmp_path / "three.csv", "user,item,rating\n1,2,9\n1,3,8\n")
    for path in (two, three):
        data = read(path, implicit=True)
        assert data.values.tolist() == [1, 1] and (data.facts.low, data.facts.high) == (1, 1)


def test_declared_facts_reach_the_interactions(tmp_path):
    path = write(tmp_path / "r.csv", table(",", "user,item,rating,time"))
    data = read(
        path, low=0, high=5, n_users=2000, max_per_user=9, catalog=Vocabulary.of([10, 20, 30]), name="mine"
    )
    assert data.facts.from_file == () and data.facts.max_per_user == 9 and data.name == "mine"
    assert data.n_items == 3 and data.facts.n_users == 2000
    assert read(path, facts=data.facts, catalog=data.catalog).facts == data.facts
    assert read(path).name == "r" and read(path).facts.max_per_user is None


def test_one_person_one_item_or_one_value_are_legal(tmp_path):
    assert read(write(tmp_path / "one.csv", "user,item,rating\n1,2,3\n")).n_ratings == 1
    assert read(write(tmp_path / "equal.csv", "user,item,rating\n1,2,3\n2,2,3\n")).facts.low == 3


def test_a_folder_stands_for_the_file_in_it(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    write(folder / "only.tsv", table("\t", "user\titem\trating\ttime"))
    write(folder / "README", "words")
    assert same(read(folder)) and read(folder).name == "only"
    write(folder / "ratings.dat.gz", table("::"))
    assert same(read(folder)) and read(folder).name == "mine"


def jester(rows):
    return "".join(",".join(map(str, [sum(v != 99 for v in row), *row])) + "\n" for row in rows)


def test_a_dense_table_leaves_out_what_is_not_rated(tmp_path):
    rows = np.full((3, 100), 99.0)
    rows[0, 0], rows[0, 99], rows[2, 5] = -9.95, 10, 0
    data = read(write(tmp_path / "jester-data-1.csv.gz", jester(rows)))
    assert (data.n_users, data.n_items, data.n_ratings) == (3, 100, 3)
    assert data.catalog.id_at(data.items).tolist() == [1, 100, 6] and data.rows().tolist() == [0, 0, 2]
    assert (data.facts.low, data.facts.high, data.facts.step) == (-10, 10, None)


@pytest.mark.thorough
@needs_data
@pytest.mark.parametrize(
    ("folder", "users", "items", "ratings", "low", "high", "step"),
    [
        ("ml-100k", 943, 1682, 100_000, 1, 5, 1),
        ("ml-1m", 6040, 3706, 1_000_209, 1, 5, 1),
        ("ml-latest-small", 671, 9066, 100_004, 0.5, 5, 0.5),
        ("restaurant-consumer", 138, 130, 1161, 0, 2, 1),
        ("jester", 24_983, 100, 1_810_455, -10, 10, None),
        ("amazon-instant-video", 5130, 1685, 37_126, 1, 5, 1),
        ("movietweetings-100k", 16_554, 10_506, 100_000, 0, 10, 1),
    ],
)
def test_published_data_have_their_published_size(folder, users, items, ratings, low, high, step):
    data = read(Path(os.environ["DISCREET_DATA"]) / folder)
    assert (data.n_users, data.n_items, data.n_ratings) == (users, items, ratings)
    assert (data.facts.low, data.facts.high, data.facts.step) == (low, high, step)


@pytest.mark.parametrize("name", ["a[red]b.csv", "a*.csv", "z[1].csv.gz", "p[12].parquet"])
def test_a_file_name_is_a_name_and_no_pattern(tmp_path, name):
    """Nothing else in the folder may be read instead, or with it."""
    table = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "rating": [1.0, 2.0, 3.0]})
    for other in ("aeb.csv", "z1.csv", "p1.parquet"):
        write = pl.DataFrame.write_parquet if other.endswith(".parquet") else pl.DataFrame.write_csv
        write(table.head(1), tmp_path / other)
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(table.write_csv().encode()))
    elif name.endswith(".parquet"):
        table.write_parquet(tmp_path / name)
    else:
        table.write_csv(tmp_path / name)
    assert read(tmp_path / name).n_ratings == 3


def test_read_takes_a_path():
    with refuses("wrong-kind", name="path"):
        read(pl.DataFrame({"user": [1]}))


@pytest.mark.parametrize("name", ["^user.*$", "*", "no number: item", "user", "rating", "^.*$"])
def test_a_column_name_is_a_name_and_no_pattern(tmp_path, name):
    path = write(tmp_path / "names.csv", f"{name},thing,stars\n7,1,4\n8,2,3\n7,2,5\n")
    data = read(path, columns={"user": name, "item": "thing", "rating": "stars"}, low=1, high=5)
    assert data.users.ids.tolist() == [7, 8] and data.values.tolist() == [4.0, 5.0, 3.0]
