"""Dates whose year is last: the column decides, or the caller does, or they are refused."""

from datetime import UTC, datetime

import polars as pl
import pytest

from discreet.data.histories import read_history
from discreet.data.inputs import accept_history
from discreet.data.reading.readers import from_frame, read
from discreet.testing import refuses


def days(*dates):
    return [int(datetime(2025, month, day, tzinfo=UTC).timestamp()) for month, day in dates]


@pytest.mark.few(4)
@pytest.mark.parametrize("mark", ["/", "-", "."])
@pytest.mark.parametrize(
    ("second", "order", "dates", "said"),
    [
        ("25/12/2025", "", ((2, 1), (12, 25)), "the day first"),
        ("12/25/2025", "", ((1, 2), (12, 25)), "the month first"),
        ("03/04/2025", ":day-first", ((2, 1), (4, 3)), "the day first"),
        ("03/04/2025", ":month-first", ((1, 2), (3, 4)), "the month first"),
    ],
)
def test_dates_in_files_and_frames(tmp_path, mark, second, order, dates, said):
    # Of two users, because one alone does not show an order.
    texts = [text.replace("/", mark) for text in ("01/02/2025", second, second)]
    dates = (*dates, dates[1])
    columns = {"time": f"when{order}"} if order else None
    frame = pl.DataFrame({"user": ["a", "b", "c"], "item": "x", "rating": [1, 2, 3], "when": texts})
    frame.write_csv(tmp_path / "s.csv")
    frame.write_parquet(tmp_path / "s.parquet")
    frame.write_ndjson(tmp_path / "s.jsonl")
    for name in ("s.csv", "s.parquet", "s.jsonl"):
        data = read(tmp_path / name, columns=columns)
        assert data.times.tolist() == days(*dates) and said in data.how_read["time"]
    for table in (frame, frame.lazy(), frame.to_pandas()):
        assert from_frame(table, columns=columns).times.tolist() == days(*dates)


def test_a_time_of_day_may_follow():
    texts = ["25.12.2025 13:45", "24.12.2025 23:59:59", "01.02.2025"]
    frame = pl.DataFrame({"user": range(3), "item": 1, "rating": 1, "when": texts})
    christmas, eve, day = days((12, 25), (12, 24), (2, 1))
    assert from_frame(frame).times.tolist() == [christmas + 49_500, eve + 86_399, day]
    with refuses("unreadable-values", role="time"):
        from_frame(frame.with_columns(when=pl.col("when") + " noon"))


@pytest.mark.parametrize(
    ("texts", "columns", "why"),
    [
        (["01/02/2025", "03/01/2025"], None, "none"),
        (["25/12/2025", "12/25/2025"], None, "both"),
        (["25/12/2025"], {"time": "when:month-first"}, None),
    ],
)
def test_what_cannot_be_decided_is_refused(texts, columns, why):
    frame = pl.DataFrame({"user": range(len(texts)), "item": 1, "rating": 1, "when": texts})
    expected = ("unreadable-values", {"count": 1}) if why is None else ("unclear-dates", {"why": why})
    with refuses(expected[0], **expected[1]) as caught:
        from_frame(frame, columns=columns)
    assert "2025" not in str(caught.value)


def test_histories(tmp_path):
    mine = tmp_path / "me.csv"
    mine.write_text("item,rating,when\nx,1,01/02/2025\ny,2,03/01/2025\n")
    with refuses("unclear-dates", why="none"):
        read_history(mine)
    found = read_history(mine, columns={"time": "when:month-first"})
    assert found.times.tolist() == days((1, 2), (3, 1))
    table = pl.read_csv(mine)
    assert accept_history(table, columns={"time": "when:day-first"}).times.tolist() == days((2, 1), (1, 3))


def test_one_more_user_changes_nobodys_dates_or_is_refused():
    when = ["25/12/2025", "01/02/2025", "24/12/2025"]
    frame = pl.DataFrame({"user": ["a", "b", "c"], "item": 1, "rating": 1, "when": when})
    before = from_frame(frame).times.tolist()
    more = pl.DataFrame({"user": ["d"], "item": 1, "rating": 1, "when": ["02/03/2025"]})
    assert from_frame(pl.concat([frame, more])).times.tolist()[:3] == before
    other = more.with_columns(when=pl.lit("12/25/2025"))
    with refuses("unclear-dates", why="both"):
        from_frame(pl.concat([frame, other]))


def test_one_users_dates_decide_nothing_for_others():
    """With other dates of the same user, everybody's would be read in the other order."""
    others = {"user": ["b", "c"], "item": 1, "rating": 1, "when": ["01/02/2025", "03/04/2025"]}
    for date in ("25/12/2025", "12/25/2025"):
        mine = {"user": "a", "item": [1, 2], "rating": 1, "when": [date, date]}
        frames = [pl.DataFrame(some).cast({"item": pl.Int64}) for some in (others, mine)]
        with refuses("unclear-dates", why="one user"):
            from_frame(pl.concat(frames))
    alone = from_frame(
        pl.DataFrame({"user": "a", "item": [1, 2], "rating": 1, "when": ["25/12/2025", "01/02/2025"]})
    )
    assert sorted(alone.times.tolist()) == sorted(days((12, 25), (2, 1)))


def test_a_history_is_read_with_the_schema_of_its_model(tmp_path):
    rows = ["K1;Käse;3,5;25.12.2024", "K2;Brot;4;13.01.2025", "K2;Käse;2;02.01.2025"]
    path, mine = tmp_path / "all.csv", tmp_path / "mine.csv"
    full = "Kunde;Artikel;Sterne;Datum"
    path.write_text("\n".join([full, *rows, ""]), encoding="cp1252")
    schema = read(path).schema
    for header, row in (
        ("Kunde;Artikel;Sterne;Datum", "K2;Brot;4;02.01.2025"),
        ("Artikel;Sterne;Datum", "Brot;4;02.01.2025"),
    ):
        mine.write_text(f"{header}\n{row}\n", encoding="cp1252")
        with refuses("unclear-dates", why="none"):
            read_history(mine)
        found = read_history(mine, schema=schema)
        assert found.items == ["Brot"] and found.ratings == [4.0] and found.times.tolist() == days((1, 2))
    assert read_history(path, user="K1", schema=schema).items == ["Käse"]


@pytest.mark.parametrize("tail", ["25", "2025 9:5", "2025  12:30", "25 10:00"])
def test_a_date_that_shows_no_order_is_not_read_by_one(tmp_path, tail):
    """What the order of others would make readable stays as it is, with and without them."""
    own = [f"{user},{item},3,{item}/{item + 1}/{tail}\n" for user in range(9) for item in (1, 2)]
    stranger = ["90,1,3,25/12/2025\n", "91,1,3,24/12/2025\n"]
    path = tmp_path / "d.csv"
    for lines, order in ((own, ""), (own + stranger, ""), (own + stranger, ":day-first")):
        path.write_text("user,item,rating,time\n" + "".join(lines))
        columns = {"time": f"time{order}"} if order else None
        with refuses("unreadable-values", role="time"):
            read(path, columns=columns)
        if lines is not own:
            assert read(path, columns=columns, skip_bad_lines=True).n_ratings == 2
