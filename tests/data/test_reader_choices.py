"""Small choices of readers by known answers: items of a catalog, and files that lack only ratings."""

import polars as pl
import pytest

from discreet.data.histories import _lacks_ratings, read_history
from discreet.data.inputs import accept_history
from discreet.data.reading.readers import read
from discreet.data.vocabulary import Vocabulary
from discreet.testing import refuses


def test_only_ratings_of_the_declared_catalog_are_kept(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n1,a,5\n1,b,3\n2,x,4\n2,b,2\n", encoding="utf8")
    data = read(path, catalog=Vocabulary.of(["a", "b"]), low=1, high=5, drop_unknown=True)
    assert data.n_ratings == 3 and sorted(data.values.tolist()) == [2.0, 3.0, 5.0]


@pytest.mark.parametrize(
    ("text", "expected"), [("user,item\n1,a\n", True), ("user,item,rating\n1,a,5\n", False), ("", False)]
)
def test_a_file_lacks_ratings_if_they_are_all_it_lacks(text, expected, tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(text, encoding="utf8")
    assert _lacks_ratings(path, None, alone=False) is expected


def test_names_that_the_caller_gives_make_a_header_where_nothing_else_shows_it(tmp_path):
    """No column has numbers, and no name is a usual one."""
    path = tmp_path / "seen.csv"
    path.write_text("who,what\nann,alien\nbob,heat\n", encoding="utf8")
    data = read(path, columns={"user": "who", "item": "what", "rating": None}, implicit=True)
    assert data.n_ratings == 2 and sorted(data.catalog.ids.tolist()) == ["alien", "heat"]
    with refuses("unclear-header", columns=2, given=()):
        read(path, implicit=True)


def test_a_table_without_a_header_is_read_by_places(tmp_path):
    path = tmp_path / "seen.csv"
    path.write_text("ann,alien,good\nbob,heat,bad\n", encoding="utf8")
    places = {"user": "column_1", "item": "column_2"}
    data = read(path, columns=places, implicit=True)
    assert data.n_ratings == 2 and sorted(data.catalog.ids.tolist()) == ["alien", "heat"]
    with refuses("unclear-header", columns=3, given=("who", "what")) as refused:
        read(path, columns={"user": "who", "item": "what"}, implicit=True)
    assert "ann" not in str(refused.value)
    swapped = read(path, columns={"user": "column_2", "item": "column_1"}, implicit=True)
    assert sorted(swapped.catalog.ids.tolist()) == ["ann", "bob"]


FITTED_WITH = {"user": "who", "item": "what", "rating": "rating", "time": "when"}


def test_a_history_may_lack_columns_of_the_fit_that_it_does_not_need(tmp_path):
    path = tmp_path / "me.csv"
    path.write_text("what;rating\nalien;1\n", encoding="utf8")
    for own in (
        read_history(path, columns=FITTED_WITH),
        accept_history(pl.DataFrame({"what": ["alien"]}), columns=FITTED_WITH, implicit=True),
    ):
        assert own.items == ["alien"] and own.times is None
    with refuses("no-column", column="who", role="user", columns=("what", "by"), spare=True):
        accept_history(pl.DataFrame({"what": ["alien"], "by": ["ann"]}), columns=FITTED_WITH, implicit=True)
    with refuses("no-column", column="what", role="item", columns=("x",), spare=True):
        accept_history(pl.DataFrame({"x": ["alien"]}), columns={"user": None, "item": "what"}, implicit=True)


def test_the_columns_of_a_history_of_ones_own_are_listed(tmp_path):
    path = tmp_path / "me.csv"
    path.write_text("wer,was\nich,alien\n", encoding="utf8")
    with refuses("header-unclear", columns=("wer", "was"), names="item=NAME") as refused:
        read_history(path, implicit=True)
    assert "user=NAME" not in str(refused.value)
