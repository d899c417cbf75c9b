"""Tables that are no files, unpack to gigabytes, or speak to the terminal; settings of other types."""

import gzip
import json
import math
import os
import random
import tracemalloc
import zipfile

import numpy as np
import polars as pl
import pytest

import discreet
from discreet.core.checks import DataError, DiscreetError, FileError, visible
from discreet.data.errors import TooManyRows, UnpacksToTooMuch
from discreet.data.interactions import Interactions
from discreet.data.item_tables import read_item_table, read_public_table
from discreet.data.reading import limits
from discreet.data.reading.limits import unpacked
from discreet.data.vocabulary import Vocabulary
from discreet.sources.sharding import PieceReader
from discreet.sources.shards import read_ids
from discreet.testing import refuses
from fuzz.mutations import bytes_of

TEXT = b"user,item,rating\n" + b"".join(b"u%d,i%d,%d\n" % (k, k % 5, 1 + k % 5) for k in range(20))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with refuses("not-a-file"):
        discreet.read(tmp_path / "pipe.csv")
    with pytest.raises(FileError):
        discreet.load(tmp_path / "pipe.csv")


@pytest.mark.thorough
def test_a_packed_bomb_costs_nothing(tmp_path):
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", 9) as file:
        file.write(TEXT)
        for _ in range(300):
            file.write(bytes(1 << 20) + b"\n")
    # What the first file makes Python import is not part of the cost.
    (tmp_path / "first.csv").write_bytes(TEXT)
    discreet.read(tmp_path / "first.csv")
    tracemalloc.start()
    with pytest.raises(UnpacksToTooMuch):
        discreet.read(path)
    assert tracemalloc.get_traced_memory()[1] < 50 << 20
    tracemalloc.stop()
    path.write_bytes(gzip.compress(TEXT) + gzip.compress(TEXT.split(b"\n", 1)[1].replace(b"u", b"v")))
    assert discreet.read(path).n_ratings == 40


@pytest.mark.thorough
def test_a_parquet_file_cannot_promise_more_rows_than_it_holds(tmp_path):
    path = tmp_path / "rows.parquet"
    rows = 30_000_000
    table = pl.select(pl.repeat(1, rows).alias("user"), pl.repeat(2, rows).alias("item"))
    table.with_columns(pl.lit(3.0).alias("rating")).write_parquet(path, row_group_size=rows)
    assert path.stat().st_size < 300_000
    with pytest.raises(TooManyRows):
        discreet.read(path)


def test_letters_that_make_the_reader_panic_get_a_sentence(tmp_path):
    """A short line that ends in half a letter: found by fuzzing, foreseen by nobody."""
    path = tmp_path / "half.csv"
    path.write_bytes(TEXT.replace(b"u2,i2,3\n", b"u2,2\xcb4\n"))
    with pytest.raises(DiscreetError):
        discreet.read(path)


@pytest.mark.few(1)
@pytest.mark.parametrize("reader", ["titles", "items", "shards", "ratings"])
def test_damaged_parquet_gets_a_sentence_wherever_it_is_read(reader, tmp_path):
    whole = tmp_path / "whole.parquet"
    ids = [f"item {number}" for number in range(200)]
    pl.DataFrame({"user": ids, "item": ids, "rating": [1.0, 5.0] * 100}).write_parquet(whole)
    raw, path, chance = whole.read_bytes(), tmp_path / "x.parquet", random.Random(reader)
    read = {
        "titles": lambda: read_public_table(path, discreet.Vocabulary.of(ids)),
        "items": lambda: read_item_table(path, discreet.Vocabulary.of(ids)),
        "shards": lambda: read_ids(path, len(ids)),
        "ratings": lambda: [PieceReader().read(piece) for piece in PieceReader().pieces(path)],
    }[reader]
    refused = 0
    for _ in range(150):
        path.write_bytes(bytes_of(raw, chance))
        try:
            read()
        except DiscreetError:
            refused += 1
    assert refused > 50


def test_letters_that_a_terminal_obeys_are_spelled_out(tmp_path):
    assert visible("a\x1b[31m\u202eb\nc") == "a\\x1b[31m\\u202eb\nc"
    path = tmp_path / "r.csv"
    path.write_bytes(b"us\x1b[2Jer,item,em\n1,2,3\n")
    with pytest.raises(DataError) as caught:
        discreet.read(path)
    assert "\x1b" not in str(caught.value) and "\\x1b" in str(caught.value)


def test_ids_are_shown_and_not_obeyed(tmp_path, capsys):
    from discreet.cli.output.printing import remark, show

    show("film \x1b[31mred\x07")
    remark("discreet: \x1b]0;title\x07")
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err and "\\x1b[31mred" in told.out and "\\x1b]0;title" in told.err


def test_ids_that_differ_in_a_last_zero_are_two(tmp_path):
    data = Interactions.from_arrays([1, 2, 3], ["a", "a\0", "b"], [1, 2, 3], low=1, high=5)
    model = discreet.Popularity(epsilon=1.0).fit(data)
    model.save(tmp_path / "m")
    assert sorted(discreet.load(tmp_path / "m").catalog.ids) == ["a", "a\0", "b"]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_numbers_of_any_precision_are_settings(kind, tmp_path):
    data = Interactions.from_arrays([1, 1, 2], [1, 2, 1], [1, 5, 3], low=1, high=5)
    for make in (discreet.Biases, discreet.Popularity, discreet.UserFactorization):
        model = make(epsilon=kind(0.5), delta=kind(2.0**-10)).fit(data)
        assert type(model.guarantee.epsilon) is float and model.guarantee.epsilon == 0.5
        model.save(tmp_path / "m", force=True)
        json.dumps(model.guarantee.to_json())
    low = discreet.Biases(epsilon=np.float32(0.1))
    assert low.epsilon == float(np.float32(0.1)) and type(low.epsilon) is float


