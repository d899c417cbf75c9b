"""When a file's holder is told of many zeros: for more than a quarter of the ratings, not for exactly one."""

import polars as pl
import pytest

from discreet.data.item_tables import words_of
from discreet.data.reading.readers import _looks_like_gaps


@pytest.mark.parametrize(("values", "expected"), [([0, 3, 4, 5], False), ([0, 0, 3, 4, 5], True)])
def test_more_than_a_quarter_looks_like_gaps(values, expected):
    assert _looks_like_gaps(pl.Series(values)) is expected


def test_zeros_among_small_numbers_or_none_do_not():
    for values in ([0, 0, 1, 2], [1, 2, 3], []):
        assert not _looks_like_gaps(pl.Series(values, dtype=pl.Int64))


def test_texts_are_split_only_where_one_of_them_lists_something():
    assert words_of(pl.Series(["a|b", "a", "b", "b|a"])) == [["a", "b"], ["a"], ["b"], ["b", "a"]]
    # Spaces around a text that lists nothing belong to it.
    assert words_of(pl.Series([" a", " a", "b", None])) == [[" a"], [" a"], ["b"], []]
