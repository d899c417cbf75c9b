"""Bad input gets one clear sentence that counts records and quotes none."""

import gzip

import numpy as np
import polars as pl
import pytest

from discreet import Popularity
from discreet.core.checks import DataError, DiscreetError, FileError, ParameterError
from discreet.data.reading.readers import from_frame, from_scipy, read
from discreet.testing import refuses

HEADER = "user,item,rating\n"


def _many_lines():
    pairs = np.random.default_rng(1).integers(0, 10**6, (20_000, 2))
    return (HEADER + "".join(f"{user},{item},3\n" for user, item in pairs)).encode()


def refuse(path, kind, says, **options):
    with pytest.raises(DiscreetError, match=says) as caught:
        read(path, **options)
    message = str(caught.value)
    assert isinstance(caught.value, kind) and "\n" not in message and message.endswith(".")
    return message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        (HEADER, "a header and no ratings"),
        ("user,title,rating\n1,2,3\n", "find the item column.*user, title, and rating"),
        ("user,item\n1,2\n", "find the rating column.*user and item.*interactions"),
        ("a,b,c\n1,2,3\n", "find the user, item, or rating column.*a, b, and c"),
        ("wer,was,wann\nann,b,2024-01-02\n", "find the user, item, or rating column.*wer, was, and wann"),
        ("one\n1\n2\n", "one column only"),
        ("secret,thing\nann,other\n", "does not say which column is which"),
        ("secret,a,good\nann,b,bad\n", "does not say which column is which"),
        (HEADER + "1,2,\n1,3,4\n", "1 of 2 ratings are missing"),
        (HEADER + "1,2,NaN\n1,3,4\n2,3,nan\n", "2 of 3 ratings are missing"),
        (HEADER + "1,2,inf\n", "1 of 1 ratings are missing"),
        (
            HEADER + "1,2,3\n\n1,3,secret\n",
            r"1 of 2 ratings are text where a number belongs \(column rating\).*first is in line 4\.$",
        ),
        (HEADER + "1,2,3\n1,2,4\n1,2,5\n", "2 of 3 ratings repeat a user-item pair.*duplicates="),
        (HEADER + ",2,3\n1,2,4\n", "1 of 2 user ids are missing"),
        ("user,item,rating,time\n1,2,3,noon\n", "1 of 1 times are neither numbers nor dates"),
        ("user,item,rating,time\n1,2,3,\n1,3,3,5\n", "1 of 2 times are missing"),
    ],
)
def test_text_that_cannot_be_used(tmp_path, text, says):
    for name, content in (("bad.csv", text.encode()), ("bad.csv.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(content)
        assert "secret" not in refuse(tmp_path / name, DataError, says)


def test_ratings_outside_the_scale_are_counted(tmp_path):
    path = tmp_path / "scale.csv"
    path.write_text(HEADER + "1,2,77\n1,3,4\n2,3,-66\n")
    message = refuse(path, DataError, "2 of 3 ratings are not on the declared scale, 1 to 5", low=1, high=5)
    assert "77" not in message and "66" not in message
    path.write_text(HEADER + "1,2,2.5\n1,3,4\n")
    refuse(path, DataError, "1 of 2 ratings are not on the declared scale", low=1, high=5, step=1)


def test_repeated_pairs_are_merged_when_told(tmp_path):
    path = tmp_path / "again.csv"
    path.write_text(HEADER + "1,2,3\n1,2,5\n")
    assert read(path, duplicates="last").values.tolist() == [5]
    assert read(path, duplicates="mean").values.tolist() == [4]


def test_files_that_are_not_there_or_not_tables(tmp_path):
    refuse(tmp_path / "nowhere.csv", FileError, "There is no file")
    refuse(tmp_path, FileError, "has no tables")
    (tmp_path / "a.csv").write_text(HEADER + "1,2,3\n")
    (tmp_path / "b.csv").write_text("user,sku,rating\n1,2,3\n")
    refuse(tmp_path, FileError, "b.csv")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("junk.csv", bytes(range(256)) * 40, "not a text table"),
        ("noise.bin", np.random.default_rng(0).bytes(5000), "not a text table"),
        ("cut.csv.gz", gzip.compress(b"user,item,rating\n" + b"1,2,3\n" * 1000, mtime=0)[:-20], "damaged"),
        ("long.csv.gz", gzip.compress(_many_lines(), mtime=0)[:-4000], "damaged"),
        ("fake.gz", b"\x1f\x8b" + bytes(50), "damaged"),
        ("pack.zip", b"PK\x03\x04" + bytes(50), "zip archive"),
        ("half.parquet", b"PAR1" + bytes(50), "damaged"),
        ("ragged.csv", b"user,item,rating\n1,2,3\n1,3,4,5,6\n", "Line 3 .* 5 fields where 3 belong"),
        (
            "no-time.csv",
            b"user,item,rating,time\n1,2,3,4\n1,3,5\n",
            "Line 3 .* 3 fields where 4 belong.*--skip-bad-lines",
        ),
        ("short.csv", b"user,item,rating\n1,2,3\n1\n", "Line 3 .* 1 field where 3 belong"),
        ("open.csv", b'user,item,rating\n1,2,3\n1,"2,4\n', "Line 3 .* opens a quote"),
        (
            "latin.csv",
            "user,item,rating\nJos\u00e9,2,3\n".encode("latin-1"),
            "Line 2 .* UTF-8.*--encoding latin-1",
        ),
    ],
)
def test_files_that_are_damaged_or_foreign(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    refuse(tmp_path / name, FileError, says)


def test_a_parquet_file_cut_in_half(tmp_path):
    pl.DataFrame({"user": range(1000), "item": range(1000), "rating": [3.0] * 1000}).write_parquet(
        tmp_path / "r.parquet"
    )
    whole = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "r.parquet").write_bytes(whole[: len(whole) // 2])
    refuse(tmp_path / "r.parquet", FileError, "damaged")


def test_columns_that_are_not_there(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text(HEADER + "1,2,3\n")
    refuse(
        path,
        DataError,
        "column 'stars' for the rating doesn't exist. The columns are user",
        columns={"rating": "stars"},
    )
    refuse(path, ParameterError, "must be one of", columns={"film": "item"})
    refuse(path, ParameterError, "One column can't be", columns={"user": "item"})


def test_a_dense_table_that_contradicts_itself(tmp_path):
    row = ",".join(["5"] + ["99"] * 98 + ["1", "2"])
    (tmp_path / "j.csv").write_text(row + "\n")
    refuse(tmp_path / "j.csv", DataError, "1 of 1 rows")
    (tmp_path / "j.csv").write_text(row.replace("5,", "2,", 1) + "\n" + ",".join(["x"] * 101) + "\n")
    refuse(tmp_path / "j.csv", DataError, "text where a number belongs")


def test_objects_that_are_no_tables():
    with refuses("not-a-frame", found="list"):
        from_frame([1, 2, 3])
    with pytest.raises(ParameterError, match="not a scipy sparse matrix"):
        from_scipy([[1, 2]])
    with pytest.raises(DataError, match="holds no ratings"):
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
    assert refused.value.__cause__ is None and not any(str(value) in str(refused.value) for value in values)


def test_a_model_is_told_from_an_archive_of_ratings(tmp_path):
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [3.0, 4.0]})
    Popularity(epsilon=1.0).fit(from_frame(frame, low=1, high=5)).save(tmp_path / "shop.discreet")
    refuse(tmp_path / "shop.discreet", FileError, "is a model of discreet, not ratings")