def test_a_delta_below_what_draws_support_is_refused():
    for epsilon in (0.1, 1.0, 30.0):
        least = (1 + math.exp(epsilon)) * 2.0**36 * 2.0**-110
        assert discreet.Biases(epsilon=epsilon, delta=2 * least).delta == 2 * least
        with refuses("delta-too-small"):
            discreet.Biases(epsilon=epsilon, delta=least / 2)
    assert discreet.Popularity(epsilon=1.0, delta=0.0).delta == 0.0


def dictionary_bomb(path, rows, size, *, keep=True, short=0):
    """Write rows that all have one long text, which the file holds once, after so many with a short one."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    codes = pa.array([1] * short + [0] * (rows - short), pa.int32())
    items = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * size, "a"]))
    table = pa.table({"user": pa.array(range(rows)), "item": items, "rating": pa.array([3.0] * rows)})
    parquet.write_table(table, path, compression="zstd", store_schema=keep)
    return path


# Without Arrow's schema the same column is read as text.
@pytest.mark.few(1)
@pytest.mark.parametrize("keep", [True, False])
def test_a_long_id_that_a_dictionary_holds_once_is_not_written_out(keep, tmp_path):
    # Long texts in the first rows, or behind more of them than are tried first.
    for short in (0, 1_000):
        path = dictionary_bomb(tmp_path / "bomb.parquet", 10_000, 1_000_000, keep=keep, short=short)
        assert path.stat().st_size < 1 << 20
        with pytest.raises(UnpacksToTooMuch):
            discreet.read(path)
    few = dictionary_bomb(tmp_path / "few.parquet", 20, 1_000, keep=keep)
    assert discreet.read(few).n_items == 1


def test_pages_that_unpack_to_gigabytes_are_not_unpacked(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path, rows = tmp_path / "bomb.parquet", 150
    table = pa.table({"user": list(range(rows)), "item": ["x" * 1_000_000] * rows, "rating": [3.0] * rows})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    size = path.stat().st_size
    assert size < 1 << 20 and unpacked(path).size > 100_000_000
    with pytest.raises(UnpacksToTooMuch):
        discreet.read(path)


def test_ids_of_a_dictionary_are_numbered_like_texts(tmp_path):
    texts = ["b", "a", "c", "a", "b", "a"]
    users, numbers = [1, 1, 2, 2, 3, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 1.0]
    plain = pl.DataFrame({"user": users, "item": texts, "rating": numbers})
    for dtype in (pl.Categorical, pl.Enum(["unused", "c", "b", "a"])):
        encoded = plain.with_columns(pl.col("item").cast(dtype))
        found, expected = discreet.from_frame(encoded), discreet.from_frame(plain)
        assert found.catalog == expected.catalog and found.items.tolist() == expected.items.tolist()
        catalog = Vocabulary.of(["c", "b", "a"])
        declared = [discreet.from_frame(frame, catalog=catalog).items.tolist() for frame in (encoded, plain)]
        assert declared[0] == declared[1]
        missing = encoded.with_columns(pl.Series("item", [None, *texts[1:]], dtype=dtype))
        with refuses("bad-values", what="item IDs", count=1, of=6):
            discreet.from_frame(missing)
        assert Vocabulary.of(["a"]).index_of(missing["item"]).tolist() == [-1, 0, -1, 0, -1, 0]


@pytest.mark.thorough
def test_headers_of_pages_with_changed_bytes_get_a_sentence(tmp_path):
    path, chance = tmp_path / "a.parquet", random.Random(0)
    pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "rating": [1.0, 2.0]}).write_parquet(path)
    raw, refused = path.read_bytes(), 0
    assert unpacked(path).values == 2
    for _ in range(2000):
        changed = bytearray(raw)
        for _ in range(chance.choice((1, 4))):
            changed[chance.randrange(len(raw))] = chance.randrange(256)
        path.write_bytes(changed)
        try:
            unpacked(path)
        except FileError:
            refused += 1
    assert 200 < refused < 2000


def test_the_pages_of_a_file_are_walked_once_for_all_its_pieces_and_again_after_a_change(
    tmp_path, monkeypatch
):
    walks, walk = [], limits._added
    monkeypatch.setattr(limits, "_added", lambda raw: walks.append(1) or walk(raw))
    monkeypatch.setattr("discreet.sources.sharding._ROWS", 100)
    path = tmp_path / "ratings.parquet"
    for rows in (1_000, 1_100):
        columns = {"user": range(rows), "item": range(rows), "rating": [1.0] * rows}
        pl.DataFrame(columns).write_parquet(path)
        walks.clear()
        reader = PieceReader()
        assert sum(len(reader.read(piece).items) for piece in reader.pieces(path)) == rows
        assert len(walks) == 1


@pytest.mark.parametrize("value", [b"secret", b"7" * 5000])
def test_a_damaged_cell_of_a_spreadsheet_is_not_quoted(tmp_path, value):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra `excel`")
    book = openpyxl.Workbook()
    for row in (["user", "item", "rating"], ["ann", "i1", 777]):
        book.active.append(row)
    book.save(tmp_path / "sound.xlsx")
    with zipfile.ZipFile(tmp_path / "sound.xlsx") as sound, zipfile.ZipFile(tmp_path / "a.xlsx", "w") as odd:
        for entry in sound.infolist():
            odd.writestr(entry.filename, sound.read(entry).replace(b"<v>777</v>", b"<v>" + value + b"</v>"))
    with refuses("unreadable-cells", kind="Excel") as caught:
        discreet.read(tmp_path / "a.xlsx")
    assert "secret" not in str(caught.value) and caught.value.__suppress_context__
