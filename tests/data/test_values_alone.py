"""Containers, files and folders in which one user's values could change how others are read, and don't."""

import sqlite3
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import discreet
from discreet.data.block_sizes import other_block_sizes
from discreet.data.reading import line_splitting
from discreet.data.schema import Schema
from discreet.testing import refuses

NANO = 1_700_000_000_000_000_001
NAMES = ("user", "item", "rating", "time")
FRAME = Schema(format="frame", duplicates="last", **dict(zip(NAMES, NAMES, strict=True)))
TEXT = FRAME.changed(format="text", columns=NAMES)
FACTS = {"low": 0.0, "high": 5.0}
ITEMS = ["i0", "i1", "i2"]


def others(data):
    """Return everything that is stored of users but zoe, to the last bit."""
    rows = zip(
        map(str, data.users.id_at(data.rows()).tolist()),
        map(str, data.catalog.id_at(data.items).tolist()),
        data.values.view(np.uint32).tolist(),
        [0] * data.n_ratings if data.times is None else data.times.tolist(),
        strict=True,
    )
    return sorted(row for row in rows if row[0] != "zoe")


def read_frame(make, columns, odd, schema=FRAME):
    """Return what is read of the others without and with one row of zoe."""
    more = {name: [*own, odd.get(name, own[0])] for name, own in columns.items()}
    more["user"][-1] = "zoe"
    facts = {"catalog": ITEMS, **FACTS}
    return [others(discreet.from_frame(make(one), schema=schema, **facts)) for one in (columns, more)]


OWN = {
    "user": ["a", "a", "b"],
    "item": ["i0", "i1", "i0"],
    "rating": [1.0, 2.0, 3.0],
    "time": [NANO, NANO + 1, NANO + 2],
}
NULLABLE = {
    "Int64": lambda times: pd.array(times, dtype="Int64"),
    "arrow": lambda times: pd.array(times, dtype=pd.ArrowDtype(pa.int64())),
    "categories": pd.Categorical,
}


@pytest.mark.parametrize("kind", NULLABLE)
def test_a_missing_time_does_not_round_the_others(kind):
    def make(columns):
        return pd.DataFrame({**columns, "time": pd.Series(NULLABLE[kind](columns["time"]))})

    alone, together = read_frame(make, OWN, {"time": None})
    assert alone == together and [row[3] for row in alone] == OWN["time"]


@pytest.mark.parametrize("odd", ["3", "good", None, True, 10**400, [1], Fraction(1, 3), "\ud800"], ids=repr)
def test_a_strangers_rating_does_not_change_the_type_of_others(odd):
    ratings = [np.float32(0.1), Fraction(9, 2), True]
    columns = {**OWN, "rating": ratings}
    for rule in ("drop", "clip"):
        schema = FRAME.changed(off_scale=rule)
        alone, together = read_frame(
            lambda some: pd.DataFrame({name: pd.Series(one, dtype=object) for name, one in some.items()}),
            columns,
            {"rating": odd},
            schema,
        )
        assert alone == together and len(alone) == 3


@pytest.mark.parametrize("odd", [1.5, True, b"x", None, 2**70, "x", "\ud800"], ids=repr)
def test_a_strangers_id_does_not_change_the_ids_of_others(odd):
    columns = {**OWN, "item": [7, 7.0, "8"]}
    found = []
    for some in (columns, {name: [*one, one[0]] for name, one in columns.items()}):
        if len(some["user"]) > 3:
            some["user"][-1], some["item"][-1] = "zoe", odd
        frame = pd.DataFrame({name: pd.Series(one, dtype=object) for name, one in some.items()})
        found.append(
            others(discreet.from_frame(frame, schema=FRAME, catalog=["7", "8"], drop_unknown=True, **FACTS))
        )
    assert found[0] == found[1] and len(found[0]) == 2


@pytest.mark.parametrize(
    "times",
    [
        pl.Series([1.0, 2.0, 3.0, 1e300]),
        pl.Series([1.0, 2.0, 3.0, float("nan")]),
        pl.Series([1, 2, 3, 2**64 - 1], dtype=pl.UInt64),
        pl.Series([1, 2, 3, None]),
    ],
    ids=str,
)
def test_a_time_that_does_not_fit_drops_its_own_row(tmp_path, times):
    table = pl.DataFrame({"user": ["a", "a", "b", "zoe"], "item": ["i0", "i1", "i0", "i0"], "rating": 1.0})
    table.with_columns(time=times).write_parquet(tmp_path / "r.parquet")
    schema = FRAME.changed(format="parquet")
    data = discreet.read(tmp_path / "r.parquet", schema=schema, **FACTS)
    assert [row[3] for row in others(data)] == [1, 2, 3] and data.n_users == 2
    with refuses("unreadable-values" if times.null_count() == 0 and times[3] == times[3] else "bad-values"):
        discreet.read(tmp_path / "r.parquet", schema=schema.changed(bad_rows="reject"), **FACTS)


