"""The data owner is told which values of conditions and weights are misspelled, and no guarantee is."""

import polars as pl
import pytest

from discreet.data import Interactions, from_frame, read

EVENTS = ["view"] * 6 + ["cart"] * 3 + ["buy"] * 2
TABLE = pl.DataFrame({"user": range(11), "item": ["tea"] * 11, "event": EVENTS})


@pytest.fixture(params=["text", "json", "parquet", "frame"])
def opened(request, tmp_path):
    file = tmp_path / "events"
    written = {"text": TABLE.write_csv, "json": TABLE.write_ndjson, "parquet": TABLE.write_parquet}
    if request.param != "frame":
        written[request.param](file)

    def reads(**options) -> Interactions:
        options = {"implicit": True, "duplicates": "count", **options}
        return from_frame(TABLE, **options) if request.param == "frame" else read(file, **options)

    return reads


def said(caplog):
    return " ".join(one.getMessage() for one in caplog.records)


def test_misspelled_weights_are_counted_and_named(opened, caplog):
    data = opened(weights="event=view:1,purchase:5")
    assert "5 of 11" in said(caplog) and "event=purchase" in said(caplog)
    assert "event=view" not in said(caplog) and data.n_ratings == 6
    # Nothing of it is among the facts, which labels list.
    assert "purchase:5" not in str(data.facts.to_json()) and "11" not in str(data.facts.to_json())


def test_weights_of_all_values_and_conditions_that_hold_are_silent(opened, caplog):
    opened(weights="event=view:0,cart:3,buy:5")
    opened(only="event=buy")
    assert not said(caplog)
    opened(only=["event=buy", "event=by"])
    assert "event=by" in said(caplog) and "11" not in said(caplog)
