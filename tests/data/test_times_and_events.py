"""Times in every usual form, columns that are left out, and repeated events."""

import logging
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest

from discreet import Biases, Popularity
from discreet.data.inputs import accept_history
from discreet.data.reading.readers import from_frame, read
from discreet.data.reading.times import moments_of
from discreet.data.schema import Schema
from discreet.testing import refuses

PLAIN = Schema()
NOON = int(datetime(2005, 3, 1, 12, tzinfo=UTC).timestamp())
FORMS = {
    "2005-03-01T12:00:00+00:00": NOON,
    "2005-03-01T14:00:00+02:00": NOON,
    "2005-03-01T04:00:00.250-0800": NOON,
    "2005-03-01T12:00:00Z": NOON,
    "2005-03-01 12:00:00+00": NOON,
    "2005-03-01 13:00:00 +01:00": NOON,
    "2005-03-01 12:00:00 UTC": NOON,
    "2005-03-01 12:00:00": NOON,
    "2005-03-01T12:00": NOON,
    "2005-03-01": NOON - 12 * 3600,
    f"{NOON}": NOON,
    f"{NOON}.5": NOON,
    f"{NOON}000": NOON * 1000,
}


@pytest.mark.parametrize("text", FORMS)
def test_each_form_is_read_in_files_and_frames(tmp_path, text):
    path = tmp_path / "one.csv"
    path.write_text(f"user,item,rating,time\n1,2,3,{text}\n")
    assert read(path).times.tolist() == [FORMS[text]]
    frame = pl.DataFrame({"user": [1], "item": [2], "rating": [3], "time": [text]})
    assert from_frame(frame).times.tolist() == [FORMS[text]]
    assert from_frame(frame.to_pandas()).times.tolist() == [FORMS[text]]


def test_each_time_is_read_by_itself():
    together = moments_of(pl.Series(list(FORMS)), PLAIN).moments.to_list()
    assert (
        together == [moments_of(pl.Series([text]), PLAIN).moments[0] for text in FORMS] == [*FORMS.values()]
    )


def test_frames_of_dates_with_and_without_a_zone():
    zone = timezone(timedelta(hours=2))
    for one, form in (
        (datetime(2005, 3, 1, 14, tzinfo=zone), "time zone"),
        (datetime(2005, 3, 1, 12), "without a time zone"),
        (date(2005, 3, 1), "days"),
    ):
        found = moments_of(pl.Series([one]), PLAIN)
        assert found.moments[0] in (NOON, NOON - 12 * 3600) and form in found.forms[0]


@pytest.mark.parametrize(
    ("times", "forms"),
    [
        ([NOON, NOON + 1], ("epoch seconds",)),
        ([NOON * 1000], ("epoch milliseconds",)),
        ([NOON * 10**6], ("epoch microseconds",)),
        ([NOON * 10**9], ("epoch nanoseconds",)),
        ([1, 2, -3], ("numbers as they are",)),
        ([0, NOON], ("numbers as they are", "epoch seconds")),
        ([NOON, NOON * 1000], ("epoch seconds", "epoch milliseconds")),
    ],
)
def test_units_are_told_apart(times, forms):
    assert moments_of(pl.Series(times), PLAIN).forms == forms
    assert moments_of(pl.Series([str(one) for one in times]), PLAIN).forms == forms


@pytest.mark.parametrize(
    ("times", "mixed"),
    [([NOON, NOON * 1000], True), (["2005-03-01", f"{NOON}000"], True), ([0, NOON], False)],
)
def test_several_units_are_remarked_on(caplog, times, mixed):
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [1, 2], "time": times})
    with caplog.at_level(logging.WARNING, logger="discreet"):
        from_frame(frame)
    assert ("several units" in caplog.text) is mixed