def test_runs_and_dictionaries_of_arrow_are_read_as_their_values():
    columns = {
        "user": pc.run_end_encode(pa.array(["a", "a", "b"])),
        "item": pa.array(OWN["item"]).dictionary_encode(),
        "rating": pa.array(["1", "2", "3"], pa.large_string()),
        "time": pa.array(OWN["time"]),
    }
    facts = {"catalog": ITEMS, **FACTS}
    assert others(discreet.from_frame(pa.table(columns), **facts)) == others(
        discreet.from_frame(pl.DataFrame(OWN), **facts)
    )
    with refuses("not-numeric", what="user IDs"):
        discreet.from_frame(pa.table({**columns, "user": pa.array([b"a", b"a", b"b"])}), **facts)


def test_a_file_that_is_empty_without_one_user_changes_nothing(tmp_path):
    for header in (True, False):
        folder = tmp_path / str(header)
        folder.mkdir()
        first = "user,item,rating,time\n" * header
        (folder / "1.csv").write_text(first + "a,i0,1,5\n")
        (folder / "3.csv").write_text(first + "b,i1,2,6\n")
        found = []
        for text in ("zoe,i1,3,7\n", "", first):
            (folder / "2.csv").write_text(first + text if text else "")
            found.append(others(discreet.read(folder, schema=TEXT.changed(header=header), **FACTS)))
        assert found[0] == found[1] == found[2] and len(found[0]) == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_is_part_of_no_line(tmp_path, encoding):
    path, found = tmp_path / "a.csv", []
    schema = TEXT.changed(header=False, encoding=encoding)
    for lines in (["\ufeffzoe,i0,3,1", "\ufeffa,i0,1,5", "b,i1,2,6"], ["\ufeffa,i0,1,5", "b,i1,2,6"]):
        path.write_bytes("\n".join(lines).encode(encoding))
        found.append(others(discreet.read(path, schema=schema, **FACTS)))
    assert found[0] == found[1] and [row[0] for row in found[0]] == ["a", "b"]


def test_a_line_that_is_too_long_is_dropped_wherever_blocks_end(tmp_path):
    path, lines = tmp_path / "a.csv", ["a,i0,1,5", "b,i1,2,6"]
    for before in range(0, 40, 8):
        long = "zoe," + "x" * line_splitting.LONGEST_LINE + ",3,1"
        path.write_text("\n".join([lines[0], long, lines[1]]))
        with other_block_sizes(text=(1 << 21) + before):
            data = discreet.read(path, schema=TEXT.changed(header=False), **FACTS)
        assert len(others(data)) == 2 and data.n_users == 2
    with refuses("line-too-long", line=2):
        discreet.read(path, schema=TEXT.changed(header=False, bad_rows="reject"), **FACTS)


def test_a_cell_that_is_no_text_drops_its_own_row(tmp_path):
    base = sqlite3.connect(tmp_path / "shop.db")
    base.execute("CREATE TABLE rated (user, item, rating, time)")
    base.executemany("INSERT INTO rated VALUES (?, ?, ?, ?)", [("a", "i0", 1, 5), ("b", "i1", 2.0, 6)])
    base.execute("INSERT INTO rated VALUES ('zoe', CAST(X'ff41' AS TEXT), 3, 7)")
    base.commit()
    data = discreet.read(tmp_path / "shop.db", schema=FRAME.changed(format="cells"), **FACTS)
    assert len(others(data)) == 2 and data.n_users == 2


