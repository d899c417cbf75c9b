"""Bad input gets one clear sentence that counts records and quotes none."""

import gzip

import numpy as np
import polars as pl
import pytest

from discreet import Popularity
from discreet.core.checks import DataError
from discreet.data.reading.readers import from_frame, from_scipy, read
from discreet.testing import refuses

HEADER = "user,item,rating\n"


def _many_lines():
    pairs = np.random.default_rng(1).integers(0, 10**6, (20_000, 2))
    return (HEADER + "".join(f"{user},{item},3\n" for user, item in pairs)).encode()


def refuse(path, code, facts=None, **options):
    with refuses(code, **(facts or {})) as caught:
        read(path, **options)
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    return message


def missing(what, count, of):
    return "bad-values", {"what": what, "count": count, "of": of}


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("", "nothing-to-read", {"found": "empty"}),
        ("\n\n", "nothing-to-read", {"found": "empty"}),
        (HEADER, "nothing-to-read", {"found": "header"}),
        ("user,title,genre,rating\n1,2,3,4\n", "roles-missing", {"roles": ("item",)}),
        ("user,item\n1,2\n", "roles-missing", {"roles": ("rating",)}),
        ("a,b,c\n1,2,3\n", "unclear-header", {"columns": 3}),
        ("wer,was,wann\nann,b,2024-01-02\n", "unclear-header", {"columns": 3}),
        ("one\n1\n2\n", "nothing-to-read", {"found": "column"}),
        ("secret,thing\nann,other\n", "unclear-header", {"columns": 2}),
        ("secret,a,good\nann,b,bad\n", "unclear-header", {"columns": 3}),
        (HEADER + "1,2,\n1,3,4\n", *missing("ratings", 1, 2)),
        (HEADER + "1,2,NaN\n1,3,4\n2,3,nan\n", *missing("ratings", 2, 3)),
        (HEADER + "1,2,inf\n", *missing("ratings", 1, 1)),
        (HEADER + "1,2,3\n\n1,3,secret\n", "unreadable-values", {"column": "rating", "line": 4, "of": 2}),
        (HEADER + "1,2,3\n1,2,4\n1,2,5\n", "repeated-pairs", {"count": 2, "of": 3}),
        (HEADER + ",2,3\n1,2,4\n", *missing("user IDs", 1, 2)),
        ("user,item,rating,time\n1,2,3,noon\n", "unreadable-values", {"role": "time", "count": 1}),
        ("user,item,rating,time\n1,2,3,\n1,3,3,5\n", *missing("times", 1, 2)),
    ],
)
def test_text_that_cannot_be_used(tmp_path, text, code, facts):
    for name, content in (("bad.csv", text.encode()), ("bad.csv.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(content)
        assert "secret" not in refuse(tmp_path / name, code, facts)


def test_ratings_outside_the_scale_are_counted(tmp_path):
    path = tmp_path / "scale.csv"
    path.write_text(HEADER + "1,2,77\n1,3,4\n2,3,-66\n")
    message = refuse(path, "off-declared-scale", {"count": 2, "of": 3}, low=1, high=5)
    assert "77" not in message and "66" not in message
    path.write_text(HEADER + "1,2,2.5\n1,3,4\n")
    refuse(path, "off-declared-scale", {"count": 1, "of": 2}, low=1, high=5, step=1)


def test_repeated_pairs_are_merged_when_told(tmp_path):
    path = tmp_path / "again.csv"
    path.write_text(HEADER + "1,2,3\n1,2,5\n")
    assert read(path, duplicates="last").values.tolist() == [5]
    assert read(path, duplicates="mean").values.tolist() == [4]


def test_files_that_are_not_there_or_not_tables(tmp_path):
    refuse(tmp_path / "nowhere.csv", "no-files")
    refuse(tmp_path, "folder-without-tables")
    (tmp_path / "a.csv").write_text(HEADER + "1,2,3\n")
    (tmp_path / "b.csv").write_text("user,sku,rating\n1,2,3\n")
    refuse(tmp_path, "other-header", {"path": "b.csv"})


@pytest.mark.parametrize(
    ("name", "content", "code", "facts"),
    [
        ("junk.csv", bytes(range(256)) * 40, "not-a-table", {"found": "binary"}),
        ("noise.bin", np.random.default_rng(0).bytes(5000), "not-a-table", {"found": "binary"}),
        (
            "cut.csv.gz",
            gzip.compress(b"user,item,rating\n" + b"1,2,3\n" * 1000, mtime=0)[:-20],
            "damaged-file",
            {},
        ),
        ("long.csv.gz", gzip.compress(_many_lines(), mtime=0)[:-4000], "damaged-file", {}),
        ("fake.gz", b"\x1f\x8b" + bytes(50), "damaged-file", {}),
        ("pack.zip", b"PK\x03\x04" + bytes(50), "damaged-file", {"what": "a zip archive"}),
        ("half.parquet", b"PAR1" + bytes(50), "damaged-file", {"what": "Parquet"}),
        ("ragged.csv", b"user,item,rating\n1,2,3\n1,3,4,5,6\n", "wrong-fields", {"line": 3, "values": 5}),
        (
            "no-time.csv",
            b"user,item,rating,time\n1,2,3,4\n1,3,5\n",
            "wrong-fields",
            {"line": 3, "values": 3, "columns": 4},
        ),
        ("short.csv", b"user,item,rating\n1,2,3\n1\n", "wrong-fields", {"line": 3, "values": 1}),
        ("open.csv", b'user,item,rating\n1,2,3\n1,"2,4\n', "wrong-quotes", {"line": 3}),
        (
            "latin.csv",
            "user,item,rating\nJos\u00e9,2,3\n".encode("latin-1"),
            "not-text",
            {"line": 2, "encoding": "UTF-8"},
        ),
    ],
)
def test_files_that_are_damaged_or_foreign(tmp_path, name, content, code, facts):
    (tmp_path / name).write_bytes(content)
    refuse(tmp_path / name, code, facts)


def test_a_parquet_file_cut_in_half(tmp_path):
    pl.DataFrame({"user": range(1000), "item": range(1000), "rating": [3.0] * 1000}).write_parquet(
        tmp_path / "r.parquet"
    )
    whole = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "r.parquet").write_bytes(whole[: len(whole) // 2])
    refuse(tmp_path / "r.parquet", "damaged-file")


def test_columns_that_are_not_there(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(HEADER + "1,2,3\n")
    refuse(path, "no-column", {"column": "stars", "role": "rating"}, columns={"rating": "stars"})
    refuse(path, "unknown-choice", {"name": "columns"}, columns={"film": "movie"})
    refuse(path, "columns-reversed", {"role": "item", "column": "film"}, columns={"film": "item"})
    refuse(path, "one-column-twice", columns={"user": "item"})


def test_a_dense_table_that_contradicts_itself(tmp_path):
    row = ",".join(["5"] + ["99"] * 98 + ["1", "2"])
    (tmp_path / "j.csv").write_text(row + "\n")
    refuse(tmp_path / "j.csv", "other-counts", {"count": 1, "of": 1})
    (tmp_path / "j.csv").write_text(row.replace("5,", "2,", 1) + "\n" + ",".join(["x"] * 101) + "\n")
    refuse(tmp_path / "j.csv", "other-layout", {"layout": "jester"})


def test_objects_that_are_no_tables():
    with refuses("not-a-frame", found="list"):
        from_frame([1, 2, 3])
    with refuses("wrong-kind", name="matrix"):
        from_scipy([[1, 2]])
    with refuses("empty-data"):
        from_frame(pl.DataFrame({"user": [], "item": [], "rating": []}))
    with refuses("unreadable-values", count=1, of=1, role="rating", column="rating"):
        from_frame(pl.DataFrame({"user": [1], "item": [1], "rating": ["good"]}))
    with refuses("bad-values", what="ratings", count=1, of=2):
        from_frame(pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [1, None]}))
    with refuses("not-numeric", what="ratings", kind="numbers", found="List(Int64)"):
        from_frame(pl.DataFrame({"user": [1], "item": [1], "rating": [[1]]}))


ROUNDED = [
    "19000000000000000001",
    "18446744073709551617",
    "-9223372036854775809",
    "0.1234567890123456789",
    "1e3",
]


@pytest.mark.parametrize("number", ROUNDED)
def test_ids_that_would_be_rounded_are_refused(number, tmp_path):
    """Two people whose long numbers round to one would be one user, and no bound would hold."""
    file = tmp_path / "clicks.jsonl"
    file.write_text(f'{{"user": {number}, "item": 1}}\n{{"user": 3, "item": 2}}\n')
    with pytest.raises(DataError) as refused:
        read(file, implicit=True)
    assert number not in str(refused.value)
    # The twin: as text it is an id like any other, if no number is written that way.
    whole = number.lstrip("-").isdigit()
    file.write_text(f'{{"user": "{number}", "item": 1}}\n{{"user": 3, "item": 2}}\n')
    if whole:
        assert number in [str(one) for one in read(file, implicit=True).users.ids.tolist()]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("time", pl.Series([18446744073709551613, 1, 2], dtype=pl.UInt64)),
        ("time", pl.Series([1e300, 1.0, 2.0])),
        ("time", pl.Series([float("nan"), 1.0, 2.0])),
        ("user", pl.Series([1e25, 1.0, 2.0])),
    ],
)
def test_numbers_that_do_not_fit_are_not_quoted(column, values, tmp_path):
    table = {
        "user": [1, 2, 3],
        "item": [1, 2, 3],
        "rating": [1.0, 2.0, 3.0],
        "time": [1, 2, 3],
        column: values,
    }
    file = tmp_path / "odd.parquet"
    pl.DataFrame(table).write_parquet(file)
    with pytest.raises(DataError) as refused:
        read(file)
    assert refused.value.__cause__ is None and str(values[0]) not in str(refused.value)


def test_a_model_is_told_from_an_archive_of_ratings(tmp_path):
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [3.0, 4.0]})
    Popularity(epsilon=1.0).fit(from_frame(frame, low=1, high=5)).save(tmp_path / "shop.discreet")
    refuse(tmp_path / "shop.discreet", "is-a-model")
