"""Anything that streams Arrow tables is read block by block, to the same data as one table."""

import numpy as np
import pytest

import discreet

pa = pytest.importorskip("pyarrow")


class Stream:
    """A stream that can be read once, and that makes each block when it is asked for it."""

    def __init__(self, table, rows):
        self.made = 0
        self._batches = table.to_batches(max_chunksize=rows)
        self._schema = table.schema

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.RecordBatchReader.from_batches(self._schema, self._blocks()).__arrow_c_stream__()

    def _blocks(self):
        for batch in self._batches:
            self.made += 1
            yield batch


def table(dates):
    rows = np.arange(40)
    return pa.table(
        {
            "user": [f"u{row % 7}" for row in rows],
            "note": ["not read"] * 40,
            "item": rows // 2,
            "rating": 1.0 + rows % 5,
            "time": [f"{13 + row % 9}/03/2024" for row in rows] if dates else rows,
        }
    )


@pytest.mark.parametrize("dates", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_a_stream_is_read_like_a_table(rows, dates):
    whole, stream = discreet.from_frame(table(dates)), Stream(table(dates), rows)
    read = discreet.from_frame(stream)
    assert stream.made == -(-40 // rows)
    for name in ("indptr", "items", "values", "times"):
        assert np.array_equal(getattr(read, name), getattr(whole, name)), name
    assert read.users == whole.users and read.catalog == whole.catalog
    assert read.facts.reading == ("frame", "readable")
    assert bool(read.facts.layout) == dates


def test_an_empty_stream_is_rejected():
    with pytest.raises(discreet.DataError):
        discreet.from_frame(Stream(table(dates=False).slice(0, 0), 10))