def test_keys_in_a_path_are_columns(tmp_path):
    for day, rows in {"2025-01-31": "a,i0,1\nb,i1,2\n", "2025-02-01": "a,i1,3\n"}.items():
        folder = tmp_path / f"day={day}"
        folder.mkdir()
        (folder / "part.csv").write_text("user,item,rating\n" + rows)
    data = discreet.read(tmp_path, **FACTS)
    assert data.schema.keys == ("day",) and data.schema.time == "day"
    assert sorted(data.times.tolist()) == [1738281600, 1738281600, 1738368000]
    pl.DataFrame({"user": ["b"], "item": ["i0"], "rating": [4.0]}).write_parquet(tmp_path / "x.parquet")
    with refuses("other-format"):
        discreet.read(tmp_path, **FACTS)
    again = discreet.read(tmp_path / "day=2025-02-01", schema=data.schema, **FACTS)
    assert again.times.tolist() == [1738368000]
    with refuses("no-key", key="day"):
        (tmp_path / "y.csv").write_text("user,item,rating\na,i0,1\n")
        discreet.read(tmp_path / "y.csv", schema=data.schema, **FACTS)


def test_a_declared_zone_is_that_of_dates_without_one(tmp_path):
    path = tmp_path / "a.csv"
    times = ("2005-03-01 12:00:00", "2005-03-01T12:00:00Z", "2005-10-30 02:30:00", "2005-03-27 02:30:00")
    path.write_text("user,item,rating,time\n" + "".join(f"u{k},i,1,{one}\n" for k, one in enumerate(times)))
    data = discreet.read(path, schema=TEXT.changed(time_zone="Europe/Berlin"), **FACTS)
    # The hour that a clock shows twice is its first, and the one that it skips is no time.
    assert data.times.tolist() == [1109674800, 1109678400, 1130632200]
    with refuses("broken-rule", name="time_zone"):
        Schema(time_zone="Mars/Olympus")


def test_a_declared_comma_is_the_only_decimal_mark(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;i0;1,5;1\na;i1;1.5;2\nb;i0;2;3\n")
    schema = TEXT.changed(header=False, delimiter=";", decimal="comma")
    assert discreet.read(path, schema=schema, **FACTS).values.tolist() == [1.5, 2.0]


BIG = 1234567890123456789
NUMBERED = {
    "objects": (lambda ids: pd.Series(ids, dtype=object), [BIG, BIG, 10**18], "zoe"),
    "categories": (lambda ids: pd.Series(pd.Categorical(ids)), [BIG, BIG, 10**18], "zoe"),
    "UInt64": (lambda ids: pd.Series(ids, dtype="UInt64"), [BIG, BIG, 2**63 + 5], None),
    "uint64 of Arrow": (
        lambda ids: pd.Series(ids, dtype=pd.ArrowDtype(pa.uint64())),
        [BIG, BIG, 2**63 + 5],
        None,
    ),
    "Float64": (lambda ids: pd.Series(ids, dtype="Float64"), [7.0, 7.0, 1e19], None),
}


@pytest.mark.parametrize("declared", ["text", "integer"])
@pytest.mark.parametrize("kind", NUMBERED)
def test_long_whole_numbers_are_ids_whatever_else_a_column_has(kind, declared):
    make, ids, odd = NUMBERED[kind]
    schema = FRAME.changed(user_type=declared, bad_rows="drop")
    found = []
    for users in (ids, [*ids, odd]):
        rest = [2] * (len(users) - 3)
        frame = pd.DataFrame(
            {"user": make(users), "item": ["i0", "i1", "i0", *["i1"] * len(rest)], "rating": 3, "time": 5}
        )
        found.append(others(discreet.from_frame(frame, schema=schema, catalog=ITEMS, **FACTS)))
    assert found[0] == found[1] and len(found[0]) >= 2


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_missing_date_does_not_change_how_an_hour_that_is_skipped_is_read(unit):
    gap = datetime(2005, 3, 27, 2, 30)
    own = {**OWN, "time": [gap, datetime(2005, 3, 1), datetime(1960, 1, 1)]}
    schema = FRAME.changed(time_zone="Europe/Berlin", bad_rows="drop")
    kind = pd.ArrowDtype(pa.timestamp(unit))
    before, after = read_frame(
        lambda one: pd.DataFrame({**one, "time": pd.array(one["time"], dtype=kind)}),
        own,
        {"time": None},
        schema,
    )
    assert before == after and len(before) >= 2


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize(
    "kind", [pl.Datetime("ms"), pl.Datetime("us"), pl.Datetime("us", "Asia/Tokyo"), pl.Date]
)
def test_a_date_beyond_all_calendars_drops_its_own_row(kind, zone):
    schema = FRAME.changed(time_zone=zone, bad_rows="drop")
    own = {**OWN, "time": [1, 2, 3]}
    for odd in (2**31 - 1, -(2**31)) if kind == pl.Date else (2**62, -(2**63)):
        before, after = read_frame(
            lambda one: pl.DataFrame(one).with_columns(pl.col("time").cast(kind)), own, {"time": odd}, schema
        )
        assert before == after and len(before) == 3


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()], ids=str)
def test_a_date_of_arrow_in_pandas_beyond_all_calendars_drops_its_own_row(kind, zone):
    number, unit = (pa.int32(), 1) if kind == pa.date32() else (pa.int64(), 86_400_000)

    def make(one):
        days = pa.array([day * unit for day in one["time"]], number).view(kind)
        return pd.DataFrame({**one, "time": pd.Series(days, dtype=pd.ArrowDtype(kind))})

    own = {**OWN, "time": [12_843, 0, 3]}
    for odd in (10**8, -(10**8)):
        before, after = read_frame(make, own, {"time": odd}, FRAME.changed(time_zone=zone, bad_rows="drop"))
        assert before == after and len(before) == 3
        texts = ("time=2005-03-01", "time=2005-03-01 00:00:00.000")
        days = FRAME.changed(time="", bad_rows="drop", only=texts)
        before, after = read_frame(make, own, {"time": odd}, days)
        assert before == after and len(before) == 1
    objects = pd.DataFrame({**own, "time": [date(2005, 3, 1), date(1970, 1, 1), date(1970, 1, 4)]})
    facts, schema = {"catalog": ITEMS, **FACTS}, FRAME.changed(time_zone=zone)
    assert others(discreet.from_frame(make(own), schema=schema, **facts)) == others(
        discreet.from_frame(objects, schema=schema, **facts)
    )