def test_times_can_be_left_out(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("user,item,rating,time\n1,2,3,noon\n")
    with refuses("unreadable-values", role="time", column="time") as caught:
        read(path)
    assert "noon" not in str(caught.value)
    assert read(path, columns={"time": None}).times is None


# ann: i twice, j once; bob: i three times.
EVENTS = pl.DataFrame(
    {
        "user": ["ann", "bob", "ann", "bob", "ann", "bob"],
        "item": ["i", "i", "i", "i", "j", "i"],
        "time": [10, 20, 30, 40, 50, 60],
        "event": [1.0, 1.0, 3.0, 1.0, 5.0, 0.5],
    }
)


@pytest.mark.parametrize(
    ("how", "values", "times"),
    [
        ("first", [1, 1, 1], [10, 50, 20]),
        ("last", [1, 1, 1], [30, 50, 60]),
        ("count", [2, 1, 3], [30, 50, 60]),
    ],
)
def test_repeated_events(tmp_path, how, values, times):
    path = tmp_path / "clicks.csv"
    EVENTS.write_csv(path)
    for data in (
        from_frame(EVENTS, implicit=True, duplicates=how),
        from_frame(EVENTS.to_pandas(), implicit=True, duplicates=how),
        read(path, implicit=True, duplicates=how),
    ):
        assert data.values.tolist() == values and data.times.tolist() == times


# The latest of each pair is listed first; (2, b) comes twice at one time, so its listing decides.
UNSORTED = pl.DataFrame(
    {
        "user": [1, 1, 2, 2],
        "item": ["a", "a", "b", "b"],
        "rating": [5, 1, 3, 2],
        "time": [200, 100, 100, 100],
    }
)


@pytest.mark.parametrize(("how", "timed", "untimed"), [("last", [5, 2], [1, 2]), ("first", [1, 3], [5, 3])])
def test_first_and_last_are_by_time_and_by_listing_without_times(tmp_path, how, timed, untimed):
    UNSORTED.write_csv(tmp_path / "rated.csv")
    UNSORTED.write_ndjson(tmp_path / "rated.jsonl")
    for data in (
        from_frame(UNSORTED, duplicates=how),
        read(tmp_path / "rated.csv", duplicates=how),
        read(tmp_path / "rated.jsonl", duplicates=how),
    ):
        assert data.values.tolist() == timed
    assert from_frame(UNSORTED.drop("time"), duplicates=how).values.tolist() == untimed


@pytest.mark.parametrize("how", ["first", "last"])
def test_first_and_last_agree_with_a_stable_sort(how):
    """More ratings than are compared with each other, times below zero and at both ends of 64 bits."""
    random = np.random.default_rng(5)
    ends = [np.iinfo(np.int64).min, -1, 0, 1, np.iinfo(np.int64).max]
    table = pl.DataFrame(
        {
            "user": random.integers(0, 40, 9000),
            "item": random.integers(0, 60, 9000),
            "rating": np.arange(9000) % 97 + 1.0,
            "time": random.choice(ends, 9000),
        }
    )
    expected = table.sort("time", maintain_order=True).unique(["user", "item"], keep=how, maintain_order=True)
    data = from_frame(table, duplicates=how, low=1, high=97)
    assert data.values.tolist() == expected.sort("user", "item")["rating"].to_list()


def test_the_latest_row_of_a_history_counts():
    rows = [{"item": "a", "rating": 5, "time": 200}, {"item": "a", "rating": 1, "time": 100}]
    assert accept_history(rows).ratings == accept_history(rows[::-1]).ratings == [5]
    assert accept_history([("a", 5), ("a", 1)]).ratings == [1]


def test_events_may_have_weights_and_counts_are_clipped():
    weighted = from_frame(EVENTS, columns={"weight": "event"}, duplicates="count", implicit=True)
    assert weighted.values.tolist() == [4, 5, 2.5] and "scale" not in weighted.facts.from_file
    clipped = from_frame(EVENTS, columns={"weight": "event"}, duplicates="count", low=0, high=4)
    assert clipped.values.tolist() == [4, 4, 2.5] and "scale" not in clipped.facts.from_file
    with refuses("rating-and-weight"):
        from_frame(EVENTS, columns={"weight": "event", "rating": "time"})
    heavy = EVENTS.with_columns(event=pl.lit(3e38))
    with refuses("weights-overflow"):
        from_frame(heavy, columns={"weight": "event"}, duplicates="count")


def test_a_count_is_not_a_rating():
    rated = EVENTS.rename({"event": "rating"})
    assert from_frame(rated, duplicates="count").values.tolist() == [2, 1, 3]


def test_what_one_person_counts_does_not_depend_on_others():
    alone = from_frame(EVENTS.filter(pl.col("user") == "ann"), implicit=True, duplicates="count")
    both = from_frame(EVENTS, implicit=True, duplicates="count")
    assert np.array_equal(alone.values, both.values[:2]) and np.array_equal(alone.times, both.times[:2])


def test_fit_says_what_becomes_of_repetitions():
    with refuses("repeated-pairs", count=3, of=6):
        Popularity(epsilon=1.0).fit(EVENTS)
    assert Popularity(epsilon=1.0).fit(EVENTS, duplicates="last").name == "popularity"
    rated = EVENTS.rename({"event": "rating"}).to_pandas()
    assert Biases(epsilon=1.0).fit(rated, duplicates="mean").facts.high == 5
    with refuses("unknown-choice", name="duplicates", value="all"):
        Popularity(epsilon=1.0).fit(EVENTS, duplicates="all")
