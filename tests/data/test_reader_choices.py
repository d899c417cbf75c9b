"""Small choices of readers by known answers: items of a catalog, and files that lack only ratings."""

import pytest

from discreet.core.checks import DataError
from discreet.data.reading.history import _lacks_ratings
from discreet.data.reading.readers import read
from discreet.data.vocabulary import Vocabulary


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
    with pytest.raises(DataError, match="does not say which column is which"):
        read(path, implicit=True)