def test_dates_of_pandas_in_seconds_are_read():
    frame = pd.DataFrame(
        {**OWN, "time": np.array(["2005-03-01", "NaT", "2005-03-02"], dtype="datetime64[s]")}
    )
    data = discreet.from_frame(frame, schema=FRAME.changed(bad_rows="drop"), **FACTS)
    assert data.times.tolist() == [1109635200, 1109721600]


def test_sparse_columns_of_pandas_are_read():
    frame = pd.DataFrame({**OWN, "rating": pd.arrays.SparseArray(OWN["rating"])})
    assert discreet.from_frame(frame, schema=FRAME, **FACTS).values.tolist() == OWN["rating"]


@pytest.mark.parametrize(
    "odd", [Decimal("sNaN"), pd.NaT, pd.NA, complex(1), datetime.max, datetime.min], ids=repr
)
def test_an_object_that_no_comparison_takes_drops_its_own_row(odd):
    schema = FRAME.changed(bad_rows="drop")
    for role in ("item", "rating", "time"):
        before, after = read_frame(
            lambda one: pd.DataFrame({name: pd.Series(own, dtype=object) for name, own in one.items()}),
            OWN, {role: odd}, schema.changed(unknown_items="drop"),
        )  # fmt: skip
        assert before == after and len(before) == 3


def test_what_a_query_fails_with_is_not_shown():
    lazy = pl.LazyFrame({"user": ["a", "b"], "item": ["x", "y"], "rating": ["1", "secret"]})
    with refuses("unreadable-frame", found="LazyFrame") as refused:
        discreet.from_frame(lazy.with_columns(pl.col("rating").cast(pl.Float64)), **FACTS)
    assert refused.value.__cause__ is None and "secret" not in str(refused.value)
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(
        "SELECT u AS user, u AS item, CAST(r AS DOUBLE) AS rating FROM (VALUES ('a', 'secret')) t(u, r)"
    )
    with refuses("unreadable-frame") as refused:
        discreet.from_frame(rows, **FACTS)
    assert "secret" not in str(refused.value)


def test_a_movielens_file_is_read_by_its_name_whatever_its_first_line_is(tmp_path):
    lines = "".join(f"{user}::{item}::3::5\n" for user in (7, 8) for item in (1, 2))
    found = []
    for odd in ("", "9::x\x00y\n", "zoe::milk::good::late\n", "# 9::1::3::5\n", "<html>\n"):
        path = tmp_path / "ratings.dat"
        path.write_text(odd + lines)
        found.append(others(discreet.read(path, layout="movielens", skip_bad_lines=True, n_items=2, **FACTS)))
    assert len(found[0]) == 4 and all(one == found[0] for one in found)


def test_a_first_line_that_may_be_a_row_is_in_no_message(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("zoe,secret,good,late\nann,tea,3,5\nbob,jam,4,6\n")
    with refuses("unclear-header", columns=4) as refused:
        discreet.read(path)
    assert "secret" not in str(refused.value)
