"""Columns of times by other names, and a remark on those that are left unread."""

import logging
from datetime import date

import polars as pl
import pytest

from discreet.data.histories import read_history
from discreet.data.inputs import accept_history
from discreet.data.reading.readers import from_frame, read
from discreet.data.splits import parse_split, time_split
from discreet.testing import refuses


@pytest.mark.parametrize(
    "name", ["when", "purchased_at", "order_date", "occurred_at", "day", "Zeit", "watched_at", "playedAt"]
)
def test_more_names_are_times(tmp_path, name):
    path = tmp_path / "stars.csv"
    path.write_text(f"customer_id,product,score,{name}\na,x,1,2005-03-01\na,y,2,2005-03-02\n")
    assert read(path).times is not None


@pytest.mark.parametrize("name", ["release_date", "watch_time", "format", "sold_at,sent_at"])
def test_names_that_are_other_times_or_several_are_not_guessed(tmp_path, name):
    path = tmp_path / "stars.csv"
    path.write_text(f"user,item,rating,{name}\na,x,1{',7' * len(name.split(','))}\n")
    assert read(path).times is None


@pytest.mark.parametrize("value", ["2005-03-01", "01/02/2005 10:30", "1700000000", "2005-03-01T12:00:00Z"])
def test_an_unread_column_of_times_is_remarked_on(tmp_path, caplog, value):
    path = tmp_path / "stars.csv"
    path.write_text(f"user,item,rating,moment\na,x,1,{value}\na,y,2,{value}\n")
    with caplog.at_level(logging.WARNING, logger="discreet"):
        data = read(path)
        assert "column 'moment' looks like times" in caplog.text and value not in caplog.text
        with refuses("split-needs-times", unread="moment"):
            time_split(data, 0.5)
        assert "--columns time=moment" in data.how_read["time"]
        caplog.clear()
        read(path, columns={"time": None})
        assert caplog.text == ""


@pytest.mark.parametrize("values", [("7", "8"), ("2005-03-01", "noon"), ("", "")])
def test_other_columns_are_not_remarked_on(tmp_path, caplog, values):
    path = tmp_path / "stars.csv"
    path.write_text("user,item,rating,moment\n" + "".join(f"a,{k},1,{one}\n" for k, one in enumerate(values)))
    with caplog.at_level(logging.WARNING, logger="discreet"):
        assert read(path).unread_times is None and caplog.text == ""


def test_frames_json_lines_and_histories(tmp_path, caplog):
    frame = pl.DataFrame({"user": [1], "item": [2], "rating": [3], "moment": [date(2005, 3, 1)]})
    assert from_frame(frame).unread_times == from_frame(frame.lazy()).unread_times == "moment"
    lines = tmp_path / "stars.jsonl"
    lines.write_text('{"user": 1, "item": 2, "rating": 3, "moment": "2005-03-01"}\n')
    assert read(lines).unread_times == "moment"
    mine = tmp_path / "me.csv"
    mine.write_text("product,score,moment\nx,1,2005-03-01\n")
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="discreet"):
        assert read_history(mine).times is None and "time=moment" in caplog.text
    assert accept_history(frame.drop("user"), columns={"time": "moment"}).times is not None


def test_a_caption_says_latest_or_random():
    plan = parse_split("leave-one-out")
    assert "latest" in plan.held_out(timed=True) and "random" in plan.held_out(timed=False)
