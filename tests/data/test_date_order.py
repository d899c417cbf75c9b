"""Dates whose year is last: the column decides, or the caller does, or they are refused."""

from datetime import UTC, datetime

import polars as pl
import pytest

from discreet.core.checks import DataError
from discreet.data.inputs import accept_history
from discreet.data.reading.history import read_history
from discreet.data.reading.readers import from_frame, read


def days(*dates):
    return [int(datetime(2025, month, day, tzinfo=UTC).timestamp()) for month, day in dates]


@pytest.mark.parametrize("mark", ["/", "-", "."])
@pytest.mark.parametrize(
    ("second", "order", "dates", "said"),
    [
        ("25/12/2025", "", ((2, 1), (12, 25)), "the day before the month"),
        ("12/25/2025", "", ((1, 2), (12, 25)), "the month before the day"),
        ("03/04/2025", ":day-first", ((2, 1), (4, 3)), "the day before the month"),
        ("03/04/2025", ":month-first", ((1, 2), (3, 4)), "the month before the day"),
    ],
)
def test_dates_in_files_and_frames(tmp_path, mark, second, order, dates, said):
    texts = [text.replace("/", mark) for text in ("01/02/2025", second)]
    columns = {"time": f"when{order}"} if order else None
    frame = pl.DataFrame({"user": ["a", "b"], "item": ["x", "x"], "rating": [1, 2], "when": texts})
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
    with pytest.raises(DataError, match="neither numbers nor dates"):
        from_frame(frame.with_columns(when=pl.col("when") + " noon"))


@pytest.mark.parametrize(
    ("texts", "columns", "why"),
    [
        (["01/02/2025", "03/01/2025"], None, "above 12.*time=NAME:day-first"),
        (["25/12/2025", "12/25/2025"], None, "both orders occur.*time=NAME:month-first"),
        (["25/12/2025"], {"time": "when:month-first"}, "neither numbers nor dates"),
    ],
)
def test_what_cannot_be_decided_is_refused(texts, columns, why):
    frame = pl.DataFrame({"user": range(len(texts)), "item": 1, "rating": 1, "when": texts})
    with pytest.raises(DataError, match=why) as caught:
        from_frame(frame, columns=columns)
    assert "2025" not in str(caught.value)


def test_histories(tmp_path):
    mine = tmp_path / "me.csv"
    mine.write_text("item,rating,when\nx,1,01/02/2025\ny,2,03/01/2025\n")
    with pytest.raises(DataError, match="which comes first"):
        read_history(mine)
    found = read_history(mine, columns={"time": "when:month-first"})
    assert found.times.tolist() == days((1, 2), (3, 1))
    table = pl.read_csv(mine)
    assert accept_history(table, columns={"time": "when:day-first"}).times.tolist() == days((2, 1), (1, 3))


def test_one_more_user_changes_nobodys_dates_or_is_refused():
    frame = pl.DataFrame({"user": ["a", "b"], "item": 1, "rating": 1, "when": ["25/12/2025", "01/02/2025"]})
    before = from_frame(frame).times.tolist()
    more = pl.DataFrame({"user": ["c"], "item": 1, "rating": 1, "when": ["02/03/2025"]})
    assert from_frame(pl.concat([frame, more])).times.tolist()[:2] == before
    other = more.with_columns(when=pl.lit("12/25/2025"))
    with pytest.raises(DataError, match="both orders"):
        from_frame(pl.concat([frame, other]))
