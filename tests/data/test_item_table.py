"""Tables of what is public about items, as people have them."""

import numpy as np
import polars as pl
import pytest

from discreet.data.item_tables import read_item_table, read_items
from discreet.data.vocabulary import Vocabulary
from discreet.testing import refuses


def films():
    return pl.DataFrame(
        {
            "id": [1, 2, 3, 4, 5, 6],
            "title": ["a", "b", "c", "d", "e", "f"],
            "genres": ["Action|Comedy", "Comedy", "Drama|Action", "Drama", "Comedy", None],
            "country": ["fr", "fr", "us", "us", "us", None],
            "minutes": [90.0, None, 120.0, 100.0, 110.0, 80.0],
        }
    )


def test_words_lists_and_numbers_are_taken_as_they_are():
    numbers = read_items(films()).numbers
    # Three genres, two countries, minutes; titles say nothing about other films.
    assert numbers.shape == (6, 6)
    assert sorted(numbers[:, :5].sum(axis=0).tolist()) == [2, 2, 2, 3, 3]
    assert numbers[:, 5].mean() == pytest.approx(0) and numbers[1, 5] == pytest.approx(0)


def test_real_lists_and_other_frames_say_the_same():
    pandas = pytest.importorskip("pandas")
    table = films().with_columns(pl.col("genres").str.split("|"))
    for frame in (table, table.lazy(), pandas.DataFrame(table.to_dict(as_series=False))):
        found = read_items(frame).numbers
        assert found.shape == (6, 6)
        assert np.array_equal(found[:, :5].sum(axis=0), read_items(films()).numbers[:, :5].sum(axis=0))


def test_numbers_of_many_values_are_told_apart_by_range():
    years = read_items(pl.DataFrame({"id": range(50), "year": range(1950, 2000)})).numbers
    assert years.shape == (50, 6) and np.array_equal(years[:, 1:].sum(axis=0), [10] * 5)


def test_rows_come_in_the_order_of_the_catalog_and_unknown_items_get_means():
    catalog = Vocabulary.of([3, 1, 99])
    found = read_item_table(films().select("id", "minutes"), catalog)
    assert found[0, 0] > found[1, 0] and found[2, 0] == pytest.approx((found[0, 0] + found[1, 0]) / 2)


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (pl.DataFrame({"id": [1, 1], "a": [1, 2]}), "repeated"),
        (pl.DataFrame({"id": [1, None], "a": [1, 2]}), "repeated"),
        (pl.DataFrame({"id": [1, 2]}), "columns"),
        (pl.DataFrame({"id": [1, 2], "a": ["x", "y"]}), "same"),
        (pl.DataFrame({"id": [1, 2], "a": [3, 3]}), "same"),
        (pl.DataFrame({"id": [1, 2], "a": [1.0, float("inf")]}), "infinite"),
        (7, "frame"),
    ],
)
def test_tables_that_say_nothing_are_refused(frame, error):
    with refuses("public-table-wrong", why=error):
        read_items(frame)
